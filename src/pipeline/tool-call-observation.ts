import type { Clock } from '../core/clock.ts'
import type { ErrorCode } from '../core/errors.ts'
import type { ObservedToolCall, ToolCallEnd, ToolCallFacts, ToolCallOutcome } from '../core/observer.ts'
import type { Observers } from './call-observation.ts'

/** Observation of one tool call. */
export class ToolCallObservation implements ObservedToolCall {
  readonly observers: Observers
  /** Return value of each observer. */
  readonly states: readonly unknown[]
  readonly #startedAtMs: number
  readonly #begunMs: number
  #isOver = false

  constructor(observers: Observers, clock: Clock, called: Omit<ToolCallFacts, 'startedAtMs'>) {
    const facts: ToolCallFacts = {
      ...called,
      startedAtMs: clock.now(),
      header: (name) => called.header(name),
      metadata: (name) => called.metadata(name),
    }
    this.observers = observers
    this.#startedAtMs = facts.startedAtMs
    this.#begunMs = observers.nowMs()
    this.states = observers.all.map((observer) => {
      try {
        return observer.toolCallStarted?.(facts)
      } catch (error) {
        observers.threw('toolCallStarted', error)
        return undefined
      }
    })
  }

  ended(outcome: ToolCallOutcome, code?: ErrorCode): void {
    if (this.#isOver) return
    this.#isOver = true
    const { observers } = this
    const durationMs = observers.nowMs() - this.#begunMs
    const end: ToolCallEnd = { outcome, code, endedAtMs: this.#startedAtMs + durationMs, durationMs }
    for (let index = 0; index < observers.all.length; index++) {
      try {
        observers.all[index]!.toolCallEnded?.(this.states[index], end)
      } catch (error) {
        observers.threw('toolCallEnded', error)
      }
    }
  }
}
