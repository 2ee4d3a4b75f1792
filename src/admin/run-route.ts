import { GatewayError } from '../core/errors.ts'
import type { AdminAnswer, AdminCall, AdminRoute } from './admin-route.ts'

/** Names that the API uses for arguments of the gateway's methods. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['accountId', 'account'],
  ['keyId', 'key'],
  ['holdId', 'hold'],
  ['chargeId', 'charge'],
  ['cursor', 'after'],
  ['groupBy', 'group_by'],
  ['endUser', 'end_user'],
  ['expiresAtMs', 'expires_at'],
  ['spendingCap', 'spending_cap'],
  ['overlapMs', 'overlap_ms'],
])

/**
 * Runs a route, and names parameters and fields in errors as the API does.
 * @throws GatewayError with status 404 if the gateway does not know the object in the path.
 */
export async function runRoute(route: AdminRoute, call: AdminCall): Promise<AdminAnswer> {
  try {
    return await route.run(call)
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? inWordsOfTheApi(cause, call) : cause
  }
}

function inWordsOfTheApi(error: GatewayError, { params }: AdminCall): GatewayError {
  const { code, status, publicCode, param, message } = error
  const name = NAMES.get(param ?? '')
  if (param === undefined || name === undefined) return error
  // The gateway rejects ids for only one reason: there is no such account, key or hold.
  if (params[name] !== undefined && code === 'invalid_request')
    return new GatewayError(code, { status: 404, publicCode: 'not_found', message, cause: error })
  const own = message.startsWith(param) ? name + message.slice(param.length) : message
  return new GatewayError(code, { status, publicCode, message: own, param: name, cause: error })
}
