import { newerFirst, versionOf } from '../catalog/id-pattern.ts'
import type { CatalogModel } from '../catalog/model.ts'
import { isInScope } from '../catalog/model-scope.ts'
import { GatewayError } from '../core/errors.ts'
import { nearestName } from '../core/known-members.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { Principal } from '../stores/principal.ts'
import { isConfigured, type PipelineContext } from './pipeline-context.ts'
import { isUnpricedBy } from './unpriced-models.ts'

/** Caller and place of a request for a model. */
export interface ModelQuestion {
  readonly principal: Principal
  /** Endpoint of the request. If omitted, models of every kind are suggested. */
  readonly endpoint?: Pick<Endpoint, 'kind' | 'unknownModel'>
  /** Whether a vendor claims the id, but billing is on and it has no price. */
  readonly isUnpriced?: boolean
}

/**
 * Returns the error for an unknown model: `model_not_found`, or the endpoint's own. It suggests a similar model of the same
 * generation or a newer one. It never names a model that the caller's key may not use, whose vendor has no key, or that has no
 * price while billing is on.
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

/** The time of a comparison grows with the length of the id, which the caller chooses. */
const LONGEST_ID_COMPARED = 80

/** Returns ids and aliases, newest model first. An alias that is the id of another model stands for that model. */
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

/** Repeats a text of the caller, up to a maximum length. */
function shown(id: string): string {
  return id.length <= LONGEST_ID_SHOWN ? id : `${id.slice(0, LONGEST_ID_SHOWN)}...`
}
