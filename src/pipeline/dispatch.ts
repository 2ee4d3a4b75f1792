import type { Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { ChunkedAnswer, Operation } from '../endpoints/operation.ts'
import type { RouteCandidate } from '../routing/route-candidate.ts'
import type { Selection } from '../routing/selection.ts'
import { type AttemptOutcome, attempt, attemptAnswered, type UnstreamedOutcome } from './attempt.ts'
import type { Candidate, Reserved } from './call-record.ts'
import { CandidateCall } from './candidate-call.ts'
import { endAttempt, type RequestTime } from './end-attempt.ts'
import { type AttemptFailure, mayStillRun } from './error-classification.ts'
import {
  abandonedUsage,
  chargesBroken,
  type FailedAttempt,
  failedAttempt,
  failedUsage,
  told,
  WHOLE_ANSWER_WAIT_MS,
} from './failed-usage.ts'
import { type HedgeResult, hedge, mayHedge } from './hedge.ts'
import { candidateAfter, type LastFailure, mayRepeat, maySkip, nextOf, selectionOf } from './next-candidate.ts'
import type { PipelineContext } from './pipeline-context.ts'
import { prepareIfAble, prepareOperation } from './prepare-operation.ts'
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

/** Maximum number of attempts at one candidate. */
const MAX_ATTEMPTS_PER_CANDIDATE = 2

/**
 * Calls one candidate after another until one answers. A retry, at another or the same candidate, is made only before the caller
 * has received anything, and within the retry budget. Never throws for a vendor's fault; the response always determines the
 * charge.
 * @param remainingMs Remaining time of the request after an earlier answered call. Defaults to the whole time.
 */
export function dispatch(context: PipelineContext, routed: Routed, remainingMs?: number): MaybePromise<VendorResponse> {
  return new Dispatching(context, routed, remainingMs).begin()
}

/**
 * Request on its way through its candidates: one is called, its call ends, and that is the answer or the next one is called.
 * Methods replace one `async` function, whose state would be twice as large, because every request keeps it while it waits.
 */
class Dispatching implements RequestTime {
  isOver = false
  readonly #context: PipelineContext
  readonly #routed: Routed
  readonly #deadline: Timer
  #selection: Selection | undefined = undefined
  #candidate: RouteCandidate | undefined = undefined
  /** Number of consecutive calls of this candidate, including the current one. */
  #attempts = 1
  // Current call: whether only its report, or its end, contains its usage.
  #reasonsUnseen = false
  #isMaking = false
  #last: LastFailure | undefined = undefined
  #asking: CandidateCall | undefined = undefined

  constructor(context: PipelineContext, routed: Routed, remainingMs: number | undefined) {
    this.#context = context
    this.#routed = routed
    const over = (): void => {
      this.isOver = true
      routed.call.calls.abort('overdue')
    }
    this.#deadline = remainingMs === undefined ? context.deadlines.add(over) : context.clock.schedule(remainingMs, over)
  }

  begin(): MaybePromise<VendorResponse> {
    const { call, candidates } = this.#routed
    const context = this.#context
    // If the caller disconnects before anything was sent, the request ends under every policy.
    if (call.caller.isDisconnected) call.calls.abort()
    // A task outlives its request, so a disconnect during its submission does not abort it.
    if (call.endpoint.task === undefined)
      call.caller.onDisconnect(() =>
        abandon(context, call, { reasonsUnseen: this.#reasonsUnseen, isMaking: this.#isMaking }),
      )
    context.retryBudget.deposit()
    try {
      this.#selection = selectionOf(context, this.#routed)
      this.#candidate = this.#selection === undefined ? candidates[0] : nextOf(context, this.#selection)
      return this.#next()
    } catch (error) {
      return this.#broken(error)
    }
  }

  #next(): MaybePromise<VendorResponse> {
    const { call } = this.#routed
    const candidate = this.#candidate
    call.calls.releaseMemory()
    if (candidate === undefined || call.calls.isAborted) return this.#failed()
    const prepared = maySkip(this.#routed, candidate, this.#selection, this.#last)
      ? prepareIfAble(this.#context, call, candidate)
      : prepareOperation(this.#context, call, candidate)
    return prepared instanceof Promise
      ? prepared
          .then(
            (operation) => this.#prepared(candidate, operation),
            (error) => this.#unprepared(error),
          )
          .catch((error) => this.#broken(error))
      : this.#ask(candidate, prepared)
  }

  /** @param operation Prepared operation, or `undefined` if the candidate does not support the request. */
  #prepared(candidate: RouteCandidate, operation: Operation | undefined): MaybePromise<VendorResponse> {
    if (operation !== undefined) return this.#ask(candidate, operation)
    this.#selection?.skip(candidate)
    this.#candidate = this.#selection && nextOf(this.#context, this.#selection)
    return this.#next()
  }

  /** The caller or the deadline ended the request during its preparation, or it cannot be sent. @throws the error of the latter. */
  #unprepared(error: unknown): VendorResponse {
    if (this.#routed.call.calls.isAborted) return this.#failed()
    throw error
  }

  #ask(candidate: RouteCandidate, operation: Operation): MaybePromise<VendorResponse> {
    const { call } = this.#routed
    const context = this.#context
    const selection = this.#selection
    selection?.asked(candidate)
    this.#reasonsUnseen = operation.reasonsUnseen === true
    this.#isMaking = !call.isStream && call.hold !== undefined && generatesTokens(call.estimate)
    if (selection !== undefined && mayHedge(context, call))
      return hedge(context, call, { candidate, operation }, { selection, time: this })
        .then((first) => this.#hedged(first))
        .catch((error) => this.#broken(error))
    const asking = new CandidateCall(context, candidate, call)
    this.#asking = asking
    return attempt(context, candidate.vendor, operation, {
      isStream: call.isStream,
      isTask: call.endpoint.task !== undefined,
      scope: call.calls,
      credentials: candidate.key.credentials,
      watched: asking,
    }).then(
      (tried) => this.#tried(asking, operation, tried),
      (error) => this.#broken(error),
    )
  }

  #hedged({ candidate, operation, outcome }: HedgeResult): MaybePromise<VendorResponse> {
    this.#candidate = candidate
    this.#reasonsUnseen = operation.reasonsUnseen === true
    return this.#ended(candidate, operation, outcome)
  }

  #tried(asked: CandidateCall, operation: Operation, tried: AttemptOutcome): MaybePromise<VendorResponse> {
    const { requestId, calls: scope } = this.#routed.call
    try {
      this.#asking = undefined
      if (tried.kind !== 'stream')
        return this.#ended(asked.candidate, operation, endAttempt(asked, tried, { requestId, scope, time: this }))
      asked.opened()
      const facts = { dropped: droppedBy(operation), reasonsUnseen: this.#reasonsUnseen }
      return new StreamResponse(tried.call, asked, facts, this.#deadline)
    } catch (error) {
      return this.#broken(error)
    }
  }

  #ended(candidate: RouteCandidate, operation: Operation, outcome: UnstreamedOutcome): MaybePromise<VendorResponse> {
    const { call } = this.#routed
    const context = this.#context
    if (outcome.kind === 'json') {
      this.#deadline.cancel()
      return jsonResponse(call, { candidate, operation, outcome })
    }
    const { failure } = outcome
    const last = failedAttempt(call, candidate, failure, {
      reasonsUnseen: this.#reasonsUnseen,
      isMaking: this.#isMaking,
    })
    this.#last = last
    if (isDecisive(context, call, last)) return this.#failed()
    if (this.#attempts < MAX_ATTEMPTS_PER_CANDIDATE && mayRepeat(context, last, this.#selection)) this.#attempts++
    else {
      this.#attempts = 1
      this.#candidate = candidateAfter(context, call, last, this.#selection)
    }
    // An attempt that is retried is reported here; the last attempt is reported at the end.
    if (this.#candidate !== undefined) this.#last = told(context, call, last)
    return this.#next()
  }

  #failed(): VendorResponse {
    this.#deadline.cancel()
    const facts = { isOverdue: this.isOver, reasonsUnseen: this.#reasonsUnseen, isMaking: this.#isMaking }
    return failed(this.#context, this.#routed.call, this.#last, facts)
  }

  /** Handles a fault of the gateway or the host. @throws the same fault. */
  #broken(error: unknown): VendorResponse {
    const { call } = this.#routed
    const asking = this.#asking
    this.#asking = undefined
    this.#deadline.cancel()
    call.calls.abort()
    asking?.ignored()
    // The vendor was called, so a task must not count as unsubmitted.
    if (asking !== undefined && call.endpoint.task !== undefined)
      return { ...failedResponse(error), candidate: asking.candidate, mayHaveBegun: true }
    throw asking !== undefined && call.endpoint.isPaidJob === true ? finalError(error) : error
  }
}

/** Whether this failure allows no retry. */
function isDecisive(context: PipelineContext, call: Reserved, { failure, unreported }: LastFailure): boolean {
  // No retry for a disconnected caller.
  if (call.caller.isDisconnected && call.endpoint.task === undefined) return true
  if (call.calls.isAborted || (call.endpoint.isPaidJob === true && mayCostTwice(failure))) return true
  if (!call.isStream && !context.routing.retryAfterTimeout && mayStillRun(failure)) return true
  // The attempt is charged, and a retry would be charged too.
  const isBilled = (unreported ?? failure.billedUsage) !== undefined
  return chargesBroken(context, call) && failure.answerBytes !== undefined && isBilled
}

/** Handles a disconnected caller: ends the calls, or drains them if only their end contains the billed usage. */
function abandon(
  { disconnects, clock }: PipelineContext,
  { calls, endpoint, cachePlan }: Reserved,
  { reasonsUnseen, isMaking }: { readonly reasonsUnseen: boolean; readonly isMaking: boolean },
): void {
  const left = { endpointId: endpoint.id, isUnseen: reasonsUnseen }
  if (cachePlan?.flight?.isAwaited === true) {
    // Other requests wait for the answer.
    if (!calls.awaitUsage(disconnects, disconnects.drainMs, clock)) calls.abort()
    return
  }
  if (!isMaking || disconnects.drains(left)) calls.abandon(disconnects, left, clock)
  else if (!calls.awaitUsage(disconnects, Math.min(WHOLE_ANSWER_WAIT_MS, disconnects.drainMs), clock)) calls.abort()
}

/**
 * Whether a retry could run a paid job twice. Not if no byte was sent, or if the vendor explicitly rejected the call as too busy,
 * or for its key. After any other vendor fault the state of the job is unknown.
 */
function mayCostTwice(failure: AttemptFailure): boolean {
  return failure.wasSent && (failure.mayHaveBegun || (failure.outcome === 'failing' && failure.status !== 503))
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

/** Returns the response to a call that was answered without dispatching. It affects no circuit. */
export function responseOf(
  context: PipelineContext,
  call: Reserved,
  asked: { readonly candidate: Candidate; readonly operation: Operation; readonly answer: ChunkedAnswer },
): VendorResponse {
  const { candidate, operation, answer } = asked
  const outcome = attemptAnswered(context, candidate.vendor, operation, answer)
  if (outcome.kind === 'json') return jsonResponse(call, { candidate, operation, outcome })
  const { failure } = outcome
  // A vendor bills nothing for the errors that it reports.
  if (answer.status >= 300) return { ...failedResponse(failure.error), candidate }
  const reasonsUnseen = operation.reasonsUnseen === true
  const facts = { reasonsUnseen, isMaking: false }
  return failed(context, call, failedAttempt(call, candidate, failure, facts), { isOverdue: false, ...facts })
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
  readonly reasonsUnseen: boolean
  readonly isMaking: boolean
}

function failed(
  context: PipelineContext,
  call: Reserved,
  last: FailedAttempt | undefined,
  { isOverdue, ...facts }: FailureFacts,
): VendorResponse {
  const candidate = last?.candidate
  const mayHaveBegun = last?.failure.mayHaveBegun === true
  const { refusal } = call.calls
  if ((refusal !== undefined || call.caller.isDisconnected) && call.endpoint.task === undefined) {
    const error = refusal ?? new GatewayError('client_closed_request')
    const ending: CallEnding = { kind: 'abandoned', ...abandonedUsage(context, call, last, facts), error }
    return { kind: 'failed', error, candidate, mayHaveBegun, ending }
  }
  const cause = isOverdue
    ? new GatewayError('upstream_timeout')
    : (last?.failure.error ?? new GatewayError(call.calls.isAborted ? 'gateway_closing' : 'upstream_unavailable'))
  // If the gateway may not retry, neither may the caller's client.
  const isFinal = call.endpoint.isPaidJob === true && last !== undefined && mayCostTwice(last.failure)
  const error = isFinal ? finalError(cause) : cause
  const ending: CallEnding = { kind: 'failed', ...failedUsage(context, call, last), error }
  return { kind: 'failed', error, candidate, mayHaveBegun, ending }
}

/** Returns the error with `x-should-retry: false`, because a vendor may be running a paid job. */
function finalError(cause: unknown): GatewayError {
  const error = GatewayError.from(cause)
  return new GatewayError(error.code, { ...error, message: error.message, cause: error.cause, retryable: false })
}
