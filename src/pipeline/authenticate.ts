import { GatewayError } from '../core/errors.ts'
import type { GatewayRequest } from '../core/exchange.ts'
import type { Principal } from '../stores/principal.ts'
import type { RateLimits } from '../stores/rate-limiter.ts'
import type { Authenticated, Received } from './call-record.ts'
import type { PipelineContext } from './pipeline-context.ts'

/**
 * Finds out who is calling, and by which limits, from headers alone: a caller without a valid key never gets its body read.
 * @throws GatewayError `invalid_api_key`, or `permission_denied` when the key may not use the endpoint.
 */
export async function authenticate(context: PipelineContext, received: Received): Promise<Authenticated> {
  const { vouchedPrincipal, request, called } = received
  const principal = vouchedPrincipal ?? (await identify(context, request, called.takesXApiKey === true))
  const endpoints = principal.scopes?.endpoints
  if (endpoints !== undefined && !endpoints.includes(called.id)) throw new GatewayError('permission_denied')
  return received.authenticated(withDefaultLimits(principal, context.limits))
}

/**
 * Checks the credentials of a request.
 * @throws GatewayError `invalid_api_key`.
 */
export async function identify(
  context: PipelineContext,
  request: GatewayRequest,
  takesXApiKey: boolean,
): Promise<Principal> {
  const apiKey =
    bearerToken(request.header('authorization')) ?? (takesXApiKey ? request.header('x-api-key') : undefined)
  const principal = await context.authenticate({ apiKey, header: (name) => request.header(name) })
  if (principal === undefined) throw new GatewayError('invalid_api_key')
  return principal
}

const BEARER = /^bearer +(\S+)$/i

/** The token of an `authorization` header; undefined when it bears none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : BEARER.exec(authorization.trim())?.[1]
}

/**
 * A caller with the gateway's own limits for whatever its key does not limit itself. The very same one where the key has no
 * limits at all, for which the gateway's hold anyway, or has all of them.
 */
export function withDefaultLimits(principal: Principal, defaults: RateLimits): Principal {
  const own = principal.limits
  if (own === undefined) return principal
  const { requestsPerMinute, tokensPerMinute, concurrency } = own
  if (requestsPerMinute !== undefined && tokensPerMinute !== undefined && concurrency !== undefined) return principal
  return {
    ...principal,
    limits: {
      requestsPerMinute: requestsPerMinute ?? defaults.requestsPerMinute,
      tokensPerMinute: tokensPerMinute ?? defaults.tokensPerMinute,
      concurrency: concurrency ?? defaults.concurrency,
    },
  }
}
