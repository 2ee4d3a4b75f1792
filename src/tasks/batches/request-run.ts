import { Buffer } from 'node:buffer'
import { BATCH_FIELD, BATCH_VALUE } from '../../catalog/prices/prices.ts'
import { createRate } from '../../catalog/prices/rate.ts'
import { type ErrorCode, GatewayError } from '../../core/errors.ts'
import { exactJsonText } from '../../core/exact-json.ts'
import { parseVendorJson } from '../../core/json.ts'
import { release } from '../../pipeline/admission.ts'
import type { Admitted, CallRecord, Candidate, Reserved } from '../../pipeline/call-record.ts'
import { emitUnbilledEnding, emitUnbilledUsage, settledUsage, type UsedCall } from '../../pipeline/charge.ts'
import type { Ask, Completion } from '../../pipeline/completion.ts'
import { estimateFor } from '../../pipeline/estimate.ts'
import { InnerCaller, laterCall } from '../../pipeline/idempotent-request.ts'
import type { PipelineContext } from '../../pipeline/pipeline-context.ts'
import { chargeFor, notPriced, type PricedRequest, priceRequest } from '../../pipeline/pricing.ts'
import { unboundedRequest } from '../../pipeline/reserve.ts'
import { runToEnd } from '../../pipeline/serve.ts'
import { keepAnswer } from '../../pipeline/stored-answers.ts'
import type { CallEnding, JsonResponse, VendorResponse } from '../../pipeline/vendor-response.ts'
import type { BatchOutcome } from '../../stores/file-store.ts'
import type { EnlargeStatus } from '../../stores/ledger.ts'
import type { TaskRecord } from '../../stores/task-store.ts'
import { joinChunks } from '../../wire/chunks.ts'
import { applyBatchBound, type BatchJob, costAtBound, factsOf, readCosts } from './batch-record.ts'
import type { PlannedRequest } from './lines.ts'

/** Result of a run of one request. */
export type RequestResult =
  | { readonly kind: 'ended'; readonly outcome: BatchOutcome }
  /** Nothing was charged, and a later try may succeed. */
  | { readonly kind: 'again'; readonly outcome: BatchOutcome; readonly error: GatewayError }
  /** The run was stopped by this process. */
  | { readonly kind: 'stopped' }

/** Finished call whose unbilled usage has not been reported yet. */
interface UnreportedCall {
  readonly reserved: Reserved
  readonly candidate: Candidate
  readonly ending: CallEnding
}

/** Request of a batch, and its position. */
export interface BatchRequestRun {
  readonly planned: PlannedRequest
  readonly line: number
  /** Money held for this request, in nano-dollars, shared by its tries. If omitted, the hold of the accepted batch applies. */
  readonly held?: { amount: bigint } | undefined
  /**
   * Returns the vendor's answer, so that the vendor is not called and the caller's limits do not apply. If omitted, the vendor is
   * called.
   */
  readonly ask?: Ask | undefined
}

/**
 * One request of a batch. It passes the same stages as any other request, within the caller's limits, and uses the money held for
 * its batch.
 */
export class RequestRun implements Completion {
  readonly isUnlimited: boolean
  readonly ask: Ask | undefined
  readonly #job: BatchJob
  readonly #run: BatchRequestRun
  readonly #held: { amount: bigint }
  readonly #received: CallRecord
  /** Receives the answer if a hook replies to the request. */
  readonly #caller = new InnerCaller()
  #isStopped = false
  /** Number of requests that were read: a second one is the replacement from a hook. */
  #readings = 0
  #result: RequestResult | undefined
  /** Call that the outcome of the request is charged for. */
  #charged: UsedCall | undefined
  /** Call whose unbilled usage is still to be reported, or `undefined` if it was reported or there was no call. */
  #untold: UnreportedCall | undefined

  constructor(job: BatchJob, run: BatchRequestRun) {
    this.#job = job
    this.#run = run
    const { context, task, endpoint } = job
    this.#held = run.held ?? heldFor(run.planned, task)
    this.ask = run.ask
    this.isUnlimited = run.ask !== undefined
    const { accountId, keyId, details } = task
    this.#received = laterCall(context, {
      endpoint,
      principal: { ...details.deferred!.principal, accountId, keyId },
      requestId: context.ids.next('req'),
      body: exactJsonText(run.planned.body),
      sink: this.#caller,
    })
  }

  /** Stops the call. The request is sent again when its batch continues. */
  stop(): void {
    this.#isStopped = true
    this.#received.calls.abort()
  }

  /** Handles an outcome that could not be stored, so that nobody is charged for it. */
  tellUnkept(): void {
    if (this.#charged === undefined) return
    const { reserved, candidate } = this.#charged
    emitUnbilledUsage(this.#job.context, reserved, candidate, this.#charged)
  }

  /**
   * Reports, once, usage that the vendor may bill and nobody is charged for. An answer from `ask` is reported only after its
   * outcome is stored.
   */
  tellUnbilled(): void {
    if (this.#untold === undefined) return
    const { reserved, candidate, ending } = this.#untold
    this.#untold = undefined
    emitUnbilledEnding(this.#job.context, reserved, candidate, ending)
  }

  /** Never rejects. */
  async run(): Promise<RequestResult> {
    try {
      await runToEnd(this.#job.context, this.#received, () => {
        this.#readings++
        return this
      })
    } catch (cause) {
      this.#result ??= this.#failed(GatewayError.from(cause), undefined, 0n)
    } finally {
      this.#received.calls.end()
    }
    // No vendor was called, and the hook's charge is made: the request is not sent again.
    if (this.#result === undefined) return this.#answeredByHook()
    return this.#isStopped && !isDone(this.#result) ? { kind: 'stopped' } : this.#result
  }

  #answeredByHook(): RequestResult {
    const { status, text: body } = this.#caller
    const text = this.#lineOf(status, parseVendorJson(body) === undefined ? JSON.stringify(body) : body)
    const isAnswered = status >= 200 && status < 300
    return { kind: 'ended', outcome: { line: this.#run.line, isAnswered, text, usage: undefined, amount: 0n } }
  }

  /** Uses the money and the prices from the acceptance of the batch, unless hooks have changed the request. */
  async reserve(context: PipelineContext, admitted: Admitted): Promise<Reserved> {
    const { planned } = this.#run
    const { task } = this.#job
    const { prices } = task.details
    if (task.holdId === undefined || prices === undefined) return admitted.reserved(undefined)
    if (this.#readings > 1 || admitted.hookUnits > 0) return await this.#reserveChanged(context, admitted, task.holdId)
    const chain = admitted.chain.filter(({ id }) => Object.hasOwn(prices, `${planned.price} ${id}`))
    if (chain.length === 0) throw notPriced(context, admitted, admitted.chain[0]!)
    const rates = chain.map(({ id }) => createRate(id, prices[`${planned.price} ${id}`]!))
    const estimates = chain.map((model) => estimateFor(context, admitted, model))
    this.#bounded(context, admitted, { amount: this.#held.amount, rates, chain, estimates })
    return admitted.reserved({ id: task.holdId, amount: 0n, rates }, chain)
  }

  /** Prices a request that hooks have changed, and holds the difference to the price of the planned request. */
  async #reserveChanged(context: PipelineContext, admitted: Admitted, holdId: string): Promise<Reserved> {
    this.#received.billingFields = { ...admitted.billingFields, [BATCH_FIELD]: BATCH_VALUE }
    const priced = priceRequest(context, admitted, admitted.estimate)
    if (priced === undefined) return admitted.reserved(undefined)
    const { rates, chain, amount } = this.#bounded(context, admitted, priced)
    const more = amount - this.#held.amount
    if (more > 0n) {
      const status = await this.#enlarge(holdId, more)
      if (status !== 'held') throw new GatewayError(REJECTIONS[status], { message: TOO_EXPENSIVE, retryable: false })
      this.#held.amount = amount
    }
    return admitted.reserved({ id: holdId, amount: 0n, rates }, chain)
  }

  async #enlarge(holdId: string, amount: bigint): Promise<EnlargeStatus> {
    const { store, clock } = this.#job.context
    try {
      return await store.ledger.enlarge(holdId, amount, clock.now())
    } catch (cause) {
      throw new GatewayError('store_unavailable', { cause })
    }
  }

  /** Applies the output limit of the batch to a request without one. */
  #bounded(context: PipelineContext, admitted: Admitted, priced: PricedRequest): PricedRequest {
    const { outputBound } = factsOf(this.#job.task)
    const unbounded = unboundedRequest(context, admitted, priced)
    return unbounded === undefined || outputBound === null ? priced : applyBatchBound(admitted, unbounded, outputBound)
  }

  async end(context: PipelineContext, reserved: Reserved, response: VendorResponse): Promise<void> {
    if (response.kind === 'stream') throw new TypeError('a request of a batch is never streamed')
    const { candidate, ending } = response
    const settled = settledUsage(context, reserved, { ending, candidate })
    // This process cut off the call and sends it again, so the caller is not charged for it.
    const isCutOff =
      this.#isStopped && ending.kind !== 'completed' && ending.usage === undefined && settled !== undefined
    const usage = isCutOff ? undefined : settled
    const unbilled = isCutOff ? { usage: settled, isEstimated: true } : ending.unbilled
    if (usage !== undefined && candidate !== undefined)
      this.#charged = { reserved, candidate, usage, isEstimated: ending.usage === undefined }
    try {
      const amount = this.#amountOf(reserved, candidate, usage)
      if (response.kind === 'json') await this.#answered(reserved, response, { usage, amount })
      else this.#result = this.#failed(response.error, amount === undefined ? undefined : usage, amount ?? 0n)
      this.#untold = candidate && { reserved, candidate, ending: { ...ending, unbilled } }
      if (this.ask === undefined) this.tellUnbilled()
    } finally {
      const used = usage ?? unbilled?.usage
      await release(context, reserved, (used?.inputTokens ?? 0) + (used?.outputTokens ?? 0))
    }
  }

  /** Returns the amount to charge, or `undefined` if nothing is charged. */
  #amountOf(
    reserved: Reserved,
    candidate: VendorResponse['candidate'],
    usage: BatchOutcome['usage'],
  ): bigint | undefined {
    if (usage === undefined || candidate === undefined) return undefined
    // If the vendor reports an unpriced meter, the held amount is charged instead.
    return chargeFor(reserved, candidate, usage) ?? chargeFor(reserved, candidate, reserved.estimate) ?? 0n
  }

  async #answered(
    reserved: Reserved,
    { body, candidate }: JsonResponse,
    { usage, amount }: { readonly usage: BatchOutcome['usage']; readonly amount: bigint | undefined },
  ): Promise<void> {
    if (body.keptAnswer !== undefined) {
      this.#job.context.stateMakers.note(reserved, candidate, body.keptAnswer)
      await keepAnswer(this.#job.context, reserved, candidate, body.keptAnswer)
    }
    const text = Buffer.from(joinChunks(body.chunks)).toString()
    const outcome = {
      line: this.#run.line,
      isAnswered: true,
      text: this.#lineOf(200, text),
      usage,
      amount: amount ?? 0n,
    }
    this.#result = { kind: 'ended', outcome }
  }

  #failed(error: GatewayError, usage: BatchOutcome['usage'], amount: bigint): RequestResult {
    const { line } = this.#run
    const { errors } = this.#job.endpoint
    const status = errors.status?.(error) ?? error.status
    const text = this.#lineOf(status, errors.body(error, this.#received.requestId))
    const outcome = { line, isAnswered: false, text, usage, amount }
    return error.retryable && usage === undefined ? { kind: 'again', outcome, error } : { kind: 'ended', outcome }
  }

  /** Builds the line of the output or the error file (OpenAI API reference, "The request output object"). */
  #lineOf(status: number, body: string): string {
    const { line, planned } = this.#run
    // JSON strings contain no line breaks, so every line break here is between tokens.
    const oneLine = body.replaceAll(/[\r\n]+/g, ' ')
    const response = `{"status_code":${status},"request_id":${JSON.stringify(this.#received.requestId)},"body":${oneLine}}`
    return `{"id":"${outcomeId(this.#job.task.id, line)}","custom_id":${JSON.stringify(planned.id)},"response":${response},"error":null}`
  }
}

/** Money that is held for a planned request since the acceptance of its batch. */
export function heldFor({ costs = [] }: PlannedRequest, task: TaskRecord): { amount: bigint } {
  return { amount: costAtBound(readCosts(costs), factsOf(task).outputBound ?? 0) }
}

const TOO_EXPENSIVE =
  'A hook of this service made this request more expensive than the amount held for it, and the account cannot pay the difference.'

const REJECTIONS: Readonly<Record<Exclude<EnlargeStatus, 'held'>, ErrorCode>> = {
  not_held: 'insufficient_balance',
  account_frozen: 'account_frozen',
  in_arrears: 'account_in_arrears',
  credit_limit: 'credit_limit_reached',
  insufficient_balance: 'insufficient_balance',
  spending_limit: 'spending_cap_reached',
}

/** Whether the request has an answer or a charge, so that a retry would cost its caller or the operator twice. */
function isDone(result: RequestResult): boolean {
  return result.kind === 'ended' && (result.outcome.isAnswered || result.outcome.usage !== undefined)
}

/** Id of the outcome of a request. */
export function outcomeId(batchId: string, line: number): string {
  return `batch_req_${batchId.slice(batchId.indexOf('_') + 1)}_${line}`
}
