import type { Principal } from '../stores/principal.ts'
import type { AnyHook } from './hook.ts'

/** For whom, and how long, a hook asks the gateway. The facts of every point of a hook are such a call. */
export interface AskingCall {
  /** Who is noted in the usage record. */
  readonly principal: Principal
  /** Ends the request when it is aborted. */
  readonly signal: AbortSignal
}

/** An endpoint of a gateway, as far as its hooks need to know it. */
export interface HostedEndpoint {
  /** Such as `chat`. */
  readonly id: string
  /** Such as `/v1/chat/completions`. */
  readonly path: string
  /** Kind of the models that it serves. */
  readonly kind: string
  /** Can hooks read the texts of its requests? */
  readonly hasRequestTexts: boolean
  /** Can hooks read the texts of its answers? */
  readonly hasAnswerTexts: boolean
}

/** What a gateway is to its own hooks. */
export interface HookHost {
  /** In their order; one for each path. */
  readonly endpoints: readonly HostedEndpoint[]
  /** What a model does, by its public id or an alias; undefined: there is no such model. */
  kindsOf(model: string): readonly string[] | undefined
  /**
   * Asks one of the gateway's own endpoints: the same routes, keys, retries and circuits as for callers, and a usage record of the
   * call's account. It is the operator's call: it counts against no limit and no scope, is charged to nobody, and no hook is asked
   * about it. Gives the JSON that a caller would get.
   * @throws GatewayError as a caller would read it.
   */
  ask(path: string, body: object, call: AskingCall): Promise<unknown>
}

/** A hook that asks the gateway which it belongs to: it is made for each gateway. */
export interface GatewayHook {
  /** Said in events and logs. */
  readonly name: string
  /** @throws TypeError for what this gateway does not have. */
  forGateway(host: HookHost): AnyHook
}
