import type { Clock, Timer } from '../core/clock.ts'
import { TransientMap } from '../core/maps.ts'
import type { Transport } from '../transport/transport.ts'

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

/** Time between two checks of all calls for bytes of their vendors, in milliseconds. */
const CHECK_INTERVAL_MS = 5_000

/** Time without a byte after which a stream is reported, in milliseconds. */
const SILENT_STREAM_MS = 15_000

/** Time without a byte after which other calls are reported, in milliseconds. */
const SILENT_ANSWER_MS = 60_000

/** State of the bytes that a vendor sends. Shared by all requests of one attempt. */
export interface VendorActivity {
  /** Whether bytes have arrived since the last check. */
  hasBytes: boolean
  /** Whether the gateway does not read, because the caller is slow. */
  isPaused: boolean
}

/** An attempt whose vendor is watched for silence. */
export interface WatchedAttempt extends VendorActivity {
  /** Transport of its requests. */
  readonly transport: Transport
  /** Starts watching: reports once if the vendor sends nothing for this time, in milliseconds. */
  watchSilence(silentMs: number): void
}

/** A call that {@link SilenceWatch} checks. */
export interface WatchedCall {
  /** Checks for bytes of the vendor. Returns whether to continue watching. */
  checkSilence(nowMs: number): boolean
}

/**
 * Returns the duration of silence that is reported, in milliseconds.
 * @param isPatient Whether silence is usual for the model.
 */
export function reportedSilenceMs(isStream: boolean, isPatient: boolean): number {
  return isStream && !isPatient ? SILENT_STREAM_MS : SILENT_ANSWER_MS
}

/** Checks calls for silent vendors. One timer serves all calls, so a report may come up to 5 seconds late. */
export class SilenceWatch {
  readonly #clock: Clock
  readonly #calls = new TransientMap<WatchedCall, true>()
  #timer: Timer | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(call: WatchedCall): void {
    this.#calls.set(call, true)
    this.#timer ??= this.#nextCheck()
  }

  delete(call: WatchedCall): void {
    this.#calls.delete(call)
  }

  #nextCheck(): Timer {
    return this.#clock.schedule(CHECK_INTERVAL_MS, () => {
      const nowMs = this.#clock.now()
      for (const call of this.#calls.keys()) if (!call.checkSilence(nowMs)) this.#calls.delete(call)
      this.#timer = this.#calls.size === 0 ? undefined : this.#nextCheck()
    })
  }
}
