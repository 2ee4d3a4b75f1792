// See docs/decisions/0025-context-windows.md.

import type { CatalogModel } from '../catalog/model.ts'
import { GatewayError } from '../core/errors.ts'
import { isPending } from '../core/maybe-promise.ts'
import type { ChunkedAnswer, Operation } from '../endpoints/operation.ts'
import type { CallOutcome, CircuitState, Probed, RouteCandidate } from '../routing/candidate.ts'
import { Selection } from '../routing/selection.ts'
import type { Transport } from '../transport/transport.ts'
import type { AttemptRecord } from '../usage/usage-record.ts'
import { byteLengthOf } from '../wire/chunks.ts'
import type { AbortScope } from './abort-scope.ts'
import { attempt, attemptAnswered, type UnstreamedOutcome } from './attempt.ts'
import type { AttemptObservation } from './call-observation.ts'
import type { Attempt, Candidate, Reserved } from './call-record.ts'
import type { WatchedAttempt, WatchedCall } from './call-timers.ts'
import { abandonedUsage, type FailedAttempt, failedAttempt, failedUsage, told, WHOLE_ANSWER_WAIT_MS } from './charge.ts'
import {
  type AttemptFailure,
  failureOfTransport,
  failureOfVendor,
  mayStillRun,
  OVERSIZED,
} from './error-classification.ts'
import { contextTokensOf, estimatedUsage, generatesTokens, stickyKey, toldWithoutQuotes } from './estimate.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'
import { prepareOperation } from './prepare-operation.ts'
import { costAt } from './pricing.ts'
import { canContinue, notFound } from './stored-answers.ts'
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
 */
export async function dispatch(context: PipelineContext, { call, candidates }: Routed): Promise<VendorResponse> {
  const { calls, endpoint, requestId, isStream } = call
  const isTask = endpoint.task !== undefined
  const facts: FailureFacts = { isOverdue: false, hasHiddenReasoning: false, isMaking: false }
  // If the caller disconnects before anything was sent, the request ends under every policy.
  if (call.caller.isDisconnected) calls.abort()
  // A task outlives its request, so a disconnect during its submission does not abort it.
  if (!isTask) call.caller.onDisconnect(() => abandon(context, call, facts))
  context.retryBudget.deposit()
  const deadline = context.deadlines.add(() => {
    facts.isOverdue = true
    calls.abort('overdue')
  })
  let calling: CandidateCall | undefined
  let last: LastFailure | undefined
  try {
    const selection = selectionOf(context, call, candidates)
    let candidate = selection === undefined ? candidates[0] : nextOf(context, selection)
    /** Number of consecutive calls of this candidate, including the current one. */
    let attempts = 1
    for (;;) {
      calls.releaseMemory()
      if (candidate === undefined || calls.isAborted) break
      let operation: Operation
      try {
        const prepared = prepareOperation(context, call, candidate)
        operation = isPending(prepared) ? await prepared : prepared
      } catch (cause) {
        if (maySkip(candidates, candidate, selection, last) && GatewayError.from(cause).status < 500) {
          selection?.skip(candidate)
          candidate = selection && nextOf(context, selection)
          continue
        }
        if (calls.isAborted) break
        throw cause
      }
      selection?.asked(candidate)
      facts.hasHiddenReasoning = operation.hasHiddenReasoning === true
      facts.isMaking = !isStream && call.hold !== undefined && generatesTokens(call.estimate)
      const watched = new CandidateCall(context, candidate, call)
      calling = watched
      const { credentials } = candidate.key
      const tried = await attempt(context, candidate.vendor, operation, {
        isStream,
        isTask,
        scope: calls,
        credentials,
        watched,
      })
      calling = undefined
      const dropped = droppedBy(operation)
      if (tried.kind === 'stream') {
        watched.opened()
        return new StreamResponse(
          tried.call,
          watched,
          { dropped, hasHiddenReasoning: facts.hasHiddenReasoning },
          deadline,
        )
      }
      const outcome = endAttempt(watched, tried, { requestId, scope: calls, isOverdue: facts.isOverdue })
      if (outcome.kind === 'json') {
        deadline.cancel()
        return jsonResponse(call, { candidate, operation, outcome })
      }
      last = failedAttempt(call, candidate, outcome.failure, facts)
      if (isDecisive(context, call, last)) break
      if (attempts < MAX_ATTEMPTS_PER_CANDIDATE && mayRepeat(context, last, selection)) attempts++
      else {
        attempts = 1
        candidate = candidateAfter(context, call, last, selection)
      }
      // An attempt that is retried is reported here; the last attempt is reported at the end.
      if (candidate !== undefined) last = told(context, call, last)
    }
    deadline.cancel()
    return failed(context, call, last, facts)
  } catch (error) {
    // A fault of the gateway or the host.
    deadline.cancel()
    calls.abort()
    calling?.ignored()
    // The vendor was called, so a task must not count as unsubmitted.
    if (calling !== undefined && isTask)
      return { ...failedResponse(error), candidate: calling.candidate, mayHaveBegun: true }
    throw calling !== undefined && endpoint.isPaidJob === true ? finalError(error) : error
  }
}

/** Whether this failure allows no retry. */
function isDecisive(context: PipelineContext, call: Reserved, { failure }: LastFailure): boolean {
  // No retry for a disconnected caller.
  if (call.caller.isDisconnected && call.endpoint.task === undefined) return true
  if (call.calls.isAborted || (call.endpoint.isPaidJob === true && mayBillTwice(failure))) return true
  return !call.isStream && !context.routing.retryAfterTimeout && mayStillRun(failure)
}

/** Handles a disconnected caller: ends the calls, or drains them if only their end contains the billed usage. */
function abandon(
  { disconnects, clock }: PipelineContext,
  { calls, endpoint, cachePlan }: Reserved,
  { hasHiddenReasoning, isMaking }: FailureFacts,
): void {
  const left = { endpointId: endpoint.id, isUnseen: hasHiddenReasoning }
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
function mayBillTwice(failure: AttemptFailure): boolean {
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
  const hasHiddenReasoning = operation.hasHiddenReasoning === true
  const facts = { hasHiddenReasoning, isMaking: false }
  return failed(context, call, failedAttempt(call, candidate, failure, facts), { isOverdue: false, ...facts })
}

function droppedBy(operation: Operation): readonly string[] {
  return operation.requests[0]?.dropped ?? NOTHING_DROPPED
}

function wholeEnding(
  call: Reserved,
  { chunks, usage, outputBytes, isRefusal }: UnstreamedBody,
  { hasHiddenReasoning: isUnseen = false }: Operation,
): CallEnding {
  if (isRefusal === true) return refusedEnding(usage)
  const facts = { outputBytes: outputBytes ?? byteLengthOf(chunks), isUnseen: isUnseen && usage === undefined }
  const estimated = estimatedUsage(call, facts)
  const textBytes = isUnseen && usage?.reasoningTokens === undefined ? undefined : outputBytes
  return { kind: 'completed', usage, estimatedUsage: estimated, textBytes, error: undefined }
}

type UnstreamedBody = Extract<UnstreamedOutcome, { kind: 'json' }>['body']

/** Facts of the current call. */
interface FailureFacts {
  /** Whether the total time of the request was exceeded. */
  isOverdue: boolean
  /** Whether only the report, or the end, of the call contains its usage. */
  hasHiddenReasoning: boolean
  /** Whether it is a paid whole answer of tokens, which is generated before any of it arrives. */
  isMaking: boolean
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
  const isFinal = call.endpoint.isPaidJob === true && last !== undefined && mayBillTwice(last.failure)
  const error = isFinal ? finalError(cause) : cause
  const ending: CallEnding = { kind: 'failed', ...failedUsage(last), error }
  return { kind: 'failed', error, candidate, mayHaveBegun, ending }
}

/** Returns the error with `x-should-retry: false`, because a vendor may be running a paid job. */
function finalError(cause: unknown): GatewayError {
  const error = GatewayError.from(cause)
  return new GatewayError(error.code, { ...error, message: error.message, cause: error.cause, retryable: false })
}

/** Failed call and its candidate. */
type LastFailure = FailedAttempt<RouteCandidate>

/** Creates the selection among a request's candidates; undefined if there is only one. */
function selectionOf(
  context: PipelineContext,
  call: Reserved,
  candidates: readonly RouteCandidate[],
): Selection | undefined {
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
function nextOf(context: PipelineContext, selection: Selection): RouteCandidate | undefined {
  return selection.next(context.clock.now(), context.retryBudget.left > 0)
}

/**
 * Whether to skip a candidate that does not support the request: a fallback, or a route if another one remains. The last route of
 * the requested model reports the unsupported part to the caller.
 */
function maySkip(
  candidates: readonly RouteCandidate[],
  candidate: RouteCandidate,
  selection: Selection | undefined,
  last: LastFailure | undefined,
): boolean {
  if (selection === undefined) return false
  const isFallback = candidate.model.id !== candidates[0]?.model.id
  return isFallback || last !== undefined || selection.hasOtherRoute(candidate)
}

/** Whether to retry the same vendor once: only if the model has no alternative and the circuit is not open. */
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

/** Returns the candidate after a failure, or `undefined` if there is none. */
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

/** The estimate is an upper one, so a model is skipped only if its window is exceeded by this factor. */
const OVERFLOW_FACTOR = 1.3

/** HTTP status with which vendors reject a request that is too large. */
const REFUSED_STATUS = 400

/**
 * Sends a request that certainly exceeds the context window of the requested model to the first fallback with a large enough
 * window, without a call that would fail. Models whose rows have no `contextTokens` are called.
 */
function passOverSmallModels(context: PipelineContext, call: Reserved, selection: Selection): void {
  const { chain, requestId } = call
  const asked = chain[0]!
  const { contextTokens } = asked.limits
  if (contextTokens === undefined) return
  const estimatedTokens = tokensOf(context, call, asked)
  if (estimatedTokens === undefined || estimatedTokens <= contextTokens * OVERFLOW_FACTOR) return
  const small = new Set<string>()
  let fallback: string | undefined
  for (const model of chain) {
    if (holds(context, call, model)) fallback ??= model.id
    else small.add(model.id)
  }
  if (fallback === undefined || !selection.passOver(small, REFUSED_STATUS)) return
  const facts = { requestId, model: asked.id, reason: OVERSIZED, estimatedTokens, contextTokens, fallback } as const
  emit(context, { type: 'model-skipped', ...facts })
  context.logger.info('a request is larger than the context window of its model', facts)
}

/** Returns the ids of the models that are too small: the model that rejected the request, and those with no larger window. */
function noLargerModels(context: PipelineContext, { chain }: Reserved, refusedBy: string): ReadonlySet<string> {
  const refused = chain.find(({ id }) => id === refusedBy)
  const window = refused && contextTokensOf(context, refused)
  const isNoLarger = (model: CatalogModel): boolean => {
    const other = window === undefined ? undefined : contextTokensOf(context, model)
    return window !== undefined && other !== undefined && other <= window
  }
  return new Set([refusedBy, ...chain.filter(isNoLarger).map(({ id }) => id)])
}

function holds(context: PipelineContext, call: Reserved, model: CatalogModel): boolean {
  const window = contextTokensOf(context, model)
  return window !== undefined && (tokensOf(context, call, model) ?? 0) <= window
}

/**
 * Returns the tokens of a request's text and its requested output, or undefined if its endpoint generates no text. Images, audio
 * and documents are ignored, because their estimates may be many times too high.
 */
function tokensOf(
  { estimateTokens }: PipelineContext,
  { endpoint, body, textBytes }: Reserved,
  { id }: CatalogModel,
): number | undefined {
  const { outputBound } = endpoint
  if (outputBound === undefined) return undefined
  return estimateTokens(textBytes, { endpoint: endpoint.id, model: id }) + (outputBound.of(body) ?? 0)
}

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

/** Context of a call that ends. */
interface EndedAttempt {
  readonly requestId: string
  readonly scope: AbortScope
  /** Whether the total time of the request was exceeded. */
  readonly isOverdue: boolean
}

/**
 * Reports the outcome of an unstreamed call to its candidate, and returns it. A call that was stopped by a timeout counts as a
 * failure of its vendor; a call that was stopped for another reason counts for nothing.
 */
function endAttempt(
  asked: CandidateCall,
  tried: UnstreamedOutcome,
  { requestId, scope, isOverdue }: EndedAttempt,
): UnstreamedOutcome {
  const outcome = isOverdue ? overdue(tried) : aboutModel(tried, asked.candidate.model)
  if (outcome.kind === 'json') asked.answered()
  else if (scope.isAborted && !isOverdue) asked.ignored()
  else asked.failed(requestId, outcome.failure)
  return outcome
}

/** An id that no catalog knows is the caller's own text, so a vendor without such a model blames the caller, and no alert is sent. */
function aboutModel(outcome: UnstreamedOutcome, { family }: CatalogModel): UnstreamedOutcome {
  const problem = outcome.kind === 'failed' ? outcome.failure.operatorProblem : undefined
  if (family === undefined || problem === undefined || problem.concerns === 'key') return outcome
  if (problem.status !== 400 && problem.status !== 404) return outcome
  return { kind: 'failed', failure: failureOfVendor({ ...problem, kind: 'caller' }) }
}

/** Returns the failure as a timeout of the vendor: the total time of the request was exceeded before it answered. */
function overdue(outcome: UnstreamedOutcome): UnstreamedOutcome {
  if (outcome.kind !== 'failed' || !outcome.failure.wasSent) return outcome
  const error = new Error('the total time of the request was exceeded')
  // Known facts of the answer are kept.
  const failure = { ...outcome.failure, ...failureOfTransport({ phase: 'sent', kind: 'timeout', error }) }
  return { kind: 'failed', failure }
}

/**
 * Call at a candidate, from its start to its outcome. Updates circuits, counts and latencies, and emits events for changes. Exactly
 * one of {@link answered}, {@link completed}, {@link failed}, {@link broken} and {@link ignored} ends it.
 */
class CandidateCall implements Attempt, WatchedAttempt, WatchedCall {
  readonly candidate: RouteCandidate
  readonly #context: PipelineContext
  readonly #call: Reserved
  readonly #startedAtMs: number
  readonly #requestedAtMs: number
  readonly #probed: Probed
  readonly #observation: AttemptObservation | undefined
  hasBytes = false
  isPaused = false
  #silentSinceMs: number
  #reportedSilenceMs = 0
  #endedAtMs: number | undefined = undefined
  #outcome: AttemptRecord['outcome'] = 'abandoned'
  #failure: AttemptFailure | undefined = undefined

  constructor(context: PipelineContext, candidate: RouteCandidate, call: Reserved) {
    this.candidate = candidate
    this.#context = context
    this.#call = call
    this.#startedAtMs = context.clock.now()
    this.#silentSinceMs = this.#startedAtMs
    this.#probed = candidate.begin(this.#startedAtMs, context.routes.nextTurn())
    this.#requestedAtMs = call.startedAtMs
    this.#observation = call.observation?.attempt(candidate, call)
    call.tries(this)
  }

  /** Transport of its requests. */
  get transport(): Transport {
    return this.#observation?.transport ?? this.#context.transport
  }

  watchSilence(silentMs: number): void {
    this.#reportedSilenceMs = silentMs
    this.#context.silenceWatch.add(this)
  }

  checkSilence(nowMs: number): boolean {
    if (this.hasBytes || this.isPaused) this.#silentSinceMs = nowMs
    this.hasBytes = false
    const silentMs = this.#reportedSilenceMs
    if (nowMs - this.#silentSinceMs < silentMs) return true
    const { key, model } = this.candidate
    const { requestId } = this.#call
    const named = { requestId, vendor: key.vendorId, credentialId: key.credentialId, model: model.id, silentMs }
    this.#context.logger.warn('a vendor sends nothing', named)
    emit(this.#context, { type: 'vendor-silent', ...named })
    return false
  }

  get hasFailed(): boolean {
    return this.#outcome === 'failed'
  }

  /** Returns the record of the call. A call in progress counts as abandoned. */
  recordUntil(nowMs: number): AttemptRecord {
    const { key, model } = this.candidate
    return {
      vendor: key.vendorId,
      credentialId: key.credentialId,
      model: model.id,
      outcome: this.#outcome,
      reason: this.#failure?.reason,
      status: this.#failure?.status,
      startMs: Math.max(0, this.#startedAtMs - this.#requestedAtMs),
      durationMs: Math.max(0, (this.#endedAtMs ?? nowMs) - this.#startedAtMs),
    }
  }

  /** Notes that a JSON response arrived. */
  answered(): void {
    const nowMs = this.#context.clock.now()
    this.candidate.answered(Math.max(0, nowMs - this.#startedAtMs), nowMs)
    this.#succeed(nowMs)
    this.#end('answered', nowMs)
    this.candidate.release()
    this.#observation?.ended('ok')
  }

  /**
   * Notes the first content of a stream, which closes a half-open circuit. For every other circuit only the end of the stream
   * counts, so that a vendor whose streams always break is detected.
   */
  opened(): void {
    const { candidate } = this
    const nowMs = this.#context.clock.now()
    candidate.opened(Math.max(0, nowMs - this.#startedAtMs), nowMs)
    this.#observation?.opened()
    if (candidate.key.circuit.isProbing || candidate.circuit.isProbing) this.#succeed(nowMs)
  }

  /** Notes that a stream completed. */
  completed(): void {
    const nowMs = this.#context.clock.now()
    this.#succeed(nowMs)
    this.#end('answered', nowMs)
    this.candidate.release()
    this.#observation?.ended('ok')
  }

  /** Notes that the vendor failed or rejected the call; emits an event. */
  failed(requestId: string, failure: AttemptFailure): void {
    this.#fail(failure.outcome, failure.retryAfterMs)
    this.#failure = failure
    this.candidate.release()
    this.#observation?.ended(failure.reason, failure.status, failure.error.code)
    report(this.#context, requestId, this.candidate, failure, this.#call.body)
  }

  /** Notes that a started stream was cut or failed; emits an event. */
  broken(requestId: string, failure: AttemptFailure): void {
    this.#fail('failing', undefined)
    this.#failure = failure
    this.candidate.release()
    // The body was released when the stream began.
    report(this.#context, requestId, this.candidate, failure, undefined)
    this.#observation?.ended('broken', undefined, 'upstream_unavailable')
  }

  /** Notes that the gateway ended the call, which does not count for or against the vendor. */
  ignored(): void {
    this.#fail('ignored', undefined)
    this.candidate.release()
    this.#observation?.ended('aborted')
  }

  #end(outcome: AttemptRecord['outcome'], nowMs: number): void {
    this.#outcome = outcome
    this.#context.silenceWatch.delete(this)
    this.#endedAtMs = nowMs
  }

  #succeed(nowMs: number): void {
    const { candidate } = this
    const { key, circuit: ofModel } = candidate
    const ofKey = key.circuit
    candidate.succeeded(nowMs)
    if (ofKey === key.circuit && ofModel === candidate.circuit) return
    this.#emitClosed(undefined, ofKey, key.circuit)
    this.#emitClosed(candidate.model.id, ofModel, candidate.circuit)
  }

  #fail(outcome: CallOutcome, retryAfterMs: number | undefined): void {
    const { candidate } = this
    const { key, circuit: ofModel } = candidate
    const ofKey = key.circuit
    const nowMs = this.#context.clock.now()
    candidate.failed(outcome, retryAfterMs, nowMs, this.#probed)
    this.#end(outcome === 'ignored' ? 'abandoned' : 'failed', nowMs)
    this.#emitOpened(undefined, ofKey, key.circuit)
    this.#emitOpened(candidate.model.id, ofModel, candidate.circuit)
    // A rejection of the caller's input shows that the vendor works.
    this.#emitClosed(undefined, ofKey, key.circuit)
    this.#emitClosed(candidate.model.id, ofModel, candidate.circuit)
  }

  #emitOpened(model: string | undefined, before: CircuitState, after: CircuitState): void {
    const { reason, openUntilMs: untilMs } = after
    if (untilMs === before.openUntilMs || reason === undefined) return
    const { vendorId: vendor, credentialId } = this.candidate.key
    emit(this.#context, { type: 'circuit-opened', vendor, credentialId, model, reason, untilMs })
    const until = new Date(untilMs).toISOString()
    this.#context.logger.warn('a circuit opened', { vendor, credentialId, model, reason, until })
  }

  #emitClosed(model: string | undefined, before: CircuitState, after: CircuitState): void {
    if (before.openUntilMs === 0 || after.openUntilMs !== 0) return
    const { vendorId: vendor, credentialId } = this.candidate.key
    emit(this.#context, { type: 'circuit-closed', vendor, credentialId, model })
    this.#context.logger.info('a circuit closed', { vendor, credentialId, model })
  }
}

/** Emits one event and one log line, and another event if the operator must act. */
function report(
  context: PipelineContext,
  requestId: string,
  candidate: RouteCandidate,
  failure: AttemptFailure,
  body: object | undefined,
): void {
  const { vendorId: vendor, credentialId } = candidate.key
  const model = candidate.model.id
  const { reason, status, operatorProblem } = failure
  const { code, vendorRequestId } = failure.report
  const { message, problem: problemText } = toldWithoutQuotes(failure, body)
  emit(context, {
    type: 'attempt-failed',
    requestId,
    vendor,
    credentialId,
    model,
    reason,
    status,
    code,
    message,
    vendorRequestId,
  })
  if (operatorProblem !== undefined) {
    const problem = { status: operatorProblem.status, code: operatorProblem.code, message: problemText }
    emit(context, { type: 'vendor-account-problem', requestId, vendor, ...problem })
  }
  const level = operatorProblem !== undefined ? 'error' : failure.outcome === 'caller-error' ? 'info' : 'warn'
  const said = { vendorCode: code, vendorMessage: message, vendorRequestId }
  context.logger[level]('a vendor call failed', { requestId, vendor, credentialId, model, reason, status, ...said })
}
