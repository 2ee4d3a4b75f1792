import { newerFirst, versionOf } from '../catalog/id-pattern.ts'
import type { CatalogModel } from '../catalog/model.ts'
import { isInScope } from '../catalog/model-scope.ts'
import { GatewayError } from '../core/errors.ts'
import { nearestName } from '../core/known-members.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { Principal } from '../stores/principal.ts'
import { isConfigured, type PipelineContext } from './pipeline-context.ts'
import { isUnpricedBy } from './unpriced-models.ts'

/** Who asks for a model, and where. */
export interface ModelQuestion {
  readonly principal: Principal
  /** Absent: models of every kind may be meant. */
  readonly endpoint?: Pick<Endpoint, 'kind' | 'unknownModel'>
  /** True if a vendor claims the id, but billing is on and no price holds for it. */
  readonly isUnpriced?: boolean
}

/**
 * The error for a model that there is not: `model_not_found`, or the endpoint's own. It names the model that was meant, if one is
 * near and of the same generation or a newer one. No model is named that the caller's key
 * may not use, whose vendor has no key, or that has no price while billing is on.
 */
export function unknownModel(
  context: PipelineContext,
  id: string,
  { principal, endpoint, isUnpriced = false }: ModelQuestion,
): GatewayError {
  const generation = generationOf(id)
  const names = id.length > LONGEST_ID_COMPARED ? [] : callableNames(context, principal, endpoint?.kind)
  const nearest = nearestName(
    id,
    names.filter((name) => !(generationOf(name) < generation)),
  )
  const remedy = isUnpriced
    ? ' No catalog knows it, and billing is on: the operator can allow it with a price, or with unknownModels.'
    : ''
  const hint =
    nearest === undefined ? '. GET /v1/models lists the models.' : `; did you mean ${JSON.stringify(nearest)}?`
  return new GatewayError('model_not_found', {
    message: `There is no ${isUnpriced ? 'price for the ' : ''}model ${JSON.stringify(shown(id))}${hint}${remedy}`,
    param: 'model',
    status: endpoint?.unknownModel?.status,
    publicCode: endpoint?.unknownModel?.code,
  })
}

/** Returns the first number of a version, or `NaN` if the id has none. Models with a lower number are older. */
function generationOf(id: string): number {
  return versionOf(id)[0] ?? Number.NaN
}

/** The time of a comparison grows with the length of the id, which is the caller's. */
const LONGEST_ID_COMPARED = 80

/** Ids and aliases, the newest model first; an alias that is the id of another model stands for that one. */
function callableNames(context: PipelineContext, { scopes }: Principal, kind: string | undefined): string[] {
  const { catalog } = context
  const isUnpriced = isUnpricedBy(context)
  const isCallable = (model: CatalogModel): boolean =>
    (kind === undefined || model.kinds.some((one) => one === kind)) &&
    isInScope(scopes?.models, model) &&
    isConfigured(context, model) &&
    !isUnpriced(model)
  const models = catalog
    .list()
    .filter(isCallable)
    .sort((one, other) => newerFirst(one.id, other.id))
  const ids = models.map(({ id }) => id)
  const aliases = models.flatMap((model) => model.aliases.filter((alias) => catalog.find(alias) === model))
  return [...ids, ...aliases]
}

const LONGEST_ID_SHOWN = 200

/** Callers' text is repeated to them, up to a limit. */
function shown(id: string): string {
  return id.length <= LONGEST_ID_SHOWN ? id : `${id.slice(0, LONGEST_ID_SHOWN)}...`
}
