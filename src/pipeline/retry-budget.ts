/** Initial retries, so that a gateway with little traffic can retry. */
const INITIAL_RETRIES = 10
/** Retries earned per request. With the initial ones, the first 1,000 requests allow at most 100 retries. */
const RETRIES_PER_REQUEST = 0.09
/**
 * Maximum number of accumulated retries, enough to move the requests in progress when a vendor fails. Any 1,000 consecutive
 * requests allow at most 190 retries.
 */
const MOST_SAVED = 100

/**
 * Limits retries to a share of all requests, so that retries do not multiply the load on failing vendors. Retries at the
 * same vendor and at another one both count.
 */
export class RetryBudget {
  #retries = INITIAL_RETRIES

  /** Number of retries available now. */
  get left(): number {
    return Math.floor(this.#retries)
  }

  /** Counts a request that was sent for the first time. */
  deposit(): void {
    this.#retries = Math.min(MOST_SAVED, this.#retries + RETRIES_PER_REQUEST)
  }

  /** Uses one retry. Returns false if the budget is exhausted. */
  withdraw(): boolean {
    if (this.#retries < 1) return false
    this.#retries -= 1
    return true
  }
}
