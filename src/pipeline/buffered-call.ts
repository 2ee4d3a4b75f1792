import type { ChunkedAnswer } from '../endpoints/operation.ts'
import type { CallOutcome, CircuitState, Probed, RouteCandidate } from '../routing/candidate.ts'
import type {
  Transport,
  TransportControl,
  TransportFailure,
  TransportHandler,
  TransportRequest,
} from '../transport/transport.ts'
import type { AttemptRecord } from '../usage/usage-record.ts'
import { firstHeader, type HeaderMap, NO_HEADERS } from '../wire/headers.ts'
import type { AttemptObservation } from './call-observation.ts'
import type { Attempt, Reserved } from './call-record.ts'
import type { AttemptFailure } from './error-classification.ts'
import { toldWithoutQuotes } from './estimate.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'
import type { VendorActivity, WatchedAttempt, WatchedCall } from './silence-watch.ts'

/** Maximum size of a response that is buffered for a caller, in bytes. */
export const MAX_ANSWER_BYTES = 128 * 1024 * 1024

/** Outcome of one call: the buffered response with any status, or the reason for its absence. */
export type BufferedOutcome =
  | { readonly answer: ChunkedAnswer }
  | { readonly failure: TransportFailure }
  | { readonly oversize: true }

/** Buffers one response. */
export class BufferedCall implements TransportHandler {
  readonly result: Promise<BufferedOutcome>
  #end!: (outcome: BufferedOutcome) => void
  #control: TransportControl | undefined
  #status = 0
  #headers = NO_HEADERS
  #byteLength = 0
  #chunks: readonly Uint8Array[] = NO_CHUNKS
  readonly #activity: VendorActivity | undefined
  readonly #maxBytes: number

  /** @param activity Updated when bytes arrive, or undefined if nobody watches the call. */
  constructor(maxBytes = MAX_ANSWER_BYTES, activity?: VendorActivity) {
    this.#activity = activity
    this.#maxBytes = maxBytes
    this.result = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  /** Bytes of the body that a 2xx response has announced, or sent so far; undefined without such a response. */
  get answerBytes(): number | undefined {
    if (this.#status < 200 || this.#status >= 300) return undefined
    const announced = Number(firstHeader(this.#headers, 'content-length'))
    return Math.max(this.#byteLength, announced >= 0 && announced <= MAX_ANSWER_BYTES ? announced : 0)
  }

  /** Chunks of the body so far. */
  get chunks(): readonly Uint8Array[] {
    return this.#chunks
  }

  begin(transport: Transport, request: TransportRequest): void {
    this.#control = transport.send(request, this)
  }

  abort(): void {
    this.#control?.abort()
  }

  onHead(status: number, headers: HeaderMap): void {
    if (this.#activity !== undefined) this.#activity.hasBytes = true
    this.#status = status
    this.#headers = headers
  }

  onData(chunk: Uint8Array): void {
    if (this.#activity !== undefined) this.#activity.hasBytes = true
    this.#byteLength += chunk.byteLength
    if (this.#byteLength > this.#maxBytes) {
      this.#end({ oversize: true })
      this.abort()
      return
    }
    // Most answers arrive in one chunk, and V8 allocates 17 entries for a growing list.
    if (this.#chunks === NO_CHUNKS) this.#chunks = [chunk]
    else (this.#chunks as Uint8Array[]).push(chunk)
  }

  onEnd(): void {
    const isRequestSent = this.#control?.isBodySent === true
    this.#end({ answer: { status: this.#status, headers: this.#headers, chunks: this.#chunks, isRequestSent } })
  }

  onFailure(failure: TransportFailure): void {
    this.#end({ failure })
  }
}

const NO_CHUNKS: readonly Uint8Array[] = []

/**
 * Call at a candidate, from its start to its outcome. Updates circuits, counts and latencies, and emits events for changes. Exactly
 * one of {@link answered}, {@link completed}, {@link failed}, {@link broken} and {@link ignored} ends it.
 */
export class CandidateCall implements Attempt, WatchedAttempt, WatchedCall {
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
