import type { CatalogModel } from '../catalog/model.ts'
import { GatewayError } from '../core/errors.ts'
import type { RouteCandidate } from '../routing/route-candidate.ts'
import type { Reserved } from './call-record.ts'
import { canContinue, notFound } from './continuation.ts'
import type { PipelineContext } from './pipeline-context.ts'

/** A request and every candidate that could answer it. */
export interface Routed {
  readonly call: Reserved
  /**
   * The requested model's candidates, then those of its fallbacks. Never empty. Selection decides later which of them to
   * call.
   */
  readonly candidates: readonly RouteCandidate[]
}

/**
 * Lists the candidates: those of the requested model by its routes and keys, then its fallbacks. A conversation whose history
 * only a vendor has continues only with the credential that started it, and state that callers carry returns to the one that made it.
 * @throws GatewayError `interaction_not_found` if such a credential is no longer configured; `model_not_configured` if no
 *   route of the model accepts this request.
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
    // What was recalled holds all of the history, which another key can be sent.
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
