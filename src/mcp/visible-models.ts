import type { CatalogModel } from '../catalog/model.ts'
import { isInScope } from '../catalog/model-scope.ts'
import type { ListedModel } from '../gateway/model-list.ts'
import type { Caller } from './tool-context.ts'

/** Whose key asks. One whose scope names models sees those only, as in `GET /v1/models`. */
export type KeyOfCaller = Pick<Caller, 'gateway' | 'principal'>

/** May the caller's key see a model? */
export function isVisible({ principal }: KeyOfCaller, model: CatalogModel): boolean {
  return isInScope(principal.scopes?.models, model)
}

/** The ids of the models that the caller's key sees. */
export function visibleIds(caller: KeyOfCaller): ReadonlySet<string> {
  const seen = caller.gateway.catalog.list().filter((model) => isVisible(caller, model))
  return new Set(seen.map(({ id }) => id))
}

/** These models as the gateway lists them. */
export function visibleModels(caller: KeyOfCaller): readonly ListedModel[] {
  const seen = visibleIds(caller)
  return caller.gateway.models().filter(({ id }) => seen.has(id))
}
