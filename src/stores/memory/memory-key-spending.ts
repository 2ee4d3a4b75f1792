import { isForgotten, monthOf, NOTHING_SPENT, type SpendingCounts } from '../spending.ts'
import { MapCursor } from './account-shares.ts'

/**
 * Spending of an account or a key, changed in place by the rules of `spendingAt` and `spendingChanged`. A month is the day plus
 * earlier days, so that most changes update one sum instead of two, because every request causes some.
 */
export class Spending implements SpendingCounts {
  period = NOTHING_SPENT.period
  chargedDay = 0n
  heldDay = 0n
  /** Charges of the month on other days than the latest. */
  #chargedBefore = 0n
  #heldBefore = 0n

  get chargedMonth(): bigint {
    return this.#chargedBefore + this.chargedDay
  }

  get heldMonth(): bigint {
    return this.#heldBefore + this.heldDay
  }

  /** Returns the current counts. */
  counts(): SpendingCounts {
    const { period, chargedDay, chargedMonth, heldDay, heldMonth } = this
    return { period, chargedDay, chargedMonth, heldDay, heldMonth }
  }

  /** Advances to a day, unless a later one was reached. */
  reach(period: number): void {
    if (period <= this.period) return
    const isSameMonth = monthOf(period) === monthOf(this.period)
    this.#chargedBefore = isSameMonth ? this.chargedMonth : 0n
    this.#heldBefore = isSameMonth ? this.heldMonth : 0n
    this.chargedDay = 0n
    this.heldDay = 0n
    this.period = period
  }

  /** Counts a charge of a hold of that day; negative for a refund. */
  charge(period: number, amount: bigint): void {
    if (period === this.period) this.chargedDay += amount
    else if (monthOf(period) === monthOf(this.period)) this.#chargedBefore += amount
  }

  /** Counts a hold of that day. */
  hold(period: number, amount: bigint): void {
    if (period === this.period) this.heldDay += amount
    else if (monthOf(period) === monthOf(this.period)) this.#heldBefore += amount
  }

  /** Counts the end of a hold of that day. */
  release(period: number, amount: bigint): void {
    if (period === this.period) this.heldDay -= amount
    else if (monthOf(period) === monthOf(this.period)) this.#heldBefore -= amount
  }
}

const SWEPT_PER_LOOK = 2

/** Spending of keys in this process. Keys without spending in this month or the last are dropped. */
export class KeySpending {
  readonly #byKey = new Map<string, Spending>()
  readonly #cursor = new MapCursor(this.#byKey)
  #sweptPeriod = 0
  /** Number of keys to check until all were seen in the period; nothing more falls due in it. */
  #leftToSweep = 0

  /** Returns the latest counts of a key. */
  counts(keyId: string): SpendingCounts {
    return this.#byKey.get(keyId)?.counts() ?? NOTHING_SPENT
  }

  /** Returns the spending of a key as of a day. */
  of(keyId: string, period: number): Spending {
    if (period !== this.#sweptPeriod) {
      this.#sweptPeriod = period
      this.#leftToSweep = this.#byKey.size
    }
    for (let step = 0; step < SWEPT_PER_LOOK && this.#leftToSweep > 0; step++) {
      this.#leftToSweep -= 1
      const next = this.#cursor.next()
      if (next !== undefined && isForgotten(next[1], period)) this.#byKey.delete(next[0])
    }
    let spending = this.#byKey.get(keyId)
    if (spending === undefined) {
      spending = new Spending()
      this.#byKey.set(keyId, spending)
      // The new key may precede the remaining ones.
      if (this.#leftToSweep > 0) this.#leftToSweep += 1
    }
    spending.reach(period)
    return spending
  }
}
