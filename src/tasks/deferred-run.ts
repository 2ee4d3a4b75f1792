import { Buffer } from 'node:buffer'
import { createRate } from '../catalog/prices/rate.ts'
import { GatewayError } from '../core/errors.ts'
import { withHookUnits } from '../core/usage.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { release } from '../pipeline/admit.ts'
import { type Admitted, CallRecord, type Hold, type Reserved } from '../pipeline/call-record.ts'
import { innerRequest, NOWHERE } from '../pipeline/inner-request.ts'
import { keptTurn } from '../pipeline/kept-answers.ts'
import { type Completion, pipeline } from '../pipeline/pipeline.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { chargeFor } from '../pipeline/pricing.ts'
import { settledUsage } from '../pipeline/settle.ts'
import type { JsonResponse, VendorResponse } from '../pipeline/vendor-response.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import { endTask, type ReportOutcome } from './apply-report.ts'
import { chargedEnd } from './deferred-end.ts'
import { frozenCharge } from './frozen-prices.ts'
import { runOrRetry, unsettled } from './submit-task.ts'
import { commit, type WakeWebhooks } from './update-task.ts'

/** How a run went: over, or to be tried again at a later time. */
export type RunOutcome = { readonly kind: 'ended' } | { readonly kind: 'again'; readonly atMs: number }

const ENDED: RunOutcome = { kind: 'ended' }

/** Waits before a run that a limit or the store stopped: half of the time that it has waited, within these. */
const SHORTEST_RETRY_DELAY_MS = 1_000
const LONGEST_RETRY_DELAY_MS = 60_000

/**
 * One run of a deferred answer, through the same stages as any request, with the money that was held when it was accepted.
 * Its end is one change of its task, with the answer, the settlement and the webhook in one transaction: if two processes run
 * the same task, the first end counts.
 */
export class DeferredRun implements Completion {
  readonly #context: PipelineContext
  readonly #endpoint: Endpoint
  readonly #task: TaskRecord
  readonly #wake: WakeWebhooks
  #received: CallRecord | undefined
  #isLost = false
  #isPutBack = false
  #outcome: RunOutcome = ENDED

  /** @param task In state `in_progress`, and leased by this process. */
  constructor(context: PipelineContext, endpoint: Endpoint, task: TaskRecord, wake: WakeWebhooks) {
    this.#context = context
    this.#endpoint = endpoint
    this.#task = task
    this.#wake = wake
  }

  /** Stops the run; its task has ended elsewhere. */
  abandon(): void {
    this.#isLost = true
    this.#received?.calls.abort()
  }

  /** Stops the run; its task is run again from the beginning. */
  putBack(): void {
    this.#isPutBack = true
    this.#received?.calls.abort()
  }

  /** Runs to the end. Never rejects. */
  async run(): Promise<RunOutcome> {
    const { clock } = this.#context
    const { details, id, accountId, keyId } = this.#task
    const { body, principal } = details.deferred!
    const received = new CallRecord({
      request: innerRequest(this.#endpoint.path, Buffer.from(body)),
      sink: NOWHERE,
      requestId: details.requestId,
      startedAtMs: clock.now(),
      called: this.#endpoint,
      vouchedPrincipal: { ...principal, accountId, keyId },
      routeOverride: undefined,
      answerId: id,
    })
    this.#received = received
    // The submission was announced, and the end of the task is.
    received.announced()
    if (this.#isLost || this.#isPutBack) return this.#stopped()
    try {
      await pipeline(this.#context, received, () => this)
    } catch (cause) {
      await this.#refused(GatewayError.from(cause))
    } finally {
      received.calls.end()
    }
    return this.#outcome
  }

  /** The money is held since the request was accepted. */
  reserve(_context: PipelineContext, admitted: Admitted): Reserved {
    const { holdId, details } = this.#task
    const { prices, heldUsage } = details
    // The hooks were asked at the submission.
    admitted.chargedUnits(heldUsage.hookUnits ?? 0)
    if (holdId === undefined || prices === undefined) return admitted.reserved(undefined)
    const rates = Object.entries(prices).map(([model, rows]) => createRate(model, rows))
    const amount = frozenCharge(details, details.variant, details.heldUsage) ?? 0n
    const hold: Hold = { id: holdId, amount, rates }
    const chain = admitted.chain.filter(({ id }) => Object.hasOwn(prices, id))
    return admitted.reserved(hold, chain.length === 0 ? admitted.chain : chain)
  }

  async end(context: PipelineContext, reserved: Reserved, response: VendorResponse): Promise<void> {
    const { usage } = response.kind === 'stream' ? { usage: undefined } : response.ending
    try {
      if (this.#isLost || this.#isPutBack) this.#outcome = this.#stopped()
      else if (response.kind === 'json') await this.#completed(reserved, response)
      else if (response.kind === 'failed') await this.#failed(response.error)
      else throw new TypeError('a deferred answer is never streamed')
    } finally {
      await release(context, reserved, (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0))
    }
  }

  #stopped(): RunOutcome {
    return this.#isLost ? ENDED : { kind: 'again', atMs: this.#context.clock.now() }
  }

  async #completed(reserved: Reserved, response: JsonResponse): Promise<void> {
    const context = this.#context
    const { candidate, ending, body } = response
    const { deferral } = this.#endpoint
    const answer = body.keptAnswer
    if (answer === undefined || deferral === undefined)
      return this.#failed(new GatewayError('upstream_invalid_response'))
    const made = deferral.made(answer, this.#task)
    context.stateMakers.note(reserved, candidate, made)
    const turn = keptTurn(context, reserved, candidate, made)
    const { id: upstreamId } = answer
    const keeps = turn && {
      ...turn,
      upstreamId: turn.upstreamId === undefined || typeof upstreamId !== 'string' ? undefined : upstreamId,
    }
    const used = settledUsage(context, reserved, { ending, candidate, status: 200, answer: undefined })
    const usage = used && withHookUnits(used, reserved.hookUnits)
    const amount = usage && (chargeFor(reserved, candidate, usage) ?? reserved.hold?.amount)
    const facts = { ...this.#task.details.facts, status: String(made['status']) }
    const details = { ...this.#task.details, facts, model: candidate.model.id, vendor: candidate.vendor.id }
    const end = { state: 'completed', nowMs: context.clock.now(), details } as const
    const charge = { usage: usage ?? {}, amount: reserved.hold === undefined ? undefined : (amount ?? 0n) }
    const outcome = chargedEnd(this.#task, end, charge)
    const { credentialId } = candidate
    const set = { ...outcome.change.set, credentialId }
    const task = { ...outcome.task, credentialId }
    await this.#commit({ ...outcome, task, change: { ...outcome.change, set, keeps } }, charge.amount ?? 0n)
  }

  #failed(error: GatewayError): Promise<void> {
    const { details } = this.#task
    const failure = { code: error.publicCode, message: error.message }
    const nowMs = this.#context.clock.now()
    return this.#commit(endTask(this.#task, { ...details, error: failure }, { state: 'failed', nowMs }), 0n)
  }

  /** The run ended before a vendor was asked. What may pass later is tried again. */
  async #refused(error: GatewayError): Promise<void> {
    if (this.#isLost || this.#isPutBack) this.#outcome = this.#stopped()
    else if (error.code === 'rate_limited' || error.code === 'store_unavailable') {
      const nowMs = this.#context.clock.now()
      const waitedMs = Math.min((nowMs - this.#task.createdAtMs) / 2, LONGEST_RETRY_DELAY_MS)
      const delayMs = Math.max(SHORTEST_RETRY_DELAY_MS, waitedMs, (error.retryAfterSeconds ?? 0) * 1_000)
      this.#outcome = { kind: 'again', atMs: nowMs + delayMs }
    } else await this.#failed(error)
  }

  /** An end that the store does not take is offered until it does. */
  async #commit(outcome: ReportOutcome, amount: bigint): Promise<void> {
    const context = this.#context
    const task = this.#task
    const { requestId } = task.details
    const run = (): Promise<unknown> => commit(context, task, outcome, this.#wake)
    await runOrRetry(context, unsettled(requestId, task, amount), run, task.deadlineAtMs)
  }
}
