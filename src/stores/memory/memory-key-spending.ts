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

  /** As of a day. */
  of(keyId: string, period: number): Spending {
    for (let step = 0; step < SWEPT_PER_LOOK; step++) {
      const next = this.#cursor.next()
      if (next !== undefined && isForgotten(next[1].counts, period)) this.#byKey.delete(next[0])
    }
    let spending = this.#byKey.get(keyId)
    if (spending === undefined) {
      spending = { counts: NOTHING_SPENT }
      this.#byKey.set(keyId, spending)
    }
    spending.counts = spendingAt(spending.counts, period)
    return spending
  }
}
