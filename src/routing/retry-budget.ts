/** Retries allowed before any request was made, so that a quiet gateway can retry at all. */
const INITIAL_RETRIES = 10
/** Share of a retry that every request earns. With the initial ones, 1,000 requests allow at most 100 retries. */
const RETRIES_PER_REQUEST = 0.09

/**
 * Bounds retries to a share of all requests, so that a vendor in trouble is not struck by a multiple of its load.
 */
export class RetryBudget {
  #retries = INITIAL_RETRIES

  /** Counts a request that was sent for the first time. */
  deposit(): void {
    this.#retries = Math.min(INITIAL_RETRIES, this.#retries + RETRIES_PER_REQUEST)
  }

  /** Takes one retry; false when the budget is used up. */
  withdraw(): boolean {
    if (this.#retries < 1) return false
    this.#retries -= 1
    return true
  }
}
