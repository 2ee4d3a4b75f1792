/** What a request that waited for an equal one is told: the entry that it made, or to ask a vendor itself. */
export type FlightOutcome = Uint8Array | 'lead' | 'alone'

/** How many times a waiting request takes the place of one that failed; after that each asks for itself. */
const MOST_SUCCESSIONS = 2

/**
 * Equal requests at the same time: one asks the vendor, and the others wait for its answer. What the leader fails with is its
 * own; one of those that wait then takes its place.
 */
export class Flight {
  /** Made for the first one that waits: most requests have no equal. */
  #waiting: Set<(outcome: FlightOutcome) => void> | undefined
  readonly #over: () => void
  #successions = 0
  #isOver = false

  /** @param over Called once, when nobody may join any more. */
  constructor(over: () => void) {
    this.#over = over
  }

  /** Does anybody wait for the leader? */
  get isAwaited(): boolean {
    return this.#waiting !== undefined && this.#waiting.size > 0
  }

  /** Waits; the function that it returns ends the waiting. */
  join(listener: (outcome: FlightOutcome) => void): () => void {
    this.#waiting ??= new Set()
    const waiting = this.#waiting
    waiting.add(listener)
    return () => void waiting.delete(listener)
  }

  /** The leader's answer is there. */
  answered(entry: Uint8Array): void {
    this.#end(entry)
  }

  /** The leader is over; without an answer somebody else leads, or all go alone. No effect after {@link answered}. */
  leaderOver(): void {
    if (this.#isOver) return
    const waiting = this.#waiting
    const next = waiting?.values().next().value
    if (waiting === undefined || next === undefined || this.#successions >= MOST_SUCCESSIONS) {
      this.#end('alone')
      return
    }
    this.#successions += 1
    waiting.delete(next)
    next('lead')
  }

  #end(outcome: FlightOutcome): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#over()
    const waiting = this.#waiting
    if (waiting === undefined) return
    for (const listener of waiting) listener(outcome)
    waiting.clear()
  }
}
