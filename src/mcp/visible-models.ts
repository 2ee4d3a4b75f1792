import type { CatalogModel } from '../catalog/model.ts'
import { isInScope } from '../catalog/model-scope.ts'
import type { ListedModel } from '../gateway/model-list.ts'
import type { Caller } from './tool-context.ts'

/** Caller whose models are listed. If the scope of its key names models, only those are visible, as in `GET /v1/models`. */
export type KeyOfCaller = Pick<Caller, 'gateway' | 'principal'>

/** Whether the caller's key may see a model. */
export function isVisible({ principal }: KeyOfCaller, model: CatalogModel): boolean {
  return isInScope(principal.scopes?.models, model)
}

/** Returns the ids of the models that the caller's key may see. */
export function visibleIds(caller: KeyOfCaller): ReadonlySet<string> {
  const seen = caller.gateway.catalog.list().filter((model) => isVisible(caller, model))
  return new Set(seen.map(({ id }) => id))
}

/** Returns these models in the gateway's list format. */
export function visibleModels(caller: KeyOfCaller): readonly ListedModel[] {
  const seen = visibleIds(caller)
  return caller.gateway.models().filter(({ id }) => seen.has(id))
}
