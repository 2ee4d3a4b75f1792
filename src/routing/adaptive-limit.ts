import { isYoungerThan } from '../core/clock.ts'

/** Initial limit of a vendor. */
const INITIAL_CALLS = 100
const FEWEST_CALLS = 5
const MOST_CALLS = 10_000
/** Factor of the limit after overload. */
const CUT = 0.75
/** Overload reports within this time count as one. */
const CUT_INTERVAL_MS = 1_000

/**
 * Adaptive concurrency of a vendor (additive increase, multiplicative decrease). The limit grows by one for every round of
 * answers in which half of it was in use, and falls by a quarter on overload. It rejects nothing: a vendor at its limit is
 * skipped while another one has capacity.
 */
export class AdaptiveLimit {
  #inFlight = 0
  #limit = INITIAL_CALLS
  #lastCutMs = Number.NEGATIVE_INFINITY

  /** Calls in progress. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Concurrent calls that are not known to overload the vendor. */
  get limit(): number {
    return Math.floor(this.#limit)
  }

  get hasRoom(): boolean {
    return this.#inFlight + 1 <= this.#limit
  }

  /** Starts a call. */
  enter(): void {
    this.#inFlight += 1
  }

  /** Ends a call. */
  release(): void {
    this.#inFlight -= 1
  }

  /** Notes a successful answer. Called before `release`. */
  grow(): void {
    // A limit that is not approached gives no information about the vendor.
    if (this.#inFlight * 2 >= this.#limit) this.#limit = Math.min(MOST_CALLS, this.#limit + 1 / this.#limit)
  }

  /** Notes that the vendor reported overload. */
  shrink(nowMs: number): void {
    if (isYoungerThan(CUT_INTERVAL_MS, this.#lastCutMs, nowMs)) return
    this.#lastCutMs = nowMs
    this.#limit = Math.max(FEWEST_CALLS, this.#limit * CUT)
  }
}
