import type { Clock, Timer } from '../core/clock.ts'

/** The abort scope of one attempt: it ends by the caller's signal, by timeout, or when the attempt is done. */
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

  /** Rejects when the attempt is aborted, even if `work` ignores its signal. */
  async within<Result>(work: Promise<Result>): Promise<Result> {
    const { signal } = this
    let onAbort: (() => void) | undefined
    const ended = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason)
      // A signal that is already aborted fires no event.
      if (signal.aborted) onAbort()
      else signal.addEventListener('abort', onAbort, { once: true })
    })
    try {
      return await Promise.race([work, ended])
    } finally {
      if (onAbort !== undefined) signal.removeEventListener('abort', onAbort)
    }
  }

  /** A stream has begun: the timeout no longer applies. */
  stopTimer(): void {
    this.#timer.cancel()
  }

  /** The attempt has failed: aborts the rest of it. */
  cancel(): void {
    this.end()
    this.#controller.abort()
  }

  /** The attempt is over. */
  end(): void {
    this.#timer.cancel()
    this.#callerSignal?.removeEventListener('abort', this.#abort)
  }
}
