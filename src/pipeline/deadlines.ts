import type { Clock, Timer } from '../core/clock.ts'

/** Pending deadline, linked to the ones due before and after it. */
class Deadline implements Timer {
  readonly #all: Deadlines
  dueMs: number
  readonly onDue: () => void
  previous: Deadline | undefined
  next: Deadline | undefined = undefined

  constructor(all: Deadlines, dueMs: number, onDue: () => void, previous: Deadline | undefined) {
    this.#all = all
    this.dueMs = dueMs
    this.onDue = onDue
    this.previous = previous
  }

  cancel(): void {
    this.#all.remove(this)
  }
}

/** Deadlines with one common duration. They are due in the order in which they were set, so one timer serves all of them. */
export class Deadlines {
  readonly #clock: Clock
  readonly #durationMs: number
  #first: Deadline | undefined
  #last: Deadline | undefined
  #timer: Timer | undefined

  constructor(clock: Clock, durationMs: number) {
    this.#clock = clock
    this.#durationMs = durationMs
  }

  /** Calls back once after the duration, unless cancelled before. */
  add(onDue: () => void): Timer {
    const deadline = new Deadline(this, this.#clock.now() + this.#durationMs, onDue, this.#last)
    if (this.#last === undefined) this.#first = deadline
    else this.#last.next = deadline
    this.#last = deadline
    if (this.#timer === undefined) this.#wait(this.#durationMs)
    return deadline
  }

  /** Removes a deadline. Without effect if it was removed already. */
  remove(deadline: Deadline): void {
    const { previous, next } = deadline
    if (previous === undefined && this.#first !== deadline) return
    if (previous === undefined) this.#first = next
    else previous.next = next
    if (next === undefined) this.#last = previous
    else next.previous = previous
    deadline.previous = undefined
    deadline.next = undefined
  }

  /** Restarts deadlines that are due later than any new one could be, because the clock was set back after them. */
  #keepTime(nowMs: number): void {
    const latestMs = nowMs + this.#durationMs
    for (let first = this.#first; first !== undefined && first.dueMs > latestMs; first = first.next)
      first.dueMs = latestMs
  }

  /** The timer keeps running after its deadline was cancelled: it then waits for the next one, or stops. */
  #wait(delayMs: number): void {
    this.#timer = this.#clock.schedule(delayMs, () => {
      this.#timer = undefined
      const nowMs = this.#clock.now()
      this.#keepTime(nowMs)
      for (let first = this.#first; first !== undefined && first.dueMs <= nowMs; first = this.#first) {
        this.remove(first)
        first.onDue()
      }
      // A callback that adds a deadline has started the timer already.
      if (this.#first !== undefined && this.#timer === undefined) this.#wait(this.#first.dueMs - nowMs)
    })
  }
}
