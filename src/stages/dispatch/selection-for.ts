import { charge } from '../../catalog/prices/prices.ts'
import type { RouteCandidate } from '../../routing/route-candidate.ts'
import { Selection } from '../../routing/selection.ts'
import { stickyKey } from '../../routing/sticky-key.ts'
import { fieldsAskedOf } from '../charged-fields.ts'
import type { RoutedRequest } from '../route.ts'
import type { StageContext } from '../stage-context.ts'

/** How a request chooses between its candidates; undefined where there is no choice. */
export function selectionFor(context: StageContext, routed: RoutedRequest): Selection | undefined {
  const { candidates, routeOverride, endpoint, body, request, principal, isStream } = routed
  if (candidates.length < 2) return undefined
  const { strategy, fallback } = context.routing
  return new Selection(candidates, {
    strategy: routeOverride?.strategy ?? strategy,
    fallback: routeOverride?.fallback ?? fallback,
    isStream,
    // Only prompts are kept by vendors from one call to the next.
    stickyKey:
      endpoint.kind === 'chat' ? stickyKey(principal.accountId, body, (name) => request.header(name)) : undefined,
    body,
    costAt: (candidate) => costAt(context, routed, candidate),
  })
}

/** Whom to ask next. Only who can afford a retry finds out whether a vendor is well again. */
export function nextOf(context: StageContext, selection: Selection): RouteCandidate | undefined {
  return selection.next(context.clock.now(), context.retryBudget.left > 0)
}

/** By what the operator pays at the vendor (`vendor/upstream`) where the price list says so, else by the model's price. */
function costAt(context: StageContext, routed: RoutedRequest, { model, vendor }: RouteCandidate): bigint | undefined {
  const { prices } = context
  if (prices === undefined) return undefined
  const fields = fieldsAskedOf(vendor, routed)
  const rate = prices.quote(`${model.vendor}/${model.upstream}`, fields) ?? prices.quote(model.id, fields)
  return rate === undefined ? undefined : charge(rate, routed.estimate)
}
