/** Result for a request that waited for an equal one: the entry, `lead` to call a vendor for all, or `alone` for itself. */
export type FlightOutcome = Uint8Array | 'lead' | 'alone'

/** Number of times that a waiting request replaces a failed leader. After that, each request calls a vendor itself. */
const MOST_SUCCESSIONS = 2

/**
 * Equal concurrent requests: one calls the vendor, and the others wait for its answer. Errors of the leader stay its own; one of
 * the waiting requests then replaces it.
 */
export class Flight {
  /** Created for the first waiting request, because most requests have no equal. */
  #waiting: Set<(outcome: FlightOutcome) => void> | undefined
  readonly #over: () => void
  #successions = 0
  #isOver = false

  /** @param over Called once, when no other request may join. */
  constructor(over: () => void) {
    this.#over = over
  }

  /** Whether a request waits for the leader. */
  get isAwaited(): boolean {
    return this.#waiting !== undefined && this.#waiting.size > 0
  }

  /** Waits for the outcome. The returned function ends the waiting. */
  join(listener: (outcome: FlightOutcome) => void): () => void {
    this.#waiting ??= new Set()
    const waiting = this.#waiting
    waiting.add(listener)
    return () => void waiting.delete(listener)
  }

  /** Passes the leader's answer on. */
  answered(entry: Uint8Array): void {
    this.#end(entry)
  }

  /** Ends the leader. Without an answer another request leads, or all go alone. Without effect after {@link answered}. */
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
