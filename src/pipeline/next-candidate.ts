import type { RouteCandidate } from '../routing/route-candidate.ts'
import { Selection } from '../routing/selection.ts'
import { stickyKey } from '../routing/sticky-key.ts'
import type { Reserved } from './call-record.ts'
import { noLargerModels, passOverSmallModels } from './context-window.ts'
import type { FailedAttempt } from './failed-usage.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { costAt } from './pricing.ts'
import type { Routed } from './route.ts'

/** A call that failed, and where. */
export type LastFailure = FailedAttempt<RouteCandidate>

/** How a request selects among its candidates; undefined if there is only one. */
export function selectionOf(context: PipelineContext, { call, candidates }: Routed): Selection | undefined {
  if (candidates.length < 2) return undefined
  const { routeOverride, endpoint, body, request, principal, isStream } = call
  const { strategy, fallback } = context.routing
  const selection = new Selection(candidates, {
    strategy: routeOverride?.strategy ?? strategy,
    fallback: routeOverride?.fallback ?? fallback,
    isStream,
    stickyKey:
      endpoint.isSticky === true ? stickyKey(principal.accountId, body, (name) => request.header(name)) : undefined,
    conversation: () => endpoint.conversation?.(body) ?? body,
    costAt: (candidate) => costAt(context, call, candidate),
  })
  if (call.chain.length > 1) passOverSmallModels(context, call, selection)
  return selection
}

/** The next candidate. A half-open circuit is probed only while retry budget remains. */
export function nextOf(context: PipelineContext, selection: Selection): RouteCandidate | undefined {
  return selection.next(context.clock.now(), context.retryBudget.left > 0)
}

/**
 * A fallback that does not support the request is skipped, and so is a route while another one remains. The last route of
 * the requested model reports to the caller what is unsupported.
 */
export function maySkip(
  { candidates }: Routed,
  candidate: RouteCandidate,
  selection: Selection | undefined,
  last: LastFailure | undefined,
): boolean {
  if (selection === undefined) return false
  const isFallback = candidate.model.id !== candidates[0]?.model.id
  return isFallback || last !== undefined || selection.hasOtherRoute(candidate)
}

/** Retries the same vendor once if the model has no alternative and the circuit is not open. */
export function mayRepeat(
  context: PipelineContext,
  { failure, candidate }: LastFailure,
  selection: Selection | undefined,
): boolean {
  if (!failure.mayRetry) return false
  const nowMs = context.clock.now()
  if (candidate.circuitAt(nowMs) === 'open' || selection?.hasAlternative(candidate, nowMs) === true) return false
  return context.retryBudget.withdraw()
}

/** The candidate after a failure; undefined: none. */
export function candidateAfter(
  context: PipelineContext,
  call: Reserved,
  { failure, candidate }: LastFailure,
  selection: Selection | undefined,
): RouteCandidate | undefined {
  if (selection === undefined || !failure.mayFallBack) return undefined
  if (failure.isOversized === true) return largerAfter(context, call, { failure, candidate }, selection)
  const isOfKey = failure.outcome === 'refused' || failure.outcome === 'busy'
  selection.failed(candidate, { status: failure.error.status, isOfKey })
  const next = nextOf(context, selection)
  return next !== undefined && context.retryBudget.withdraw() ? next : undefined
}

/**
 * The candidate after one whose context window was too small. It takes nothing from the retry budget: the refused call was no load
 * for its vendor, and each model is asked at most once.
 */
function largerAfter(
  context: PipelineContext,
  call: Reserved,
  { failure, candidate }: Pick<LastFailure, 'failure' | 'candidate'>,
  selection: Selection,
): RouteCandidate | undefined {
  // A window of other endpoints is not that of a whole request.
  if (call.endpoint.outputBound === undefined) return undefined
  selection.exclude(noLargerModels(context, call, candidate.model.id))
  selection.failed(candidate, { status: failure.error.status, isOfKey: false })
  return nextOf(context, selection)
}
