import { GatewayError } from '../core/errors.ts'
import type { GatewayRequest } from '../core/exchange.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { Principal } from '../stores/principal.ts'
import type { RateLimits } from '../stores/rate-limiter.ts'
import type { Authenticated, Received } from './call-record.ts'
import type { PipelineContext } from './pipeline-context.ts'

/**
 * Identifies the caller and its limits from headers alone: without a valid key the body is not read.
 * @throws GatewayError `invalid_api_key`, or `permission_denied` when the key may not use the endpoint.
 */
export function authenticate(context: PipelineContext, received: Received): MaybePromise<Authenticated> {
  const { vouchedPrincipal, request, called } = received
  const found = vouchedPrincipal ?? findPrincipal(context, request, called.takesXApiKey === true)
  return isPending(found)
    ? found.then((principal) => authorize(context, received, principal))
    : authorize(context, received, found)
}

function authorize(context: PipelineContext, received: Received, principal: Principal | undefined): Authenticated {
  if (principal === undefined) throw new GatewayError('invalid_api_key')
  const endpoints = principal.scopes?.endpoints
  if (endpoints !== undefined && !endpoints.includes(received.called.id)) throw new GatewayError('permission_denied')
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
  const principal = await findPrincipal(context, request, takesXApiKey)
  if (principal === undefined) throw new GatewayError('invalid_api_key')
  return principal
}

function findPrincipal(
  context: PipelineContext,
  request: GatewayRequest,
  takesXApiKey: boolean,
): MaybePromise<Principal | undefined> {
  const apiKey =
    bearerToken(request.header('authorization')) ?? (takesXApiKey ? request.header('x-api-key') : undefined)
  return context.authenticate({ apiKey, header: (name) => request.header(name) })
}

const BEARER = /^bearer +\S+$/i

/** The token of an `authorization` header; undefined if it has none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  const text = authorization?.trim()
  // The token has no space, so it begins behind the last one; a match would be an object with every part of it.
  return text !== undefined && BEARER.test(text) ? text.slice(text.lastIndexOf(' ') + 1) : undefined
}

/**
 * A caller with the gateway's limits for everything that its key does not limit. Returns the same object if the key has no
 * limits, because the gateway's apply anyway, or if it has all of them.
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
