/** Retries allowed before any request was made, so that a quiet gateway can retry at all. */
const INITIAL_RETRIES = 10
/** Share of a retry that every request earns. With the initial ones, the first 1,000 requests allow at most 100 retries. */
const RETRIES_PER_REQUEST = 0.09
/**
 * What good times may save up, so that the requests under way when a vendor dies can go to another one. Any 1,000 requests in a
 * row allow at most 190 retries.
 */
const MOST_SAVED = 100

/**
 * Bounds retries to a share of all requests, so that vendors in trouble are not struck by a multiple of their load. Asking
 * the same vendor once more and asking another one instead both count.
 */
export class RetryBudget {
  #retries = INITIAL_RETRIES

  /** Retries that may be made now. */
  get left(): number {
    return Math.floor(this.#retries)
  }

  /** Counts a request that was sent for the first time. */
  deposit(): void {
    this.#retries = Math.min(MOST_SAVED, this.#retries + RETRIES_PER_REQUEST)
  }

  /** Takes one retry; false when the budget is used up. */
  withdraw(): boolean {
    if (this.#retries < 1) return false
    this.#retries -= 1
    return true
  }
}
