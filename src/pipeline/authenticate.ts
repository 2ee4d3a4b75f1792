import type { CatalogModel } from '../catalog/model.ts'
import { isInScope } from '../catalog/model-scope.ts'
import { GatewayError } from '../core/errors.ts'
import type { GatewayRequest } from '../core/exchange.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import { findKey, isUsable, type KeyRecord } from '../stores/api-keys.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import type { Account } from '../stores/ledger.ts'
import type { Principal } from '../stores/principal.ts'
import type { Authenticated, Received } from './call-record.ts'
import type { PipelineContext } from './pipeline-context.ts'

/**
 * Identifies the caller from headers alone; without a valid key the body is not read.
 * @throws GatewayError `invalid_api_key`, `invalid_principal`, `permission_denied` if the key may not use the endpoint, or
 *   `invalid_request` for two different `authorization` headers.
 */
export function authenticate(context: PipelineContext, received: Received): MaybePromise<Authenticated> {
  const { vouchedPrincipal, request, called } = received
  const found = vouchedPrincipal ?? findPrincipal(context, request, called.takesXApiKey === true)
  return isPending(found) ? found.then((principal) => authorize(received, principal)) : authorize(received, found)
}

function authorize(received: Received, principal: Principal | null | undefined): Authenticated {
  if (principal == null) throw new GatewayError('invalid_api_key')
  checkEndpointScope(principal, received.called.id)
  return received.authenticated(principal)
}

/**
 * Checks the credentials of a request.
 * @throws GatewayError `invalid_api_key`, `invalid_principal`, or `invalid_request` for two different `authorization` headers.
 */
export async function identify(
  context: PipelineContext,
  request: GatewayRequest,
  takesXApiKey: boolean,
): Promise<Principal> {
  const principal = await findPrincipal(context, request, takesXApiKey)
  if (principal == null) throw new GatewayError('invalid_api_key')
  return principal
}

function findPrincipal(
  context: PipelineContext,
  request: GatewayRequest,
  takesXApiKey: boolean,
): ReturnType<PipelineContext['authenticate']> {
  const authorization = oneCredential(request.header('authorization'))
  const apiKey = bearerToken(authorization) ?? (takesXApiKey ? request.header('x-api-key') : undefined)
  return context.authenticate({ apiKey, header: (name) => request.header(name), request: request.hostRequest })
}

/**
 * Returns the value of an `authorization` header, once if it was repeated.
 * @throws GatewayError `invalid_request` for two different values, because a proxy may have checked the other one.
 */
function oneCredential(authorization: string | undefined): string | undefined {
  if (authorization === undefined || !authorization.includes(',')) return authorization
  // Not split by a pattern that includes the spaces: with many spaces it would take quadratic time, before any key is checked.
  const values = authorization.split(',').map((value) => value.trim())
  // Commas also separate parameters of one credential, such as those of a signature.
  if (!values.every((value) => CREDENTIAL.test(value))) return authorization
  if (values.some((value) => value !== values[0]))
    throw new GatewayError('invalid_request', {
      message: 'The request has two different Authorization headers. Send one.',
      param: 'Authorization',
    })
  return values[0]
}

/** A scheme and a token (RFC 9110, section 11.4). */
const CREDENTIAL = /^[\w-]+ +[\w\-.~+/]+=*$/

const BEARER = /^bearer +\S+$/i

/** Returns the token of an `authorization` header, or undefined if it has none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  const text = authorization?.trim()
  // The token has no space, so it follows the last one. A match would allocate an object with all its parts.
  return text !== undefined && BEARER.test(text) ? text.slice(text.lastIndexOf(' ') + 1) : undefined
}

/** Work for a caller that can last longer than the caller's rights: a request, a background answer or a batch. */
export interface CallerWork {
  readonly caller: Pick<Principal, 'accountId' | 'keyId'>
  /** Ids of the endpoints that the key must be allowed to use. */
  readonly endpointIds: readonly string[]
  /** Model that the key must be allowed to use, or `undefined` if there are several. */
  readonly model: CatalogModel | undefined
  /** Ends the work because the caller may no longer have it. Must not throw. */
  end(error: GatewayError): void
}

/** Current key and account of a caller. Identities of the host have no key in the store. */
export interface CallerFacts {
  readonly key: KeyRecord | undefined
  readonly account: Account | undefined
}

export async function factsOfCaller(
  { keys, ledger }: GatewayStore,
  { accountId, keyId }: CallerWork['caller'],
): Promise<CallerFacts> {
  const [key, account] = await Promise.all([findKey(keys, keyId), ledger.account(accountId)])
  // An identity of the host may have the same id as a key of another account.
  return { key: key?.accountId === accountId ? key : undefined, account }
}

/** @throws GatewayError `permission_denied` that names the endpoint, if the scopes of the caller's key do not include it. */
export function checkEndpointScope({ scopes }: Pick<Principal, 'scopes'>, id: string): void {
  if (scopes?.endpoints?.includes(id) === false) throw endpointDenied(id)
}

function endpointDenied(id: string): GatewayError {
  return new GatewayError('permission_denied', {
    message: `This API key may not use the endpoint ${JSON.stringify(id)}.`,
  })
}

/** Returns the error for a model that the scopes of the caller's key do not include. */
export function modelDenied({ id }: Pick<CatalogModel, 'id'>): GatewayError {
  return new GatewayError('permission_denied', {
    message: `This API key may not use the model ${JSON.stringify(id)}.`,
    param: 'model',
  })
}

/** Returns why a caller may no longer have the work, or `undefined` if it may. */
export function refusalOf(
  { key, account }: CallerFacts,
  { endpointIds, model }: Pick<CallerWork, 'endpointIds' | 'model'>,
  nowMs: number,
): GatewayError | undefined {
  if (key !== undefined && (account === undefined || !isUsable(key, nowMs))) return new GatewayError('invalid_api_key')
  if (account?.frozen !== undefined) return new GatewayError('account_frozen')
  const { endpoints, models } = key?.scopes ?? {}
  const denied = endpointIds.find((id) => endpoints?.includes(id) === false)
  if (denied !== undefined) return endpointDenied(denied)
  return model === undefined || isInScope(models, model) ? undefined : modelDenied(model)
}

/** Reads the store and returns why a caller may not have the work, or `undefined`. @throws the errors of the store. */
export async function readRefusal(
  { store, clock }: PipelineContext,
  work: Omit<CallerWork, 'end'>,
): Promise<GatewayError | undefined> {
  return refusalOf(await factsOfCaller(store, work.caller), work, clock.now())
}
