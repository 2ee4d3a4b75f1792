import type { CatalogModel } from '../catalog/model.ts'
import { isInScope } from '../catalog/model-scope.ts'
import { GatewayError } from '../core/errors.ts'
import type { GatewayStore } from '../stores/gateway-store.ts'
import { findKey, isUsable, type KeyRecord } from '../stores/key-store.ts'
import type { Account } from '../stores/ledger.ts'
import type { Principal } from '../stores/principal.ts'
import type { PipelineContext } from './pipeline-context.ts'

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
