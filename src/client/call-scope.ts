import type { Clock, Timer } from '../core/clock.ts'

/** The life of one attempt: it ends when the caller's signal says so, when its time is up, or when it is done. */
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

  /** Rejects when the attempt is ended from outside, even if `work` takes no notice of its signal. */
  async within<Result>(work: Promise<Result>): Promise<Result> {
    const { signal } = this
    let onAbort: (() => void) | undefined
    const ended = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason)
      // A signal tells of its end once; who comes later must look.
      if (signal.aborted) onAbort()
      else signal.addEventListener('abort', onAbort, { once: true })
    })
    try {
      return await Promise.race([work, ended])
    } finally {
      if (onAbort !== undefined) signal.removeEventListener('abort', onAbort)
    }
  }

  /** A stream has begun: from now on it may take as long as it likes. */
  stopTimer(): void {
    this.#timer.cancel()
  }

  /** The attempt has failed: what is left of it is given up. */
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
