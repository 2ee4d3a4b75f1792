import type { GatewayRequest } from '../core/exchange.ts'
import { isJsonObject } from '../core/json.ts'

/** What is read of a JSON-RPC message before the SDK judges it. */
export interface RpcMessage {
  readonly method: string
  /** Undefined for a notification. */
  readonly id: string | number | undefined
  readonly params: unknown
}

/** A single message; undefined for batches and for what is no request or notification. */
export function messageOf(body: unknown): RpcMessage | undefined {
  if (!isJsonObject(body) || typeof body['method'] !== 'string') return undefined
  return { method: body['method'], id: idOf(body['id']), params: body['params'] }
}

/** The id of the request that a notification cancels; undefined for any other message. */
export function cancelledId(message: RpcMessage | undefined): string | number | undefined {
  if (message?.method !== 'notifications/cancelled' || !isJsonObject(message.params)) return undefined
  return idOf(message.params['requestId'])
}

/** The session that a client says it is in (revision 2025-11-25, "Session management"); undefined when it says none. */
export function sessionOf(request: GatewayRequest): string | undefined {
  const session = request.header('mcp-session-id')
  return session !== undefined && /^[\x21-\x7e]{1,128}$/.test(session) ? session : undefined
}

function idOf(id: unknown): string | number | undefined {
  return typeof id === 'string' || typeof id === 'number' ? id : undefined
}
