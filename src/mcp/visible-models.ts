import type { CatalogModel } from '../catalog/model.ts'
import { isInScope } from '../catalog/model-scope.ts'
import type { ListedModel } from '../gateway/model-list.ts'
import type { Caller } from './tool-context.ts'

/** May the caller's key see a model? A key whose scope names models sees those only, as in `GET /v1/models`. */
export function isVisible({ principal }: Pick<Caller, 'principal'>, model: CatalogModel): boolean {
  return isInScope(principal.scopes?.models, model)
}

/** The models that the caller's key sees, as the gateway lists them. */
export function visibleModels(caller: Pick<Caller, 'gateway' | 'principal'>): readonly ListedModel[] {
  const { gateway, principal } = caller
  const listed = gateway.models()
  if (principal.scopes?.models === undefined) return listed
  const seen = new Set(gateway.catalog.list().flatMap((model) => (isVisible(caller, model) ? [model.id] : [])))
  return listed.filter(({ id }) => seen.has(id))
}
