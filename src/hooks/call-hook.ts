import type { Clock } from '../core/clock.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { Principal } from '../stores/principal.ts'
import type { AnyHook } from './hook.ts'

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

/** Caller and time limit of a hook's call to the gateway. The facts of every point of a hook have this type. */
export interface AskingCall {
  /** Principal for the usage record. */
  readonly principal: Principal
  /** Ends the request when it is aborted. */
  readonly signal: AbortSignal
}

/** Endpoint of a gateway, with the facts that its hooks need. */
export interface HostedEndpoint {
  /** Id such as `chat`. */
  readonly id: string
  /** Path such as `/v1/chat/completions`. */
  readonly path: string
  /** Kind of its models. */
  readonly kind: string
  /** Whether hooks can read the texts of its requests. */
  readonly hasRequestTexts: boolean
  /** Whether hooks can read the texts of its answers. */
  readonly hasAnswerTexts: boolean
}

/** Interface of a gateway for its own hooks. */
export interface HookHost {
  /** Endpoints in their order; one for each path. */
  readonly endpoints: readonly HostedEndpoint[]
  /** Returns the kinds of a model by its public id or an alias, or `undefined` for an unknown model. */
  kindsOf(model: string): readonly string[] | undefined
  /**
   * Calls one of the gateway's own endpoints and returns the JSON that a caller would get. Routes, keys, retries and circuits are
   * the same as for callers, and the call's account gets a usage record. It is a call of the operator: it counts against no limit
   * and no scope, nobody is charged, and no hook runs on it.
   * @throws GatewayError as a caller would read it.
   */
  ask(path: string, body: object, call: AskingCall): Promise<unknown>
}

/** Hook that calls its own gateway. It is created for each gateway. */
export interface GatewayHook {
  /** Name in events and logs. */
  readonly name: string
  /** @throws TypeError if this gateway lacks something that the hook needs. */
  forGateway(host: HookHost): AnyHook
}
