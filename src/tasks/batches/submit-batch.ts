import { Buffer } from 'node:buffer'
import { BATCH_FIELD, BATCH_VALUE, type MeterPrice } from '../../catalog/prices/prices.ts'
import { endOfTurn } from '../../core/calls-in-flight.ts'
import { GatewayError } from '../../core/errors.ts'
import { exactJsonText } from '../../core/exact-json.ts'
import type { MaybePromise } from '../../core/maybe-promise.ts'
import { addUsage, type Usage } from '../../core/usage.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import type { Parsed } from '../../pipeline/call-record.ts'
import { estimateFor } from '../../pipeline/estimate.ts'
import { claimKey, completeKey, createWithinBounds, innerCall, replayOf } from '../../pipeline/idempotent-request.ts'
import type { BatchSettings, PipelineContext } from '../../pipeline/pipeline-context.ts'
import { priceRequest } from '../../pipeline/pricing.ts'
import { freeMoneyOf, StoredReplay, unboundedRequest } from '../../pipeline/reserve.ts'
import { readRequest } from '../../pipeline/serve.ts'
import { recall } from '../../pipeline/stored-answers.ts'
import type { IdempotencyClaim, StoredAnswer } from '../../stores/idempotency-store.ts'
import type { Principal } from '../../stores/principal.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../../stores/task-store.ts'
import { deferredPrincipal, note, queuedTask, reserveTask, SUBMISSION_MS } from '../submit-task.ts'
import { newTask, receiptOf } from '../task-record.ts'
import {
  addCosts,
  BATCH_CREDENTIAL_ID,
  type BatchBound,
  type BatchFacts,
  boundCosts,
  chooseBatchBound,
  costAtBound,
  isBatch,
  MAX_WAIT_MS,
  NO_COSTS,
  writtenCosts,
} from './batch-record.ts'
import { BATCHES_ID } from './files.ts'
import { type LineFault, type PlannedRequest, planId, type WrittenRequest } from './lines.ts'

/** Time limit of a batch, in milliseconds (OpenAI API reference, `completion_window`). */
export const COMPLETION_WINDOW_MS = 24 * 60 * 60_000

/** The hold outlives the batch by this time, so that it never expires before the batch ends. */
const HOLD_GRACE_MS = 2 * 60 * 60_000

/** Parts of a submission other than its requests. */
export interface SubmissionRest {
  readonly claim: IdempotencyClaim | undefined
  readonly webhookUrl: string | undefined
}

/** Submission of a caller. */
export interface BatchSubmission {
  readonly endpoint: Endpoint
  readonly principal: Principal
  readonly requestId: string
  /** Prefix of the batch id. */
  readonly idPrefix: string
  readonly inputFileId: string | null
  readonly metadata: string | null
  /** Lifetime of the batch's files, if the caller requested less than the gateway's default. */
  readonly outputLifetimeMs?: number | undefined
  /** Returns the part of the submission after the requests. Called when all of them have been read. */
  rest(): MaybePromise<SubmissionRest>
  /** Returns the error for faulty requests; the batch is then not stored. If omitted, the batch is stored as failed. */
  refusal?(faults: readonly LineFault[]): GatewayError
  /** Requests with the numbers that faults refer to. */
  readonly requests: AsyncIterable<{ readonly line: number; readonly request: WrittenRequest | LineFault }>
}

/**
 * Checks every request of a batch, holds the sum of their estimates, and stores the batch. If a request is faulty, nothing is
 * sent or held: the batch fails and lists each fault by its line, unless `refusal` rejects the submission.
 * @returns the answer to the caller.
 * @throws GatewayError as reserving does, `model_not_priced` without a price for batches, and `rate_limited` for too many batches
 *   that have not ended.
 */
export async function submitBatch(
  context: PipelineContext,
  settings: BatchSettings,
  submission: BatchSubmission,
): Promise<StoredAnswer | StoredReplay> {
  const { endpoint, principal, requestId, idPrefix } = submission
  const begunAtMs = context.clock.now()
  await checkOpenBatches(context, settings, principal.accountId, begunAtMs)
  const id = context.ids.next(idPrefix)
  const checks = new RequestChecks(context, endpoint, principal)
  // The plan is deleted at the end of the batch. This time applies if that deletion fails.
  const plan = { id: planId(id), expiresAtMs: begunAtMs + COMPLETION_WINDOW_MS + MAX_WAIT_MS }
  try {
    await settings.blobs.put(plan, plannedLines(settings, submission, checks))
  } catch (error) {
    if (!(error instanceof FaultyBatch)) throw error
    if (submission.refusal !== undefined) throw submission.refusal(checks.faults)
    const rest = await submission.rest()
    const failed = taskOf(context, submission, { id, checks, rest })
    return await keepFailed(context, { ...failed, state: 'failed', holdId: undefined }, rest.claim)
  }
  try {
    const rest = await submission.rest()
    const outputBound = await batchBound(context, submission, checks)
    const task = taskOf(context, submission, { id, checks, rest, outputBound })
    const record = innerCall(context, { endpoint, principal, requestId, body: '' })
    record.authenticated(principal)
    record.shaped(endpoint)
    record.claim = rest.claim
    record.chain = []
    const priced = context.prices && {
      amount: costAtBound(checks.costs, outputBound),
      rates: [],
      chain: [],
      estimates: [],
    }
    const held = await reserveTask(
      context,
      record,
      { task, holdExpiresAtMs: task.createdAtMs + COMPLETION_WINDOW_MS + HOLD_GRACE_MS },
      priced,
    )
    if (held instanceof StoredReplay) {
      await settings.blobs.delete(plan.id)
      return held
    }
    const queued = queuedTask(context, task)
    const receipt = receiptOf(context, queued)
    await note(context, held, queued, receipt)
    return receipt
  } catch (error) {
    // A failing store may have saved the batch anyway; then its plan expires later.
    if (!(GatewayError.isInstance(error) && error.code === 'store_unavailable')) await settings.blobs.delete(plan.id)
    throw error
  }
}

/** Stores a failed batch, once for all requests with the same Idempotency-Key. */
async function keepFailed(
  context: PipelineContext,
  failed: TaskRecord,
  claim: IdempotencyClaim | undefined,
): Promise<StoredAnswer | StoredReplay> {
  const { idempotency, tasks } = context.store
  const receipt = receiptOf(context, failed)
  const { accountId } = failed
  const result = claim && (await createWithinBounds(context, { accountId, claim }, () => claimKey(context, claim)))
  if (result !== undefined && result.status !== 'claimed') return new StoredReplay(replayOf(result))
  try {
    await context.storedBounds.add(accountId, [{ kind: 'tasks' }], () => tasks.insert(failed))
  } catch (error) {
    if (claim !== undefined) await idempotency.release(claim)
    throw error
  }
  if (claim !== undefined) await completeKey(context, claim, receipt)
  return receipt
}

/** Yields one line of JSON per request, if none of them is faulty. */
async function* plannedLines(
  { maxRequests }: BatchSettings,
  { requests }: BatchSubmission,
  checks: RequestChecks,
): AsyncIterable<Uint8Array> {
  for await (const { line, request } of requests) {
    if (checks.total === maxRequests) {
      const message = `A batch can have ${maxRequests} requests.`
      checks.fault({ code: 'too_many_requests', line, message, param: null })
      break
    }
    if ('code' in request) {
      checks.total++
      checks.fault(request)
    } else {
      const planned = await checks.plan(request, line)
      // Requests after a fault are checked but not stored.
      if (planned !== undefined && checks.faults.length === 0) yield Buffer.from(`${exactJsonText(planned)}\n`)
    }
    if (checks.isHopeless) break
    // A faulty line may be large, and no turn of the event loop was yielded for it.
    if (checks.faults.length > 0) await endOfTurn()
  }
  if (checks.total === 0)
    checks.fault({ code: 'empty_file', line: null, message: 'There are no requests.', param: null })
  if (checks.faults.length > 0) throw new FaultyBatch()
}

/** @throws GatewayError `rate_limited` */
async function checkOpenBatches(
  { store }: PipelineContext,
  { maxOpen }: BatchSettings,
  accountId: string,
  nowMs: number,
): Promise<void> {
  let open = 0
  for (let after: string | undefined; ; ) {
    const page = await store.tasks.list(accountId, { limit: 100, after })
    open += page.tasks.filter((task) => OPEN_TASK_STATES.includes(task.state) && isBatch(task)).length
    if (open >= maxOpen)
      throw new GatewayError('rate_limited', {
        message: `This account has ${open} batches that have not ended. Wait until one of them has.`,
        retryAfterSeconds: 60,
      })
    const last = page.tasks.at(-1)
    // Older batches have ended, or end in a moment.
    if (!page.hasMore || last === undefined || last.createdAtMs < nowMs - 2 * COMPLETION_WINDOW_MS) return
    after = last.id
  }
}

/** Chooses the output limit of requests that set none, by the money that is free now. */
async function batchBound(
  context: PipelineContext,
  { principal }: BatchSubmission,
  { costs, prices }: RequestChecks,
): Promise<BatchBound> {
  if (prices === undefined) return 'longest'
  return chooseBatchBound(costs, await freeMoneyOf(context, principal))
}

/** Batch before its acceptance. With faults, it has failed. */
function taskOf(
  context: PipelineContext,
  submission: BatchSubmission,
  made: {
    readonly id: string
    readonly checks: RequestChecks
    readonly rest: SubmissionRest
    readonly outputBound?: BatchBound
  },
): TaskRecord {
  const { principal, requestId, endpoint, inputFileId, metadata, outputLifetimeMs } = submission
  const { id, checks, rest, outputBound = null } = made
  const nowMs = context.clock.now()
  const expiresAtMs = nowMs + COMPLETION_WINDOW_MS
  const isFailed = checks.faults.length > 0
  const facts: BatchFacts = {
    endpoint: endpoint.path,
    inputFileId,
    total: isFailed ? 0 : checks.total,
    expiresAtMs,
    metadata,
    ...(outputLifetimeMs === undefined ? {} : { outputLifetimeMs }),
    cancellingAtMs: null,
    endedAtMs: isFailed ? nowMs : null,
    end: isFailed ? 'failed' : null,
    outputFileId: null,
    errorFileId: null,
    answered: null,
    failed: null,
    notMade: null,
    deletedAtMs: null,
    outputBound,
    faults: isFailed ? JSON.stringify(checks.faults) : null,
  }
  const deferred = {
    body: '',
    begun: {},
    deadlineAtMs: expiresAtMs + MAX_WAIT_MS,
    principal: deferredPrincipal(principal),
  }
  return newTask({
    nowMs,
    id,
    principal,
    credentialId: BATCH_CREDENTIAL_ID,
    submissionMs: SUBMISSION_MS,
    details: {
      ...rest,
      requestId,
      endpoint: BATCHES_ID,
      model: checks.model?.id ?? '',
      vendor: checks.model?.vendor ?? '',
      prices: checks.prices,
      heldUsage: checks.estimate,
      variant: '',
      facts,
      attribution: { endUser: principal.endUser, tags: principal.tags ?? [] },
      deferred: isFailed ? undefined : deferred,
    },
  })
}

/** Maximum number of reported faults. */
const MAX_FAULTS = 100
/** Maximum number of different prices in one batch. Requests may differ in what they are charged by. */
const MAX_PRICES = 100
/** Number of requests that are checked before other work gets a turn of the event loop. */
const CHECKED_PER_TURN = 20
/** A larger request has its own turns of the event loop: parsing its JSON may take half a second. */
const OWN_TURN_BYTES = 64 * 1024

/** Thrown into the reader of the requests if faults are known and nothing is to be stored. */
export class FaultyBatch extends Error {}

/**
 * Checks every request of a batch like a single request: its body, the scopes of its key, its model and its price. Nothing is
 * held, and no vendor is called. Hooks run later, when the request is run.
 */
export class RequestChecks {
  readonly faults: LineFault[] = []
  /** Prices by the name that requests refer to (index and model: `0 gp-5.4`), or `undefined` if billing is off or the endpoint is free. */
  prices: Record<string, readonly MeterPrice[]> | undefined
  /** Costs of all requests. */
  costs = NO_COSTS
  estimate: Usage = {}
  total = 0
  /** Model of all requests; set after the first one. */
  model: { readonly id: string; readonly vendor: string } | undefined
  readonly #context: PipelineContext
  readonly #endpoint: Endpoint
  readonly #principal: Principal
  readonly #customIds = new Set<string>()
  readonly #priceNames = new Map<string, string>()

  constructor(context: PipelineContext, endpoint: Endpoint, principal: Principal) {
    this.#context = context
    this.#endpoint = endpoint
    this.#principal = principal
  }

  /** Whether there are so many faults that the rest is not read. */
  get isHopeless(): boolean {
    return this.faults.length >= MAX_FAULTS
  }

  fault(fault: LineFault): void {
    if (!this.isHopeless) this.faults.push(fault)
  }

  /** @returns `undefined` for an invalid request. */
  async plan({ customId, body }: WrittenRequest, line: number): Promise<PlannedRequest | undefined> {
    this.total++
    if (this.total % CHECKED_PER_TURN === 0) await endOfTurn()
    if (this.#customIds.has(customId)) {
      const message = `custom_id: ${JSON.stringify(customId)} is that of an earlier request, too`
      this.fault({ code: 'duplicate_custom_id', line, message, param: 'custom_id' })
      return undefined
    }
    this.#customIds.add(customId)
    try {
      const text = exactJsonText(body)
      const hasOwnTurns = Buffer.byteLength(text) > OWN_TURN_BYTES
      if (hasOwnTurns) await endOfTurn()
      const charged = await this.#check(text)
      if (hasOwnTurns) await endOfTurn()
      return { id: customId, body, ...charged }
    } catch (cause) {
      const error = GatewayError.from(cause)
      // Errors that the caller did not cause concern the whole batch.
      if (error.status >= 500 || error.code === 'model_not_priced') throw error
      this.fault({ code: error.publicCode, line, message: error.message, param: error.param ?? null })
      return undefined
    }
  }

  async #check(body: string): Promise<Pick<PlannedRequest, 'price' | 'costs'> | undefined> {
    const context = this.#context
    const record = innerCall(context, {
      endpoint: this.#endpoint,
      principal: this.#principal,
      requestId: 'batch',
      body,
    })
    const parsed = await readRequest(context, record)
    context.retirements.headerFor(context, parsed.chain)
    if (parsed.isStream || parsed.endpoint.deferral?.applies(parsed.body) === true) {
      const param = parsed.isStream ? 'stream' : 'background'
      throw new GatewayError('unsupported_parameter', {
        message: `${param}: not allowed in requests of a batch`,
        param,
      })
    }
    if (parsed.endpoint.continuation?.of(parsed.body) !== undefined)
      throw new GatewayError('unsupported_parameter', {
        message: 'Requests of a batch cannot begin or continue a conversation that the vendor stores.',
      })
    if (parsed.endpoint.kept !== undefined) await recall(context, parsed)
    this.#checkModel(parsed)
    record.billingFields = { ...parsed.billingFields, [BATCH_FIELD]: BATCH_VALUE }
    const estimate = estimateFor(context, parsed, parsed.chain[0]!)
    this.estimate = addUsage(this.estimate, estimate)
    const priced = priceRequest(context, parsed, estimate)
    if (priced === undefined) return undefined
    if (priced.rates.some(({ otherModels }) => otherModels !== undefined))
      throw new GatewayError('unsupported_parameter', {
        message: 'Tools that use other models cannot be used in a batch.',
      })
    const unbounded = unboundedRequest(context, parsed, priced)
    const costs = boundCosts(priced, unbounded)
    this.costs = addCosts(this.costs, costs)
    const price = this.#priceOf(priced.rates.map(({ model, prices }) => [model, prices]))
    return { price, costs: writtenCosts(costs) }
  }

  #checkModel({ chain, body }: Parsed): void {
    const { id, vendor } = this.#context.catalog.find(body.model) ?? chain[0]!
    this.model ??= { id, vendor }
    if (this.model.id === id) return
    throw new GatewayError('invalid_request', {
      message: `model: the requests of a batch have one model, and the first one has ${JSON.stringify(this.model.id)}`,
      param: 'model',
      publicCode: 'mismatched_model',
    })
  }

  #priceOf(rates: readonly (readonly [model: string, prices: readonly MeterPrice[]])[]): string {
    const key = JSON.stringify(rates)
    const known = this.#priceNames.get(key)
    if (known !== undefined) return known
    const name = String(this.#priceNames.size)
    if (this.#priceNames.size === MAX_PRICES)
      throw new GatewayError('invalid_request', {
        message: `A batch can have at most ${MAX_PRICES} different prices.`,
      })
    this.#priceNames.set(key, name)
    this.prices ??= {}
    for (const [model, prices] of rates) this.prices[`${name} ${model}`] = prices
    return name
  }
}
