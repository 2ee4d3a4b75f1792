import type { Catalog } from '../catalog/catalog.ts'
import { isScopeRule } from '../catalog/model-scope.ts'
import { GatewayError } from '../core/errors.ts'
import { checkMembers, hintAt } from '../core/known-members.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import {
  KEY_SCOPES_MEMBERS,
  type KeyScopes,
  PRINCIPAL_MEMBERS,
  type Principal,
  SPENDING_CAP_MEMBERS,
  type SpendingCap,
} from '../stores/principal.ts'
import { RATE_LIMITS_MEMBERS } from '../stores/rate-limiter.ts'
import { BATCHES_ID } from '../tasks/batches/files.ts'

/**
 * Checks a principal from the host: a misspelt member would silently remove scopes or limits.
 * @param owner Function or value of the host, for the message: `authenticate`.
 * @throws TypeError naming the member.
 */
export function checkPrincipal(value: unknown, owner: string): asserts value is Principal {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new TypeError(`${owner}: a principal must be an object, not ${described(value)}`)
  checkMembers(value, PRINCIPAL_MEMBERS, owner)
  const fail = (member: string, rule: string): never => {
    throw new TypeError(`${owner}: ${member} ${rule}`)
  }
  const { accountId, keyId, tier, tags, scopes, limits, plan, endUser, namesEndUsers, isFrozen, ...caps } =
    value as Principal
  if (typeof accountId !== 'string' || accountId === '') fail('accountId', NOT_EMPTY)
  if (typeof keyId !== 'string' || keyId === '') fail('keyId', NOT_EMPTY)
  if (tier !== 'free' && tier !== 'paid') fail('tier', "must be 'free' or 'paid'")
  if (tags !== undefined && !isTexts(tags)) fail('tags', 'must be a list of strings')
  if (plan !== undefined && plan !== null && typeof plan !== 'string')
    fail('plan', 'must be a string, or null for none')
  if (endUser !== undefined && (typeof endUser !== 'string' || endUser === '')) fail('endUser', NOT_EMPTY)
  if (namesEndUsers !== undefined && typeof namesEndUsers !== 'boolean') fail('namesEndUsers', IS_BOOLEAN)
  if (isFrozen !== undefined && typeof isFrozen !== 'boolean') fail('isFrozen', IS_BOOLEAN)
  if (scopes !== undefined) {
    checkMembers(scopes, KEY_SCOPES_MEMBERS, owner, 'scopes')
    if (scopes === null) fail('scopes', 'must be an object')
    if (scopes.endpoints !== undefined && !isTexts(scopes.endpoints))
      fail('scopes.endpoints', 'must be a list of strings')
    if (scopes.models !== undefined && !isTexts(scopes.models)) fail('scopes.models', 'must be a list of strings')
  }
  checkMembers(limits, RATE_LIMITS_MEMBERS, owner, 'limits')
  for (const [member, limit] of Object.entries(limits ?? {}))
    if (limit !== undefined && !(typeof limit === 'number' && limit >= 0))
      fail(`limits.${member}`, 'must be a number from 0 on')
  for (const member of ['accountSpendingCap', 'keySpendingCap'] as const) {
    const cap: SpendingCap | undefined = caps[member]
    if (cap === undefined) continue
    checkMembers(cap, SPENDING_CAP_MEMBERS, owner, member)
    if (typeof cap?.amount !== 'bigint' || (cap.period !== 'day' && cap.period !== 'month'))
      fail(member, "must be { amount, period }: a bigint of nano-dollars, and 'day' or 'month'")
  }
}

const NOT_EMPTY = 'must be a non-empty string'
const IS_BOOLEAN = 'must be true or false'

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string')
}

function described(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  return value === null || value === undefined ? String(value) : `a ${typeof value}`
}

/** Names that the scopes of a key may contain. */
export interface ScopeNames {
  readonly endpoints: { readonly all: readonly Pick<Endpoint, 'id'>[] }
  readonly catalog: Pick<Catalog, 'find'>
}

/**
 * Returns the scopes of a new key in the stored form: with public ids in place of aliases. Patterns and groups also apply to future
 * models.
 * @throws GatewayError `invalid_request` for an unknown endpoint, or if the value is not a list of strings; `param` is `endpoints` or
 *   `models`.
 */
export function storedScopes({ endpoints, models }: KeyScopes, names: ScopeNames): KeyScopes {
  return {
    ...(endpoints === undefined ? {} : { endpoints: knownEndpoints(endpoints, names.endpoints) }),
    ...(models === undefined ? {} : { models: idsOfModels(models, names.catalog) }),
  }
}

function knownEndpoints(ids: readonly string[], { all }: ScopeNames['endpoints']): string[] {
  // Files and batches are not endpoints, but have an id in scopes.
  const known = [...new Set([...all.map(({ id }) => id), BATCHES_ID])]
  checkTexts(ids, 'endpoints')
  const unknown = ids.find((id) => !known.includes(id))
  if (unknown === undefined) return [...new Set(ids)]
  const message = `there is no endpoint ${JSON.stringify(unknown)}; ${hintAt(unknown, known)}`
  throw new GatewayError('invalid_request', { message, param: 'endpoints' })
}

/** A key outlives a catalog, and other gateways of the same store may have other models, so unknown ids are kept. */
function idsOfModels(entries: readonly string[], catalog: ScopeNames['catalog']): string[] {
  checkTexts(entries, 'models')
  return [...new Set(entries.map((entry) => (isScopeRule(entry) ? entry : (catalog.find(entry)?.id ?? entry))))]
}

/** A single string in place of a list would be searched for substrings. */
function checkTexts(value: unknown, param: string): void {
  if (Array.isArray(value) && value.every((entry) => typeof entry === 'string')) return
  throw new GatewayError('invalid_request', { message: `scopes.${param} must be a list of strings`, param })
}
