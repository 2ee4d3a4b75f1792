import type { ServerContext } from '@modelcontextprotocol/server'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { GatewayRequest } from '../core/exchange.ts'
import { isJsonObject } from '../core/json.ts'
import type { ObservedToolCall } from '../core/observer.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Principal } from '../stores/principal.ts'
import { callGateway, type GatewayAnswer, type GatewayCall, jsonOf, refusedAnswer } from './gateway-call.ts'
import { protocolVersionOf, sessionOf } from './protocol-request.ts'

/** Authenticated caller, and the gateway that it calls. */
export interface Caller {
  readonly gateway: Gateway
  readonly principal: Principal
  readonly clock: Clock
  /** Identifies the caller again. @throws GatewayError if the key is no longer valid. */
  identify(): Promise<unknown>
  /** Notifies observers of a tool call; `undefined` if there are none. */
  readonly beginToolCall: BeginToolCall | undefined
}

/** @param tool Name of the tool, or `undefined` if there is no such tool. */
type BeginToolCall = (tool: string | undefined, message: ServerContext['mcpReq']) => ObservedToolCall

/** Maximum length of message ids for observers, in characters. */
const MAX_ID_LENGTH = 128

/** Returns a function that notifies observers of the tool calls in one request, or `undefined` if there are none. */
export function toolCallsIn(
  request: GatewayRequest,
  gateway: Gateway,
  principal: Principal,
): BeginToolCall | undefined {
  const { beginToolCall } = gateway
  if (beginToolCall === undefined) return undefined
  const { accountId, keyId } = principal
  return (tool, { id, method, _meta: meta }) => {
    const messageId = String(id)
    return beginToolCall({
      tool,
      method,
      protocolVersion: protocolVersionOf(request),
      sessionId: sessionOf(request),
      messageId: messageId.length <= MAX_ID_LENGTH ? messageId : undefined,
      accountId,
      keyId,
      header: (name) => request.header(name),
      metadata(name) {
        const value = meta !== undefined && Object.hasOwn(meta, name) ? meta[name] : undefined
        return typeof value === 'string' ? value : undefined
      },
    })
  }
}

/** Tool call by an authenticated caller. */
export interface ToolContext {
  readonly gateway: Gateway
  readonly principal: Principal
  /** Aborts when the caller disconnects or cancels. */
  readonly signal: AbortSignal
  readonly clock: Clock
  /**
   * Sends a request as the caller, through the whole pipeline.
   * @throws GatewayError if the gateway returns an error.
   */
  call(request: GatewayCall): Promise<GatewayAnswer>
  /**
   * Sends a request like `call`, for answers that are JSON objects.
   * @throws GatewayError also for other answers.
   */
  json(request: GatewayCall): Promise<Record<string, unknown>>
  /** Notifies the caller of progress, if the caller requested it. `progress` must increase with every notification. */
  progress(progress: { readonly progress: number; readonly total: number; readonly message: string }): Promise<void>
}

/** Binds a tool call to its caller: all its gateway requests are made as that caller, and as parts of `toolCall`. */
export function toolContext(
  { gateway, principal, clock, identify }: Caller,
  request: ServerContext,
  toolCall: ObservedToolCall | undefined,
): ToolContext {
  const { signal, _meta: meta } = request.mcpReq
  const handler = gateway.exchangeAs(principal, toolCall === undefined ? undefined : { toolCall })
  let isFirst = true
  const call = async (asked: GatewayCall): Promise<GatewayAnswer> => {
    // A waiting tool calls the gateway only as long as the caller's key is valid.
    if (!isFirst) await identify()
    isFirst = false
    const answer = await callGateway(handler, asked, { signal })
    if (answer.status >= 400) throw refusedAnswer(answer)
    return answer
  }
  return {
    gateway,
    principal,
    signal,
    clock,
    call,
    async json(asked) {
      const value = jsonOf((await call(asked)).body)
      if (isJsonObject(value)) return value
      throw new GatewayError('upstream_invalid_response')
    },
    async progress(progress) {
      const progressToken = meta?.progressToken
      if (progressToken === undefined || signal.aborted) return
      await request.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...progress } })
    },
  }
}
