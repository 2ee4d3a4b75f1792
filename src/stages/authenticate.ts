import { GatewayError } from '../core/errors.ts'
import type { GatewayRequest } from '../core/exchange.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import type { Principal } from '../stores/principal.ts'
import { withDefaultLimits } from './default-limits.ts'
import type { Authenticated, Received } from './records.ts'
import type { StageContext } from './stage-context.ts'

/**
 * Finds out who is calling, and by which limits, from headers alone: a caller without a valid key never gets its body read.
 * @throws GatewayError `invalid_api_key`, or `permission_denied` when the key may not use the endpoint.
 */
export function authenticate(context: StageContext, received: Received): MaybePromise<Authenticated> {
  const { vouchedPrincipal, request, endpoint } = received
  const found = vouchedPrincipal ?? identify(context, request, endpoint.dialect === 'anthropic')
  return andThen(found, (principal) => {
    const endpoints = principal.scopes?.endpoints
    if (endpoints !== undefined && !endpoints.includes(endpoint.id)) throw new GatewayError('permission_denied')
    return Object.assign(received, { principal: withDefaultLimits(principal, context.limits) })
  })
}

/**
 * Checks the credentials of a request.
 * @throws GatewayError `invalid_api_key`.
 */
export function identify(
  context: StageContext,
  request: GatewayRequest,
  takesXApiKey: boolean,
): MaybePromise<Principal> {
  const apiKey =
    bearerToken(request.header('authorization')) ?? (takesXApiKey ? request.header('x-api-key') : undefined)
  return andThen(context.authenticate({ apiKey, header: (name) => request.header(name) }), (principal) => {
    if (principal === undefined) throw new GatewayError('invalid_api_key')
    return principal
  })
}

const BEARER = /^bearer +(\S+)$/i

/** The token of an `authorization` header; undefined when it bears none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : BEARER.exec(authorization.trim())?.[1]
}
