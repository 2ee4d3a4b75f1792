import type { Clock } from '../core/clock.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'

/** Reason of a hook's failure. */
export type HookFault = 'threw' | 'timeout' | 'unusable-result' | 'too-large'

/** Outcome of one call of a hook. */
export type HookOutcome<Result> =
  | { readonly kind: 'result'; readonly result: Result }
  | { readonly kind: 'fault'; readonly fault: HookFault; readonly error: unknown }

/** Time limit of one call of a hook. The signal is created on demand. */
export class HookDeadline {
  #controller: AbortController | undefined
  #isOver = false

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#isOver) this.#controller.abort()
    return this.#controller.signal
  }

  abort(): void {
    this.#isOver = true
    this.#controller?.abort()
  }
}

/** Calls a point of a hook. A synchronous result costs no promise and no timer. Never throws and never rejects. */
export function callHook<Result>(
  clock: Clock,
  timeoutMs: number,
  deadline: HookDeadline,
  point: () => MaybePromise<Result>,
): MaybePromise<HookOutcome<Result>> {
  try {
    const result = point()
    return isPending(result) ? withinTime(clock, timeoutMs, deadline, result) : { kind: 'result', result }
  } catch (error) {
    // Thrown by the point itself, or by a custom promise.
    return { kind: 'fault', fault: 'threw', error }
  }
}

function withinTime<Result>(
  clock: Clock,
  timeoutMs: number,
  deadline: HookDeadline,
  pending: PromiseLike<Result>,
): Promise<HookOutcome<Result>> {
  return new Promise((resolve) => {
    const timer = clock.schedule(timeoutMs, () => {
      resolve({ kind: 'fault', fault: 'timeout', error: new Error(`no result within ${timeoutMs} ms`) })
      deadline.abort()
    })
    const failed = (error: unknown): void => {
      timer.cancel()
      resolve({ kind: 'fault', fault: 'threw', error })
    }
    try {
      pending.then((result) => {
        timer.cancel()
        resolve({ kind: 'result', result })
      }, failed)
    } catch (error) {
      failed(error)
    }
  })
}
