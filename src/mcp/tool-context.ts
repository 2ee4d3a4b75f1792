import type { ServerContext } from '@modelcontextprotocol/server'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { isJsonObject } from '../core/json.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Principal } from '../stores/principal.ts'
import { callGateway, type GatewayAnswer, type GatewayCall } from './gateway-call.ts'
import { jsonOf, refusedAnswer } from './refused-answer.ts'
import type { ToolContext } from './tool.ts'

/** Who calls, and what answers. */
export interface Caller {
  readonly gateway: Gateway
  readonly principal: Principal
  readonly clock: Clock
}

/** Binds a call of a tool to its caller: whatever the tool asks of the gateway is asked in the caller's name. */
export function toolContext({ gateway, principal, clock }: Caller, request: ServerContext): ToolContext {
  const { signal, _meta: meta } = request.mcpReq
  const handler = gateway.exchangeAs(principal)
  const call = async (asked: GatewayCall): Promise<GatewayAnswer> => {
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
