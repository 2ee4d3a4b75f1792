import type { RouteCandidate } from '../routing/route-candidate.ts'
import { Selection } from '../routing/selection.ts'
import { stickyKey } from '../routing/sticky-key.ts'
import type { Reserved } from './call-record.ts'
import { noLargerModels, passOverSmallModels } from './context-window.ts'
import type { FailedAttempt } from './failed-usage.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { costAt } from './pricing.ts'
import type { Routed } from './route.ts'

/** Failed call and its candidate. */
export type LastFailure = FailedAttempt<RouteCandidate>

/** Creates the selection among a request's candidates; undefined if there is only one. */
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

/** Returns the next candidate. A half-open circuit is probed only while retry budget remains. */
export function nextOf(context: PipelineContext, selection: Selection): RouteCandidate | undefined {
  return selection.next(context.clock.now(), context.retryBudget.left > 0)
}

/**
 * Whether to skip a candidate that does not support the request: a fallback, or a route if another one remains. The last route of
 * the requested model reports the unsupported part to the caller.
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

/** Whether to retry the same vendor once: only if the model has no alternative and the circuit is not open. */
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

/** Returns the candidate after a failure, or `undefined` if there is none. */
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
 * Returns the candidate after one whose context window was too small. It does not use the retry budget: the rejected call caused
 * no load at its vendor, and each model is called at most once.
 */
function largerAfter(
  context: PipelineContext,
  call: Reserved,
  { failure, candidate }: Pick<LastFailure, 'failure' | 'candidate'>,
  selection: Selection,
): RouteCandidate | undefined {
  // In other endpoints, the window does not limit a whole request.
  if (call.endpoint.outputBound === undefined) return undefined
  selection.exclude(noLargerModels(context, call, candidate.model.id))
  selection.failed(candidate, { status: failure.error.status, isOfKey: false })
  return nextOf(context, selection)
}
