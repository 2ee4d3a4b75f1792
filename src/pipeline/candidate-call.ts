import type { CircuitState } from '../routing/circuit-breaker.ts'
import type { CallOutcome, RouteCandidate } from '../routing/route-candidate.ts'
import type { AttemptFailure } from './error-classification.ts'
import { emit, type PipelineContext } from './pipeline-context.ts'

/**
 * One call at a candidate, from its start to its outcome. Updates its circuits, load and latencies, and emits events for
 * changes. Exactly one of {@link answered}, {@link completed}, {@link failed}, {@link broken} and {@link ignored} ends it.
 */
export class CandidateCall {
  readonly candidate: RouteCandidate
  readonly #context: PipelineContext
  readonly #startedAtMs: number

  constructor(context: PipelineContext, candidate: RouteCandidate) {
    this.candidate = candidate
    this.#context = context
    this.#startedAtMs = context.clock.now()
    candidate.begin(this.#startedAtMs, context.routes.nextTurn())
  }

  /** A JSON response arrived. */
  answered(): void {
    const nowMs = this.#context.clock.now()
    this.candidate.answered(Math.max(0, nowMs - this.#startedAtMs), nowMs)
    this.#succeed(nowMs)
    this.candidate.release()
  }

  /**
   * The first content of a stream arrived. It closes a half-open circuit. For every other circuit only the end of the
   * stream counts, so that a vendor whose streams always break is detected.
   */
  opened(): void {
    const { candidate } = this
    const nowMs = this.#context.clock.now()
    candidate.opened(Math.max(0, nowMs - this.#startedAtMs), nowMs)
    if (candidate.key.circuit.isProbing || candidate.circuit.isProbing) this.#succeed(nowMs)
  }

  /** A stream completed. */
  completed(): void {
    this.#succeed(this.#context.clock.now())
    this.candidate.release()
  }

  /** The vendor failed or refused; emits an event. */
  failed(requestId: string, failure: AttemptFailure): void {
    this.#fail(failure.outcome, failure.retryAfterMs)
    this.candidate.release()
    report(this.#context, requestId, this.candidate, failure)
  }

  /** A started stream was cut or failed. */
  broken(): void {
    this.#fail('failing', undefined)
    this.candidate.release()
  }

  /** The call ended on our side, which does not count for or against the vendor. */
  ignored(): void {
    this.#fail('ignored', undefined)
    this.candidate.release()
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
    candidate.failed(outcome, retryAfterMs, this.#context.clock.now())
    this.#emitOpened(undefined, ofKey, key.circuit)
    this.#emitOpened(candidate.model.id, ofModel, candidate.circuit)
  }

  #emitOpened(model: string | undefined, before: CircuitState, after: CircuitState): void {
    const { reason, openUntilMs: untilMs } = after
    if (untilMs === before.openUntilMs || reason === undefined) return
    const { vendorId: vendor, credentialId } = this.candidate.key
    emit(this.#context, { type: 'circuit-opened', vendor, credentialId, model, reason, untilMs })
  }

  #emitClosed(model: string | undefined, before: CircuitState, after: CircuitState): void {
    if (before.openUntilMs === 0 || after.openUntilMs !== 0) return
    const { vendorId: vendor, credentialId } = this.candidate.key
    emit(this.#context, { type: 'circuit-closed', vendor, credentialId, model })
  }
}

function report(context: PipelineContext, requestId: string, candidate: RouteCandidate, failure: AttemptFailure): void {
  const vendor = candidate.vendor.id
  emit(context, {
    type: 'attempt-failed',
    requestId,
    vendor,
    model: candidate.model.id,
    reason: failure.reason,
    status: failure.status,
  })
  const problem = failure.operatorProblem
  if (problem === undefined) return
  const { status, code, message } = problem
  emit(context, { type: 'vendor-account-problem', requestId, vendor, status, code, message })
  context.logger.error("a vendor refused the operator's account, key, quota or model id", {
    requestId,
    vendor,
    status,
    code,
  })
}
