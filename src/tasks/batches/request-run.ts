import { Buffer } from 'node:buffer'
import { BATCH_FIELD, IN_BATCH } from '../../catalog/prices/prices.ts'
import { createRate } from '../../catalog/prices/rate.ts'
import { type ErrorCode, GatewayError } from '../../core/errors.ts'
import { exactJsonText } from '../../core/exact-json.ts'
import { parseVendorJson } from '../../core/json.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import { release } from '../../pipeline/admit.ts'
import { type Admitted, CallRecord, type Candidate, type Reserved } from '../../pipeline/call-record.ts'
import type { Ask, Completion } from '../../pipeline/completion.ts'
import { InnerCaller, innerRequest } from '../../pipeline/inner-request.ts'
import { keepAnswer } from '../../pipeline/kept-answers.ts'
import { unboundedRequest } from '../../pipeline/output-bound.ts'
import { runToEnd } from '../../pipeline/pipeline.ts'
import type { PipelineContext } from '../../pipeline/pipeline-context.ts'
import { chargeFor, notPriced, type PricedRequest, priceRequest } from '../../pipeline/pricing.ts'
import { settledUsage } from '../../pipeline/settled-usage.ts'
import { emitUnbilledEnding, emitUnbilledUsage, type UsedCall } from '../../pipeline/unbilled-usage.ts'
import { estimateFor } from '../../pipeline/usage-estimate.ts'
import type { CallEnding, JsonResponse, VendorResponse } from '../../pipeline/vendor-response.ts'
import type { BatchOutcome } from '../../stores/batch-store.ts'
import type { EnlargeStatus } from '../../stores/ledger.ts'
import type { TaskRecord } from '../../stores/task-store.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import { applyBatchBound, costAtBound, readCosts } from './batch-bounds.ts'
import { factsOf } from './batch-record.ts'
import type { PlannedRequest } from './check-requests.ts'

/** How a run of one request went. */
export type RequestResult =
  | { readonly kind: 'ended'; readonly outcome: BatchOutcome }
  /** Nothing was charged, and it may go better later. */
  | { readonly kind: 'again'; readonly outcome: BatchOutcome; readonly error: GatewayError }
  /** It was stopped from here. */
  | { readonly kind: 'stopped' }

/** A call that is over. What its vendor may bill, and nobody is charged for, is not told yet. */
interface UntoldCall {
  readonly reserved: Reserved
  readonly candidate: Candidate
  readonly ending: CallEnding
}

/** A request of a batch, and where it stands. */
export interface BatchRequestRun {
  readonly task: TaskRecord
  readonly endpoint: Endpoint
  readonly planned: PlannedRequest
  readonly line: number
  /** Money held for this request, in nano-dollars, shared by its tries. If omitted, it is what was held when its batch was accepted. */
  readonly held?: { amount: bigint } | undefined
  /** Gives the vendor's answer, so that it is neither called nor within the caller's limits; absent: it is called. */
  readonly ask?: Ask | undefined
}

/**
 * One request of a batch, through the same stages as any other, within the caller's limits, with the money that was held for its
 * batch.
 */
export class RequestRun implements Completion {
  readonly isUnlimited: boolean
  readonly ask: Ask | undefined
  readonly #context: PipelineContext
  readonly #run: BatchRequestRun
  readonly #requestId: string
  readonly #held: { amount: bigint }
  readonly #received: CallRecord
  /** Takes what a hook answers the request with. */
  readonly #caller = new InnerCaller()
  #isStopped = false
  /** Number of requests that were read: a second one is what hooks have put in the place of the first. */
  #readings = 0
  #result: RequestResult | undefined
  /** The call that the outcome of the request charges. */
  #charged: UsedCall | undefined
  /** Undefined: it is told, or there was no call. */
  #untold: UntoldCall | undefined

  constructor(context: PipelineContext, run: BatchRequestRun) {
    this.#context = context
    this.#run = run
    this.#held = run.held ?? heldFor(run.planned, run.task)
    this.ask = run.ask
    this.isUnlimited = run.ask !== undefined
    const { accountId, keyId, details } = run.task
    this.#requestId = context.ids.next('req')
    this.#received = new CallRecord({
      request: innerRequest(run.endpoint.path, Buffer.from(exactJsonText(run.planned.body))),
      sink: this.#caller,
      requestId: this.#requestId,
      startedAtMs: context.clock.now(),
      called: run.endpoint,
      vouchedPrincipal: { ...details.deferred!.principal, accountId, keyId },
      routeOverride: undefined,
    })
    this.#received.observation = context.observers?.later(this.#received.startedAtMs)
    // The batch was announced, and its end is.
    this.#received.announced()
  }

  /** Stops the call; the request is sent again when its batch goes on. */
  stop(): void {
    this.#isStopped = true
    this.#received.calls.abort()
  }

  /** Its outcome could not be kept, so that nobody is charged for it. */
  tellUnkept(): void {
    if (this.#charged === undefined) return
    const { reserved, candidate } = this.#charged
    emitUnbilledUsage(this.#context, reserved, candidate, this.#charged)
  }

  /** Tells, once, what the vendor may bill and nobody is charged for. An answer that was given is told of only when its outcome is kept. */
  tellUnbilled(): void {
    if (this.#untold === undefined) return
    const { reserved, candidate, ending } = this.#untold
    this.#untold = undefined
    emitUnbilledEnding(this.#context, reserved, candidate, ending)
  }

  /** Never rejects. */
  async run(): Promise<RequestResult> {
    try {
      await runToEnd(this.#context, this.#received, () => {
        this.#readings++
        return this
      })
    } catch (cause) {
      this.#result ??= this.#failed(GatewayError.from(cause), undefined, 0n)
    } finally {
      this.#received.calls.end()
    }
    // No vendor was asked, and what hooks charge has been charged: the request is not made again.
    if (this.#result === undefined) return this.#answeredByHook()
    return this.#isStopped && !isDone(this.#result) ? { kind: 'stopped' } : this.#result
  }

  #answeredByHook(): RequestResult {
    const { status, text: body } = this.#caller
    const text = this.#lineOf(status, parseVendorJson(body) === undefined ? JSON.stringify(body) : body)
    const isAnswered = status >= 200 && status < 300
    return { kind: 'ended', outcome: { line: this.#run.line, isAnswered, text, usage: undefined, amount: 0n } }
  }

  /** The money is held since the batch was accepted, and its prices are those of that time, unless hooks have changed the request. */
  async reserve(context: PipelineContext, admitted: Admitted): Promise<Reserved> {
    const { task, planned } = this.#run
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

  /** Prices a request that hooks have changed, and holds what it costs above the price of the planned one. */
  async #reserveChanged(context: PipelineContext, admitted: Admitted, holdId: string): Promise<Reserved> {
    this.#received.billingFields = { ...admitted.billingFields, [BATCH_FIELD]: IN_BATCH }
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
    const { store, clock } = this.#context
    try {
      return await store.ledger.enlarge(holdId, amount, clock.now())
    } catch (cause) {
      throw new GatewayError('store_unavailable', { cause })
    }
  }

  /** Gives a request without a bound of its answer the bound of its batch. */
  #bounded(context: PipelineContext, admitted: Admitted, priced: PricedRequest): PricedRequest {
    const { outputBound } = factsOf(this.#run.task)
    const unbounded = unboundedRequest(context, admitted, priced)
    return unbounded === undefined || outputBound === null ? priced : applyBatchBound(admitted, unbounded, outputBound)
  }

  async end(context: PipelineContext, reserved: Reserved, response: VendorResponse): Promise<void> {
    if (response.kind === 'stream') throw new TypeError('a request of a batch is never streamed')
    const { candidate, ending } = response
    const settled = settledUsage(context, reserved, { ending, candidate })
    // It was cut off from here and is sent again, so that its caller is not charged for it.
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

  /** What is charged; undefined: nothing. */
  #amountOf(
    reserved: Reserved,
    candidate: VendorResponse['candidate'],
    usage: BatchOutcome['usage'],
  ): bigint | undefined {
    if (usage === undefined || candidate === undefined) return undefined
    // What has no price cannot appear after a price was found, unless the vendor adds it: what was held for bounds it then.
    return chargeFor(reserved, candidate, usage) ?? chargeFor(reserved, candidate, reserved.estimate) ?? 0n
  }

  async #answered(
    reserved: Reserved,
    { body, candidate }: JsonResponse,
    { usage, amount }: { readonly usage: BatchOutcome['usage']; readonly amount: bigint | undefined },
  ): Promise<void> {
    if (body.keptAnswer !== undefined) {
      this.#context.stateMakers.note(reserved, candidate, body.keptAnswer)
      await keepAnswer(this.#context, reserved, candidate, body.keptAnswer)
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
    const { endpoint, line } = this.#run
    const { errors } = endpoint
    const status = errors.status?.(error) ?? error.status
    const text = this.#lineOf(status, errors.body(error, this.#requestId))
    const outcome = { line, isAnswered: false, text, usage, amount }
    return error.retryable && usage === undefined ? { kind: 'again', outcome, error } : { kind: 'ended', outcome }
  }

  /** The line of the output or the error file (OpenAI API reference, "The request output object"). */
  #lineOf(status: number, body: string): string {
    const { task, line, planned } = this.#run
    // A line break of JSON text stands between its parts: inside of a text there is none.
    const oneLine = body.replaceAll(/[\r\n]+/g, ' ')
    const response = `{"status_code":${status},"request_id":${JSON.stringify(this.#requestId)},"body":${oneLine}}`
    return `{"id":"${outcomeId(task.id, line)}","custom_id":${JSON.stringify(planned.id)},"response":${response},"error":null}`
  }
}

/** Money that is held for a planned request since its batch was accepted. */
export function heldFor({ costs = [] }: PlannedRequest, task: TaskRecord): { amount: bigint } {
  return { amount: costAtBound(readCosts(costs), factsOf(task).outputBound ?? 0) }
}

const TOO_EXPENSIVE =
  'A hook of this service made this request more expensive than what is held for it, and the account cannot pay the difference.'

const REJECTIONS: Readonly<Record<Exclude<EnlargeStatus, 'held'>, ErrorCode>> = {
  not_held: 'insufficient_balance',
  account_frozen: 'account_frozen',
  in_arrears: 'account_in_arrears',
  credit_limit: 'credit_limit_reached',
  insufficient_balance: 'insufficient_balance',
  spending_limit: 'spending_cap_reached',
}

/** Has the request an answer or a charge, so that making it again would cost its caller or the operator twice? */
function isDone(result: RequestResult): boolean {
  return result.kind === 'ended' && (result.outcome.isAnswered || result.outcome.usage !== undefined)
}

/** Id of the outcome of a request. */
export function outcomeId(batchId: string, line: number): string {
  return `batch_req_${batchId.slice(batchId.indexOf('_') + 1)}_${line}`
}
