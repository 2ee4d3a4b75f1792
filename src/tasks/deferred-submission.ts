import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import { exactJsonText } from '../core/exact-json.ts'
import { withHookUnits } from '../core/usage.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { release } from '../pipeline/admission.ts'
import type { Admitted, Parsed, Reserved } from '../pipeline/call-record.ts'
import { attributionOf } from '../pipeline/charge.ts'
import type { Completion } from '../pipeline/completion.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { type PricedRequest, priceRequest } from '../pipeline/pricing.ts'
import { boundedForLater, type ReserveOutcome } from '../pipeline/reserve.ts'
import { respondReplay, respondWhole, taskHead } from '../pipeline/respond.ts'
import type { StoredAnswer } from '../stores/idempotency-store.ts'
import type { TaskDetails, TaskRecord } from '../stores/task-store.ts'
import { acceptedBatch, isBatch } from './batches/batch-record.ts'
import { ensureWebhookSecret, HOLD_GRACE_MS, note, reserveTask } from './submit-task.ts'
import { DEFERRED_CREDENTIAL_ID } from './update-task.ts'

/** After this time, a submission that is not yet queued counts as abandoned by a process that died. */
const SUBMISSION_MS = 60_000

/** Parts of the runner of deferred answers that a submission needs. */
export interface DeferredQueue {
  /** Looks for work immediately. */
  wake(): void
  /** Sends a task to its caller as events until it has ended. */
  follow(
    context: PipelineContext,
    exchange: Pick<Reserved, 'sink' | 'requestId'>,
    task: TaskRecord,
    startingAfter?: number,
    headers?: readonly string[],
  ): Promise<void>
  /** Sends the task of an earlier request with the same Idempotency-Key, which may have ended. */
  followAgain(context: PipelineContext, repeated: Admitted, taskId: string): Promise<void>
}

/**
 * Request whose answer is generated after the request has ended. Money and request are stored together, and the caller gets the id of
 * the answer, or its events. The runner does the rest.
 */
export class DeferredSubmission implements Completion {
  readonly #queue: DeferredQueue
  #task: TaskRecord | undefined
  #follows = false

  constructor(queue: DeferredQueue) {
    this.#queue = queue
  }

  check(context: PipelineContext, { endpoint, body, principal }: Parsed): Promise<void> {
    if (!context.keptAnswers.keeps)
      throw new GatewayError('unsupported_parameter', {
        message: 'background: this gateway does not store answers',
        param: 'background',
      })
    return ensureWebhookSecret(context, principal.accountId, deferralOf(endpoint).webhookUrl(body))
  }

  async reserve(context: PipelineContext, admitted: Admitted): Promise<ReserveOutcome> {
    await boundedForLater(context, admitted)
    const task = planDeferred(context, admitted)
    this.#task = task
    this.#follows = admitted.isStream
    return await reserveTask(context, admitted, {
      task,
      holdExpiresAtMs: task.createdAtMs + context.taskDeadlineMs + HOLD_GRACE_MS,
    })
  }

  async accept(context: PipelineContext, reserved: Reserved): Promise<void> {
    if (this.#task === undefined) throw new TypeError('a deferred answer is accepted after it was reserved')
    const queued = queuedTask(context, this.#task)
    const receipt = queuedReceipt(context, queued)
    try {
      await note(context, reserved, queued, receipt)
      reserved.announced()
    } finally {
      // Its run counts against the caller's limits of concurrent requests and tokens.
      await release(context, reserved, 0)
    }
    this.#queue.wake()
    const dropped = deferralOf(reserved.endpoint).dropped?.(reserved.body) ?? []
    if (this.#follows) {
      const headers = dropped.length === 0 ? [] : ['x-signalbox-dropped', dropped.join(', ')]
      return await this.#queue.follow(context, reserved, queued, -1, headers)
    }
    const { status, body } = receipt
    const facts = { vendorId: queued.details.vendor, dropped, byteLength: body.byteLength }
    respondWhole(reserved.sink, { status, headers: taskHead(reserved, facts) }, [body])
  }

  async replay(context: PipelineContext, admitted: Admitted, answer: StoredAnswer): Promise<void> {
    if (!admitted.isStream) return respondReplay(admitted.sink, answer, admitted.requestId)
    const { id } = JSON.parse(Buffer.from(answer.body).toString('utf8')) as { readonly id: string }
    await this.#queue.followAgain(context, admitted, id)
  }

  end(): never {
    throw new TypeError('a submission asks no vendor')
  }
}

function deferralOf({ deferral, path }: Endpoint): NonNullable<Endpoint['deferral']> {
  if (deferral === undefined) throw new TypeError(`answers of ${path} are not deferred`)
  return deferral
}

function planDeferred(context: PipelineContext, admitted: Admitted): TaskRecord {
  const { endpoint, chain, principal, claim, continued } = admitted
  const deferral = deferralOf(endpoint)
  const nowMs = context.clock.now()
  const priced = priceRequest(context, admitted, admitted.estimate)
  if (priced?.rates.some(({ otherModels }) => otherModels !== undefined) === true)
    throw new GatewayError('unsupported_parameter', {
      message: 'Tools that use other models cannot be used in the background.',
      param: 'tools',
    })
  const model = priced?.chain[0] ?? chain[0]!
  // The request is stored as its caller wrote it: references are resolved when it runs.
  const original = continued?.recalled?.original?.request
  const {
    fittedOutputTokens: bound,
    endpoint: { outputBound },
  } = admitted
  const isBounded = bound !== undefined && outputBound !== undefined
  const request = original && isBounded ? { ...original, [outputBound.member]: bound } : (original ?? admitted.body)
  const id = context.ids.next(endpoint.kept?.idPrefix ?? 'task')
  const webhookUrl = deferral.webhookUrl(request)
  const { tier, limits, plan, endUser, namesEndUsers, tags } = principal
  const details: TaskDetails = {
    requestId: admitted.requestId,
    endpoint: endpoint.id,
    model: model.id,
    vendor: model.vendor,
    prices: priced && frozenPrices(priced),
    heldUsage: withHookUnits(admitted.estimate, admitted.hookUnits),
    variant: model.id,
    facts: {},
    // Stored in normalized form: some characters are valid in URLs but not in databases, and would keep the task from ever ending.
    webhookUrl: webhookUrl === undefined ? undefined : new URL(webhookUrl).href,
    claim,
    attribution: attributionOf(admitted),
    polls: 0,
    unknownReports: 0,
    deferred: {
      body: exactJsonText(deferral.runnable(request)),
      begun: deferral.begun(request, { id, model: model.id, nowMs }),
      principal: { tier, limits, plan, endUser, namesEndUsers, tags },
    },
  }
  return {
    id,
    accountId: principal.accountId,
    keyId: principal.keyId,
    state: 'submitting',
    upstreamId: undefined,
    credentialId: DEFERRED_CREDENTIAL_ID,
    holdId: priced === undefined ? undefined : admitted.requestId,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
    nextPollAtMs: nowMs,
    deadlineAtMs: nowMs + SUBMISSION_MS,
    details,
  }
}

/** Prices of each model that may answer, by model id. A later price list does not change the cost of the answer. */
function frozenPrices({ chain, rates }: PricedRequest): NonNullable<TaskDetails['prices']> {
  return Object.fromEntries(chain.map(({ id }, index) => [id, rates[index]!.prices]))
}

/** Returns the task in its queued state. */
export function queuedTask({ clock, taskDeadlineMs }: PipelineContext, task: TaskRecord): TaskRecord {
  const nowMs = clock.now()
  const deadlineAtMs = task.details.deferred?.deadlineAtMs ?? task.createdAtMs + taskDeadlineMs
  return { ...task, state: 'queued', updatedAtMs: nowMs, nextPollAtMs: nowMs, deadlineAtMs }
}

/** Response to a submission. Its Idempotency-Key replays the same response. */
export function queuedReceipt(context: PipelineContext, task: TaskRecord): StoredAnswer {
  const record = isBatch(task)
    ? acceptedBatch(context, task)
    : (context.endpoints.deferring(task.details.endpoint)?.deferral?.record(task) ?? { id: task.id })
  return { status: 200, headers: ['content-type', 'application/json'], body: Buffer.from(JSON.stringify(record)) }
}
