import type { Clock, Timer } from '../core/clock.ts'

/** Abort scope of one attempt. It ends by the caller's signal, by timeout, or at the end of the attempt. */
export class CallScope {
  isTimedOut = false
  readonly #controller = new AbortController()
  readonly #callerSignal: AbortSignal | undefined
  readonly #timer: Timer
  readonly #abort = (): void => this.#controller.abort(this.#callerSignal?.reason)

  constructor(clock: Clock, timeoutMs: number, callerSignal: AbortSignal | undefined) {
    this.#callerSignal = callerSignal
    this.#timer = clock.schedule(timeoutMs, () => {
      this.isTimedOut = true
      this.#controller.abort()
    })
    callerSignal?.addEventListener('abort', this.#abort, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Rejects if the attempt is aborted, even if `work` ignores its signal. */
  async within<Result>(work: Promise<Result>): Promise<Result> {
    const { signal } = this
    let onAbort: (() => void) | undefined
    const ended = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason)
      // A signal that is already aborted emits no event.
      if (signal.aborted) onAbort()
      else signal.addEventListener('abort', onAbort, { once: true })
    })
    try {
      return await Promise.race([work, ended])
    } finally {
      if (onAbort !== undefined) signal.removeEventListener('abort', onAbort)
    }
  }

  /** Stops the timeout because a stream has begun. */
  stopTimer(): void {
    this.#timer.cancel()
  }

  /** Aborts the rest of a failed attempt. */
  cancel(): void {
    this.end()
    this.#controller.abort()
  }

  /** Ends the scope of the attempt. */
  end(): void {
    this.#timer.cancel()
    this.#callerSignal?.removeEventListener('abort', this.#abort)
  }
}
