import { GatewayError } from '../core/errors.ts'
import type { ChunkedAnswer, Operation } from '../endpoints/operation.ts'
import type { RouteCandidate } from '../routing/route-candidate.ts'
import { Selection } from '../routing/selection.ts'
import { stickyKey } from '../routing/sticky-key.ts'
import { attempt, attemptAnswered, type UnstreamedOutcome } from './attempt.ts'
import type { Candidate, Reserved } from './call-record.ts'
import { CandidateCall } from './candidate-call.ts'
import { noLargerModels, passOverSmallModels } from './context-window.ts'
import { endAttempt, type RequestTime } from './end-attempt.ts'
import { type AttemptFailure, failureOfVendor, mayStillRun } from './error-classification.ts'
import { abandonedUsage, chargesBroken, type FailedAttempt, failedAttempt, failedUsage, told } from './failed-usage.ts'
import { hedge, mayHedge } from './hedge.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { prepareIfAble, prepareOperation } from './prepare-operation.ts'
import { costAt } from './pricing.ts'
import type { Routed } from './route.ts'
import { estimatedUsage, generatesTokens } from './usage-estimate.ts'
import {
  type CallEnding,
  failedResponse,
  type JsonResponse,
  refusedEnding,
  StreamResponse,
  type VendorResponse,
} from './vendor-response.ts'

/** Most attempts at one candidate. */
const MAX_ATTEMPTS_PER_CANDIDATE = 2

/** How long a paid whole answer is awaited for a caller who has left, unless the policy drains; at most `drainMs`. */
const WHOLE_ANSWER_WAIT_MS = 10_000

/**
 * Calls one candidate after another until one answers. A retry, at another or the same candidate, is made only while
 * nothing has reached the caller, and within the retry budget. Never throws for a vendor's fault; the response says in
 * every case what to charge.
 * @param remainingMs What is left of the request's time, where a call was answered before; absent: all of it.
 */
export async function dispatch(
  context: PipelineContext,
  routed: Routed,
  remainingMs?: number,
): Promise<VendorResponse> {
  const { call, candidates } = routed
  const scope = call.calls
  const isPaidWhole = !call.isStream && call.hold !== undefined && generatesTokens(call.estimate)
  const time: RequestTime = { isOver: false }
  // Of the call under way: what it uses is told by its report only, or by its end.
  let reasonsUnseen = false
  let isMaking = false
  const over = (): void => {
    time.isOver = true
    scope.abort()
  }
  const deadline = remainingMs === undefined ? context.deadlines.add(over) : context.clock.schedule(remainingMs, over)
  // A caller who disconnected before anything was sent ends the request under every policy.
  if (call.caller.isDisconnected) scope.abort()
  // A task outlives its request, so a disconnect during its submission does not abort it.
  if (call.endpoint.task === undefined)
    call.caller.onDisconnect(() => abandon(context, call, { reasonsUnseen, isMaking }))
  context.retryBudget.deposit()
  let last: LastFailure | undefined
  let asking: CandidateCall | undefined
  try {
    const selection = selectionOf(context, routed)
    let candidate = selection === undefined ? candidates[0] : nextOf(context, selection)
    let attempts = 1
    while (candidate !== undefined && !scope.isAborted) {
      const prepared = maySkip(routed, candidate, selection, last)
        ? prepareIfAble(context, call, candidate)
        : prepareOperation(context, call, candidate)
      let operation: Operation | undefined = prepared instanceof Promise ? await prepared : prepared
      if (operation === undefined) {
        selection?.skip(candidate)
        candidate = selection && nextOf(context, selection)
        continue
      }
      selection?.asked(candidate)
      reasonsUnseen = operation.reasonsUnseen === true
      isMaking = isPaidWhole
      let outcome: UnstreamedOutcome
      if (selection !== undefined && mayHedge(context, call)) {
        ;({ candidate, operation, outcome } = await hedge(context, call, { candidate, operation }, { selection, time }))
        reasonsUnseen = operation.reasonsUnseen === true
      } else {
        asking = new CandidateCall(context, candidate, call)
        const tried = await attempt(context, candidate.vendor, operation, {
          isStream: call.isStream,
          isTask: call.endpoint.task !== undefined,
          scope,
          credentials: candidate.key.credentials,
          transport: asking.transport,
        })
        const asked = asking
        asking = undefined
        if (tried.kind === 'stream') {
          asked.opened()
          return new StreamResponse(tried.call, asked, { dropped: droppedBy(operation), reasonsUnseen }, deadline)
        }
        outcome = endAttempt(asked, tried, { requestId: call.requestId, scope, time })
      }
      if (outcome.kind === 'json') {
        deadline.cancel()
        return jsonResponse(call, { candidate, operation, outcome })
      }
      const { failure } = outcome
      last = failedAttempt(call, candidate, failure, { reasonsUnseen, isMaking })
      // Nothing is tried again for a caller who has left.
      if (call.caller.isDisconnected && call.endpoint.task === undefined) break
      if (scope.isAborted || (call.endpoint.isPaidJob === true && mayCostTwice(failure))) break
      if (!call.isStream && !context.routing.retryAfterTimeout && mayStillRun(failure)) break
      // It is charged, and another answer would be too.
      const isBilled = (last.unreported ?? failure.billedUsage) !== undefined
      if (chargesBroken(context, call) && failure.answerBytes !== undefined && isBilled) break
      if (attempts < MAX_ATTEMPTS_PER_CANDIDATE && mayRepeat(context, last, selection)) attempts++
      else {
        attempts = 1
        candidate = candidateAfter(context, call, last, selection)
      }
      // What is asked for again is told here; of the last attempt the end decides.
      if (candidate !== undefined) last = told(context, call, last)
    }
  } catch (error) {
    deadline.cancel()
    scope.abort()
    asking?.ignored()
    // The vendor was called: a task must not be treated as unsubmitted.
    if (asking !== undefined && call.endpoint.task !== undefined)
      return { ...failedResponse(error), candidate: asking.candidate, mayHaveBegun: true }
    throw asking !== undefined && call.endpoint.isPaidJob === true ? finalError(error) : error
  }
  deadline.cancel()
  return failed(context, call, last, { isOverdue: time.isOver, isUnseen: reasonsUnseen || isMaking })
}

/** The caller has left: ends the calls, or reads them on where only their end tells what the vendor bills. */
function abandon(
  { disconnects, clock }: PipelineContext,
  { calls, endpoint, cachePlan }: Reserved,
  { reasonsUnseen, isMaking }: { readonly reasonsUnseen: boolean; readonly isMaking: boolean },
): void {
  const left = { endpointId: endpoint.id, isUnseen: reasonsUnseen }
  if (cachePlan?.flight?.isAwaited === true) {
    // Others wait for the answer.
    if (!calls.awaitUsage(disconnects, disconnects.drainMs, clock)) calls.abort()
    return
  }
  if (!isMaking || disconnects.drains(left)) calls.abandon(disconnects, left, clock)
  else if (!calls.awaitUsage(disconnects, Math.min(WHOLE_ANSWER_WAIT_MS, disconnects.drainMs), clock)) calls.abort()
}

/** How a request selects among its candidates; undefined if there is only one. */
function selectionOf(context: PipelineContext, { call, candidates }: Routed): Selection | undefined {
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
function nextOf(context: PipelineContext, selection: Selection): RouteCandidate | undefined {
  return selection.next(context.clock.now(), context.retryBudget.left > 0)
}

/**
 * Could a retry run a paid job twice? Not if no byte was sent, or if the vendor refused explicitly: too busy, not for this
 * key, not now. After any other vendor fault the state of the job is unknown.
 */
function mayCostTwice(failure: AttemptFailure): boolean {
  return failure.wasSent && (failure.mayHaveBegun || (failure.outcome === 'failing' && failure.status !== 503))
}

type LastFailure = FailedAttempt<RouteCandidate>

/**
 * A fallback that does not support the request is skipped, and so is a route while another one remains. The last route of
 * the requested model reports to the caller what is unsupported.
 */
function maySkip(
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
function mayRepeat(
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
function candidateAfter(
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

const NOTHING_DROPPED: readonly string[] = []

function jsonResponse(
  call: Reserved,
  {
    candidate,
    operation,
    outcome: { body, vendorRequestId, isRequestSent },
  }: {
    readonly candidate: Candidate
    readonly operation: Operation
    readonly outcome: Extract<UnstreamedOutcome, { kind: 'json' }>
  },
): JsonResponse {
  const ending = wholeEnding(call, body, operation)
  const dropped = droppedBy(operation)
  return { kind: 'json', body, candidate, dropped, ending, vendorRequestId, isRequestSent }
}

/** The response to a call that was answered otherwise than by dispatching it. No circuit learns of it. */
export function responseOf(
  context: PipelineContext,
  call: Reserved,
  asked: { readonly candidate: Candidate; readonly operation: Operation; readonly answer: ChunkedAnswer },
): VendorResponse {
  const { candidate, operation, answer } = asked
  const outcome = attemptAnswered(context, candidate.vendor, operation, answer)
  if (outcome.kind === 'json') return jsonResponse(call, { candidate, operation, outcome })
  const { failure } = outcome
  // Of errors that a vendor tells of, it bills none.
  if (answer.status >= 300) return { ...failedResponse(failure.error), candidate }
  const reasonsUnseen = operation.reasonsUnseen === true
  const last = failedAttempt(call, candidate, failure, { reasonsUnseen, isMaking: false })
  return failed(context, call, last, { isOverdue: false, isUnseen: reasonsUnseen })
}

function droppedBy(operation: Operation): readonly string[] {
  return operation.requests[0]?.dropped ?? NOTHING_DROPPED
}

function wholeEnding(
  call: Reserved,
  { chunks, usage, outputBytes, isRefusal }: UnstreamedBody,
  { reasonsUnseen: isUnseen = false }: Operation,
): CallEnding {
  if (isRefusal === true) return refusedEnding(usage)
  let byteLength = outputBytes ?? 0
  if (outputBytes === undefined) for (const chunk of chunks) byteLength += chunk.byteLength
  const estimated = estimatedUsage(call, { outputBytes: byteLength, isUnseen: isUnseen && usage === undefined })
  const textBytes = isUnseen && usage?.reasoningTokens === undefined ? undefined : outputBytes
  return { kind: 'completed', usage, estimatedUsage: estimated, textBytes, error: undefined }
}

type UnstreamedBody = Extract<UnstreamedOutcome, { kind: 'json' }>['body']

interface FailureFacts {
  readonly isOverdue: boolean
  readonly isUnseen: boolean
}

function failed(
  context: PipelineContext,
  call: Reserved,
  last: FailedAttempt | undefined,
  { isOverdue, isUnseen }: FailureFacts,
): VendorResponse {
  const candidate = last?.candidate
  const mayHaveBegun = last?.failure.mayHaveBegun === true
  if (call.caller.isDisconnected && call.endpoint.task === undefined) {
    const error = new GatewayError('client_closed_request')
    const ending: CallEnding = { kind: 'abandoned', ...abandonedUsage(context, call, last, isUnseen), error }
    return { kind: 'failed', error, candidate, mayHaveBegun, ending }
  }
  const cause = isOverdue
    ? new GatewayError('upstream_timeout')
    : (last?.failure ?? failureOfVendor({ kind: 'unavailable', status: 0, message: 'no candidate was called' })).error
  // If the gateway may not retry, the caller's client must not retry either.
  const isFinal = call.endpoint.isPaidJob === true && last !== undefined && mayCostTwice(last.failure)
  const error = isFinal ? finalError(cause) : cause
  const ending: CallEnding = { kind: 'failed', ...failedUsage(context, call, last), error }
  return { kind: 'failed', error, candidate, mayHaveBegun, ending }
}

/** The same error, with `x-should-retry: false`: a vendor may be running a paid job. */
function finalError(cause: unknown): GatewayError {
  const error = GatewayError.from(cause)
  return new GatewayError(error.code, { ...error, message: error.message, cause: error.cause, retryable: false })
}
