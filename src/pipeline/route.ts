import type { CatalogModel } from '../catalog/model.ts'
import { GatewayError } from '../core/errors.ts'
import type { RouteCandidate } from '../routing/route-candidate.ts'
import type { Reserved } from './call-record.ts'
import { canContinue, notFound } from './continuation.ts'
import type { PipelineContext } from './pipeline-context.ts'

/** Request and all candidates that could answer it. */
export interface Routed {
  readonly call: Reserved
  /**
   * Candidates of the requested model, then those of its fallbacks. Never empty. The selection decides later which of them to
   * call.
   */
  readonly candidates: readonly RouteCandidate[]
}

/**
 * Lists the candidates: those of the requested model by its routes and keys, then its fallbacks. If only a vendor has the history of a
 * conversation, it continues with the credential that started it, and state that callers carry returns to the credential that created it.
 * @throws GatewayError `interaction_not_found` if such a credential is no longer configured; `model_not_configured` if no route of the
 *   model accepts this request.
 */
export function route(context: PipelineContext, call: Reserved): Routed {
  const { chain, continued, routeOverride } = call
  const asked = chain[0]
  let candidates =
    chain.length === 1 && asked !== undefined
      ? candidatesOf(context, call, asked)
      : chain.flatMap((model) => candidatesOf(context, call, model))
  candidates = context.stateMakers.able(call, candidates)
  if (continued?.previous !== undefined) {
    const able = candidates.filter((candidate) => canContinue(call, candidate))
    // A recalled request contains the whole history, which another key can process.
    if (able.length === 0 && continued.recalled === undefined) throw notFound(call)
    if (able.length > 0) candidates = able
  }
  if (routeOverride?.vendor !== undefined)
    candidates = candidates.filter(({ vendor }) => vendor.id === routeOverride.vendor)
  if (candidates.length === 0) throw noRoute(call)
  return { call, candidates }
}

function candidatesOf(context: PipelineContext, call: Reserved, model: CatalogModel): readonly RouteCandidate[] {
  return context.routes.candidatesOf(model, call.endpoint.kind, call.billingFields)
}

function noRoute({ body }: Reserved): GatewayError {
  return new GatewayError('model_not_configured', {
    message: `The model ${JSON.stringify(body.model)} has no route here for a request like this.`,
    param: 'model',
  })
}
