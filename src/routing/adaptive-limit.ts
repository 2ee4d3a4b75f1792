/** Where a vendor begins. */
const INITIAL_CALLS = 100
const FEWEST_CALLS = 5
const MOST_CALLS = 10_000
/** What is left of the limit after a sign of overload. */
const CUT = 0.75
/** Calls of the same moment tell of one overload, not of many. */
const CUT_INTERVAL_MS = 1_000

/**
 * Adaptive concurrency of a vendor: the limit grows by one for every round of answers in which half of it was in use, and is
 * cut by a quarter when the vendor is overloaded (additive increase, multiplicative decrease). It refuses nothing: a vendor
 * without room is skipped while another one has some.
 */
export class AdaptiveLimit {
  #inFlight = 0
  #limit = INITIAL_CALLS
  #lastCutMs = Number.NEGATIVE_INFINITY

  /** Calls under way. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Calls at once that are not known to overload it. */
  get limit(): number {
    return Math.floor(this.#limit)
  }

  get hasRoom(): boolean {
    return this.#inFlight + 1 <= this.#limit
  }

  /** A call begins. */
  enter(): void {
    this.#inFlight += 1
  }

  /** A call is over. */
  release(): void {
    this.#inFlight -= 1
  }

  /** A call was answered; called before `release`. */
  grow(): void {
    // A limit that is not approached says nothing about the vendor.
    if (this.#inFlight * 2 >= this.#limit) this.#limit = Math.min(MOST_CALLS, this.#limit + 1 / this.#limit)
  }

  /** The vendor had too much to do. */
  shrink(nowMs: number): void {
    if (nowMs - this.#lastCutMs < CUT_INTERVAL_MS) return
    this.#lastCutMs = nowMs
    this.#limit = Math.max(FEWEST_CALLS, this.#limit * CUT)
  }
}
