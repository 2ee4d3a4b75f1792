import { GatewayError } from '../core/errors.ts'
import { isJsonObject } from '../core/json.ts'
import type { StoredAnswer } from '../stores/idempotency-store.ts'
import type { AdminAnswer, AdminCall, Administration, AdminRoute } from './admin-route.ts'
import { accountObject, keyObject } from './objects/accounts.ts'

type Members = Readonly<Record<string, unknown>>

/** Change by an operator, whatever its outcome. */
export interface Change<Host extends Administration = Administration> {
  readonly route: AdminRoute<Host>
  readonly call: AdminCall<Host>
  /** State of its subject before the change, for the audit. */
  readonly before?: Members | undefined
  readonly answer?: AdminAnswer | StoredAnswer | undefined
}

/** Where a change comes from. */
export interface ChangeOrigin {
  readonly source: 'admin_api' | 'command_line'
  /** Address of the client, if it is known. */
  readonly address?: string | undefined
  readonly requestId?: string | undefined
}

/**
 * Whether calls of a route are reported and added to the audit: all changes, and reads that create something or that only operators
 * with write access may see.
 */
export function isReported({ method, scope }: Pick<AdminRoute, 'method' | 'scope'>): boolean {
  return method !== 'GET' || scope === 'write'
}

/**
 * Returns the key or account that a change names in its path, or as the id of what it creates, in the format of the API. Returns
 * `undefined` if it names neither, or there is none.
 */
export async function stateOf<Host extends Administration>({
  route,
  call,
}: Change<Host>): Promise<Members | undefined> {
  const { accounts, keys } = call.gateway
  const created = route.creates === undefined ? {} : { [route.creates]: targetOf(route, call) }
  const { account, key }: Readonly<Record<string, string | undefined>> = { ...call.params, ...created }
  if (key !== undefined) {
    const record = await keys.find(key)
    return record && keyObject(record)
  }
  const stored = account === undefined ? undefined : await accounts.get(account)
  return stored && accountObject(stored)
}

/** Adds a change to the audit. `code` is the error of a change that may have been made although it failed. */
export async function recordChange<Host extends Administration>(
  change: Change<Host>,
  { source, address, requestId }: ChangeOrigin,
  code?: string,
): Promise<void> {
  const { route, call, before } = change
  await call.gateway.audit.record({
    operator: call.operator.name,
    action: route.id,
    subject: targetOf(route, call),
    source,
    address,
    requestId,
    code,
    input: inputOf(route, call),
    before,
    after: await stateAfter(change),
  })
}

/** Returns the state of the subject, or the answer without its secret if the subject was created or has no readable state. */
async function stateAfter<Host extends Administration>(change: Change<Host>): Promise<Members | undefined> {
  const { route, answer, before } = change
  const state = before && (await stateOf(change))
  if (state !== undefined) return state
  if (answer === undefined || !('json' in answer) || route.showsContent === true) return undefined
  return withoutSecret(answer.json, route.secret)
}

/** Returns the answer of a route as it may be kept. */
export function withoutSecret(json: object, secret: string | undefined): Members {
  return { ...json, ...(secret === undefined ? {} : { [secret]: null }) }
}

/** Returns the id of the object that a call changes. */
export function targetOf(
  { target, path }: Pick<AdminRoute, 'target' | 'path'>,
  { params, body }: Pick<AdminCall, 'params' | 'body'>,
): string | undefined {
  const name = target ?? /\{(\w+)\}/.exec(path)?.[1]
  if (name === undefined) return isJsonObject(body) && typeof body['id'] === 'string' ? body['id'] : undefined
  const value = params[name] ?? (isJsonObject(body) ? body[name] : undefined)
  return typeof value === 'string' ? value : undefined
}

/** Returns the body of a change without prompts, which a call for an account contains. */
export function inputOf({ scope }: Pick<AdminRoute, 'scope'>, { body }: Pick<AdminCall, 'body'>): Members {
  if (!isJsonObject(body)) return {}
  if (scope !== 'play') return body
  const { request, ...rest } = body
  return { ...rest, model: isJsonObject(request) ? request['model'] : undefined }
}

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
export async function runRoute<Host>(route: AdminRoute<Host>, call: AdminCall<Host>): Promise<AdminAnswer> {
  try {
    return await route.run(call)
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? withApiFieldNames(cause, call.params) : cause
  }
}

function withApiFieldNames(error: GatewayError, params: AdminCall['params']): GatewayError {
  const { code, status, publicCode, param, message } = error
  const name = NAMES.get(param ?? '')
  if (param === undefined || name === undefined) return error
  // The gateway rejects ids for only one reason: there is no such account, key or hold.
  if (params[name] !== undefined && code === 'invalid_request')
    return new GatewayError(code, { status: 404, publicCode: 'not_found', message, cause: error })
  const own = message.startsWith(param) ? name + message.slice(param.length) : message
  return new GatewayError(code, { status, publicCode, message: own, param: name, cause: error })
}
