import type { SpendingCap } from '../principal.ts'
import { isForgotten, NOTHING_SPENT, Spending, type SpendingCounts } from '../spending.ts'
import { MapCursor } from './account-shares.ts'

/** Returns the cap of a key by its id. */
type KeyCap = (keyId: string) => SpendingCap | undefined

/** Key with its spending. */
export class MemoryKey {
  readonly id: string
  readonly spending = new Spending()
  readonly #capOf: KeyCap

  constructor(id: string, capOf: KeyCap) {
    this.id = id
    this.#capOf = capOf
  }

  get spendingCap(): SpendingCap | undefined {
    return this.#capOf(this.id)
  }
}

const SWEPT_PER_LOOK = 2

/** Spending of keys in this process. Keys without spending in this month or the last are dropped. */
export class KeySpending {
  readonly #capOf: KeyCap
  readonly #byKey = new Map<string, MemoryKey>()
  readonly #cursor = new MapCursor(this.#byKey)
  #sweptPeriod = 0
  /** Number of keys to check until all were seen in the period; nothing more falls due in it. */
  #leftToSweep = 0

  constructor(capOf: KeyCap = () => undefined) {
    this.#capOf = capOf
  }

  /** Returns the latest counts of a key. */
  counts(keyId: string): SpendingCounts {
    return this.#byKey.get(keyId)?.spending.counts() ?? NOTHING_SPENT
  }

  /** Returns a key. The changes of a dropped one count nowhere. */
  find(keyId: string): MemoryKey {
    return this.#byKey.get(keyId) ?? new MemoryKey(keyId, this.#capOf)
  }

  /** Returns a key with its spending as of a day. */
  of(keyId: string, period: number): MemoryKey {
    if (period !== this.#sweptPeriod) {
      this.#sweptPeriod = period
      this.#leftToSweep = this.#byKey.size
    }
    for (let step = 0; step < SWEPT_PER_LOOK && this.#leftToSweep > 0; step++) {
      this.#leftToSweep -= 1
      const next = this.#cursor.next()
      if (next !== undefined && isForgotten(next[1].spending, period)) this.#byKey.delete(next[0])
    }
    let key = this.#byKey.get(keyId)
    if (key === undefined) {
      key = new MemoryKey(keyId, this.#capOf)
      this.#byKey.set(keyId, key)
      // The new key may precede the remaining ones.
      if (this.#leftToSweep > 0) this.#leftToSweep += 1
    }
    key.spending.reach(period)
    return key
  }
}
