import type { Catalog } from '../catalog/catalog.ts'
import { isScopeRule } from '../catalog/model-scope.ts'
import { GatewayError } from '../core/errors.ts'
import { hintAt } from '../core/known-members.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { KeyScopes } from '../stores/principal.ts'
import { BATCHES_ID } from '../tasks/batches/file-requests.ts'

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
