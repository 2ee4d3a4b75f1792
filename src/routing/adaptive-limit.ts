import { isYoungerThan } from '../core/clock.ts'

/** The initial limit of a vendor. */
const INITIAL_CALLS = 100
const FEWEST_CALLS = 5
const MOST_CALLS = 10_000
/** The factor of the limit after overload. */
const CUT = 0.75
/** Overload reports within this time count as one. */
const CUT_INTERVAL_MS = 1_000

/**
 * Adaptive concurrency of a vendor (additive increase, multiplicative decrease). The limit grows by one for every round of
 * answers in which half of it was in use, and falls by a quarter on overload. It refuses nothing: a vendor without room is
 * skipped while another one has some.
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
    // A limit that is not approached gives no information about the vendor.
    if (this.#inFlight * 2 >= this.#limit) this.#limit = Math.min(MOST_CALLS, this.#limit + 1 / this.#limit)
  }

  /** The vendor reported overload. */
  shrink(nowMs: number): void {
    if (isYoungerThan(CUT_INTERVAL_MS, this.#lastCutMs, nowMs)) return
    this.#lastCutMs = nowMs
    this.#limit = Math.max(FEWEST_CALLS, this.#limit * CUT)
  }
}
