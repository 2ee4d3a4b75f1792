import { isForgotten, NOTHING_SPENT, type SpendingCounts, spendingAt } from '../spending.ts'
import { MapCursor } from './map-scans.ts'

/** What an account or a key has spent. */
export interface Spending {
  counts: SpendingCounts
}

const SWEPT_PER_LOOK = 2

/** What keys have spent in this process. Keys that nothing was counted for in this month or the last are forgotten. */
export class KeySpending {
  readonly #byKey = new Map<string, Spending>()
  readonly #cursor = new MapCursor(this.#byKey)
  #sweptPeriod = 0
  /** Keys to look at until all were seen in the period; in one of them nothing more falls due. */
  #leftToSweep = 0

  /** As they were last counted. */
  counts(keyId: string): SpendingCounts {
    return this.#byKey.get(keyId)?.counts ?? NOTHING_SPENT
  }

  /** As of a day. */
  of(keyId: string, period: number): Spending {
    if (period !== this.#sweptPeriod) {
      this.#sweptPeriod = period
      this.#leftToSweep = this.#byKey.size
    }
    for (let step = 0; step < SWEPT_PER_LOOK && this.#leftToSweep > 0; step++) {
      this.#leftToSweep -= 1
      const next = this.#cursor.next()
      if (next !== undefined && isForgotten(next[1].counts, period)) this.#byKey.delete(next[0])
    }
    let spending = this.#byKey.get(keyId)
    if (spending === undefined) {
      spending = { counts: NOTHING_SPENT }
      this.#byKey.set(keyId, spending)
      // The new one may come before those that are left.
      if (this.#leftToSweep > 0) this.#leftToSweep += 1
    }
    spending.counts = spendingAt(spending.counts, period)
    return spending
  }
}
