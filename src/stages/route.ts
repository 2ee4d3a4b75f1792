import type { CatalogModel } from '../catalog/model.ts'
import { GatewayError } from '../core/errors.ts'
import type { RouteCandidate } from '../routing/route-candidate.ts'
import type { RouteOverride } from '../routing/routing-options.ts'
import { canContinue } from './conversation.ts'
import type { Reserved, Routed } from './records.ts'
import type { StageContext } from './stage-context.ts'

/** A request whose host decides on its way; set for requests within the process only, never for callers over HTTP. */
export interface HostRouted {
  readonly routeOverride?: RouteOverride | undefined
}

/** A request and everybody who could answer it. */
export interface RoutedRequest extends Routed, HostRouted {
  /** Those of the model asked for, then those of its fallbacks. Never empty. Whom of them to ask is decided when it is time. */
  readonly candidates: readonly RouteCandidate[]
}

/**
 * Lists who could answer: the model asked for by its routes and keys, then its fallbacks. A conversation goes on only with the
 * key with which it began.
 * @throws GatewayError `interaction_not_found` when the key that began a conversation is no longer configured;
 *   `model_not_configured` when no route of the model is for a request like this.
 */
export function route(context: StageContext, reserved: Reserved & HostRouted): RoutedRequest {
  const { chain, conversation, routeOverride } = reserved
  const [asked] = chain
  let candidates =
    chain.length === 1 && asked !== undefined
      ? candidatesOf(context, reserved, asked)
      : chain.flatMap((model) => candidatesOf(context, reserved, model))
  if (conversation?.previous !== undefined) {
    candidates = candidates.filter((candidate) => canContinue(reserved, candidate))
    if (candidates.length === 0) throw new GatewayError('interaction_not_found', { param: 'previous_interaction_id' })
  }
  if (routeOverride?.vendor !== undefined)
    candidates = candidates.filter(({ vendor }) => vendor.id === routeOverride.vendor)
  if (candidates.length === 0) throw noRoute(reserved)
  return Object.assign(reserved, { candidates })
}

function candidatesOf(context: StageContext, reserved: Reserved, model: CatalogModel): readonly RouteCandidate[] {
  return context.routes.candidatesOf(model, reserved.endpoint.kind, reserved.billingFields)
}

function noRoute(reserved: Reserved): GatewayError {
  return new GatewayError('model_not_configured', {
    message: `The model ${JSON.stringify(reserved.body.model)} has no route here for a request like this.`,
    param: 'model',
  })
}
