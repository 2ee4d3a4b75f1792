import { GatewayError } from '../core/errors.ts'
import type { AdminAnswer, AdminCall, AdminRoute } from './admin-route.ts'

/** What the API calls arguments of the gateway's methods. */
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
 * Runs a route, whose errors name parameters and fields as the API does.
 * @throws GatewayError with status 404 where the gateway does not know what the path names.
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
  // Of ids the gateway says one thing only: that there is no such account, key or hold.
  if (params[name] !== undefined && code === 'invalid_request')
    return new GatewayError(code, { status: 404, publicCode: 'not_found', message, cause: error })
  const own = message.startsWith(param) ? name + message.slice(param.length) : message
  return new GatewayError(code, { status, publicCode, message: own, param: name, cause: error })
}
