import { createRate } from '../catalog/prices/rate.ts'
import { isYoungerThan, type Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink } from '../core/exchange.ts'
import { withHookUnits } from '../core/usage.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { release } from '../pipeline/admission.ts'
import { readRefusal } from '../pipeline/authenticate.ts'
import type { Admitted, CallRecord, Hold, Reserved } from '../pipeline/call-record.ts'
import {
  emitUnbilledEnding,
  emitUnbilledUsage,
  settledUsage,
  type UsedCall,
  WHOLE_ANSWER_WAIT_MS,
} from '../pipeline/charge.ts'
import type { Completion } from '../pipeline/completion.ts'
import { estimatedUsage } from '../pipeline/estimate.ts'
import { InnerCaller, laterCall } from '../pipeline/idempotent-request.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { chargeFor } from '../pipeline/pricing.ts'
import { EVENT_STREAM, respondJson } from '../pipeline/respond.ts'
import { runToEnd } from '../pipeline/serve.ts'
import { answerAccess, keptTurn, type PendingOutcome, type StoredAnswerRequest } from '../pipeline/stored-answers.ts'
import { DEFAULT_TOKENS_PER_SECOND } from '../pipeline/token-sizes.ts'
import type { JsonResponse, VendorResponse } from '../pipeline/vendor-response.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../stores/task-store.ts'
import { type CallerRights, JobRunner, LOOK_INTERVAL_MS } from './job-runner.ts'
import { runOrRetry, unsettled } from './submit-task.ts'
import { DEFERRED_CREDENTIAL_ID, frozenCharge, lateReceipt } from './task-record.ts'
import {
  chargedEnd,
  commit,
  endTask,
  isSameEnd,
  type ReportOutcome,
  type TaskCharge,
  type WakeWebhooks,
} from './update-task.ts'

/** Interval between checks of the task that a waiting stream follows, in milliseconds. */
const FOLLOW_INTERVAL_MS = 1_000

/** Silence after which a heartbeat is sent, in milliseconds. */
const SILENCE_MS = 15_000

type Exchange = Pick<StoredAnswerRequest, 'sink' | 'requestId' | 'principal'>

/** Serves answers that are not ready yet: their owners can read, follow and cancel them. */
export class DeferredAnswers {
  readonly #runner: DeferredRunner
  readonly #wakeWebhooks: WakeWebhooks

  constructor(runner: DeferredRunner, wakeWebhooks: WakeWebhooks) {
    this.#runner = runner
    this.#wakeWebhooks = wakeWebhooks
  }

  wake(): void {
    this.#runner.wake()
  }

  /**
   * Serves a request about an answer that is not stored yet. An account sees only its own answers.
   * @throws GatewayError `invalid_request` for an action that is not possible before the end.
   */
  async serve(context: PipelineContext, asked: StoredAnswerRequest): Promise<PendingOutcome> {
    const { principal, endpoint, id, action, request } = asked
    const task = await context.store.tasks.find(principal.accountId, id)
    if (task === undefined || task.details.endpoint !== endpoint.id || endpoint.deferral === undefined) return 'none'
    if (!OPEN_TASK_STATES.includes(task.state)) return 'ended'
    if (request.method === 'DELETE')
      throw new GatewayError('invalid_request', { message: 'Cannot delete a response in progress. Cancel it first.' })
    if (action === 'cancel') {
      await this.cancel(context, task)
      return 'ended'
    }
    if (action !== '')
      throw new GatewayError('invalid_request', { message: 'The items of a response are listed once it has ended.' })
    const parameters = new URLSearchParams(request.query)
    // A HEAD request does not wait for the end.
    const isFollowed = parameters.get('stream') === 'true' && request.method !== 'HEAD'
    if (isFollowed) await this.follow(context, asked, task, startOf(parameters))
    else respondJson(asked.sink, asked.requestId, endpoint.deferral.record(task))
    return 'served'
  }

  /**
   * Repeats, from its beginning, the stream of an earlier request with the same Idempotency-Key.
   * @throws GatewayError `response_not_found` if the answer has been deleted.
   */
  async followAgain(context: PipelineContext, repeated: Admitted, taskId: string): Promise<void> {
    const { endpoint, principal, sink, requestId } = repeated
    const task = await context.store.tasks.find(principal.accountId, taskId)
    if (task === undefined) throw new GatewayError('response_not_found')
    if (OPEN_TASK_STATES.includes(task.state)) return await this.follow(context, repeated, task, -1, REPLAYED)
    const events = await restOf(context, endpoint, task, undefined)
    if (sink.closed) return
    sink.head(200, ['content-type', EVENT_STREAM, ...STREAM_HEADERS, 'x-request-id', requestId, ...REPLAYED])
    sink.end(events)
  }

  /** Sends an answer as events: the beginning immediately, and the content when it is ready. */
  async follow(
    context: PipelineContext,
    exchange: Exchange,
    task: TaskRecord,
    startingAfter = -1,
    headers: readonly string[] = [],
  ): Promise<void> {
    const endpoint = context.endpoints.deferring(task.details.endpoint)
    if (endpoint?.deferral === undefined) throw new TypeError('only deferred answers are followed')
    const { sink, requestId, principal: caller } = exchange
    const { text, lastNumber } = endpoint.deferral.firstEvents(endpoint.deferral.record(task), startingAfter)
    sink.head(200, ['content-type', EVENT_STREAM, ...STREAM_HEADERS, 'x-request-id', requestId, ...headers])
    const sentNumber = Math.max(startingAfter, lastNumber)
    const keepAlive = endpoint.deferral.keepAlive(sentNumber)
    sink.write(text === '' ? keepAlive : text)
    try {
      const work = { caller, endpointIds: [endpoint.id], model: undefined }
      const hasEnded = await this.#untilEnded(context, sink, task, keepAlive, work)
      if (GatewayError.isInstance(hasEnded)) return sink.end(endpoint.errors.streamEvent(hasEnded))
      if (!hasEnded) return sink.destroy()
      sink.end(await restOf(context, endpoint, task, sentNumber))
    } catch (error) {
      // A stream that has begun must not look complete.
      sink.destroy()
      throw error
    }
  }

  /**
   * Returns `false` if the caller disconnects or the gateway closes, and an error if the caller may no longer read the answer.
   * @param work Read request, for which the rights of the caller are checked.
   */
  async #untilEnded(
    context: PipelineContext,
    sink: ByteSink,
    task: TaskRecord,
    keepAlive: string,
    work: CallerRights,
  ): Promise<boolean | GatewayError> {
    const { clock, store } = context
    let lastWriteMs = clock.now()
    for (;;) {
      if (sink.closed || this.#runner.isStopped) return false
      const now = await store.tasks.find(task.accountId, task.id)
      if (now === undefined || !OPEN_TASK_STATES.includes(now.state)) return true
      const refusal = await readRefusal(context, work)
      // A frozen account can still read its answers.
      if (refusal !== undefined && refusal.code !== 'account_frozen') return refusal
      if (clock.now() - lastWriteMs >= SILENCE_MS) {
        sink.write(keepAlive)
        lastWriteMs = clock.now()
      }
      await new Promise<Timer | undefined>((resolve) => {
        clock.schedule(FOLLOW_INTERVAL_MS, () => resolve(undefined))
      })
    }
  }

  /** Ends a task. Has no effect if it ended in the meantime. */
  async cancel(context: PipelineContext, task: TaskRecord): Promise<void> {
    const { settlementRetries } = context
    // The run may have ended with an answer that is not stored yet.
    if (task.state === 'in_progress' && settlementRetries.size > 0) await settlementRetries.flush()
    const now =
      task.state === 'in_progress' && (await this.#runner.cancel(task.id))
        ? await context.store.tasks.find(task.accountId, task.id)
        : await commit(context, task, cancelledEnd(context, task), this.#wakeWebhooks)
    // The run began in the meantime, or the store has not saved its end.
    if (now !== undefined && OPEN_TASK_STATES.includes(now.state)) await this.cancel(context, now)
  }
}

/**
 * End of a task that this process does not run. If another process runs it, that process notices by itself and charges the vendor's
 * output as for a caller that disconnects.
 */
function cancelledEnd({ clock }: PipelineContext, task: TaskRecord): ReportOutcome {
  const { details, holdId } = task
  const end = { state: 'cancelled', nowMs: clock.now() } as const
  if (task.state !== 'in_progress') return endTask(task, details, end)
  const { heldUsage } = details
  const tokensPerSecond = DEFAULT_TOKENS_PER_SECOND
  const measured = { estimate: heldUsage, bytesPerToken: 1, usualReasoningTokens: undefined, tokensPerSecond }
  const stoppedAfterMs = end.nowMs - task.updatedAtMs + WHOLE_ANSWER_WAIT_MS
  const isUnseen = holdId !== undefined
  const left = estimatedUsage(measured, { outputBytes: 0, isUnseen, isStopped: true, stoppedAfterMs })
  const usage = withHookUnits(left, heldUsage.hookUnits ?? 0)
  return chargedEnd(task, { ...end, details }, { usage, amount: frozenCharge(details, details.variant, usage) })
}

const STREAM_HEADERS = ['cache-control', 'no-cache, no-transform', 'x-accel-buffering', 'no']
const REPLAYED = ['idempotent-replayed', 'true']

async function restOf(
  context: PipelineContext,
  { kept }: Endpoint,
  { id, accountId, keyId }: TaskRecord,
  startingAfter: number | undefined,
): Promise<string> {
  const parameters = new URLSearchParams({ stream: 'true' })
  if (startingAfter !== undefined) parameters.set('starting_after', String(startingAfter))
  const access = answerAccess(context, { accountId, keyId, tier: 'paid' })
  const reply = await kept?.read({ id, action: '', parameters }, access)
  return reply !== undefined && 'events' in reply ? reply.events : ''
}

function startOf(parameters: URLSearchParams): number {
  const after = parameters.get('starting_after')
  if (after === null) return -1
  if (/^\d{1,9}$/.test(after)) return Number(after)
  throw new GatewayError('invalid_request', {
    message: 'starting_after: must be a sequence number',
    param: 'starting_after',
  })
}

/** A task whose process died this many times may be the cause, and fails. */
const MAX_RUNS = 5

/** How long a closing gateway waits for runs, in milliseconds. */
const DEFAULT_DRAIN_MS = 5_000

/** Runs deferred answers. */
export class DeferredRunner extends JobRunner<DeferredRun> {
  protected readonly credentialId = DEFERRED_CREDENTIAL_ID
  protected readonly maxRunning = 32
  protected readonly heartbeatMs = 20_000
  readonly #wakeWebhooks: WakeWebhooks
  /** When a query last found no due task of accounts below their share. */
  #noOthersAtMs = Number.NEGATIVE_INFINITY

  /** @param onBegin Called when a run begins. */
  constructor(context: PipelineContext, wakeWebhooks: WakeWebhooks, onBegin: () => void) {
    super(context, 'deferred answers', onBegin)
    this.#wakeWebhooks = wakeWebhooks
  }

  /** Cancels the run of a task, and waits for its end. Returns `false` if this process does not run it. */
  async cancel(taskId: string): Promise<boolean> {
    const running = this.running.get(taskId)
    if (running === undefined) return false
    running.run.cancel()
    await running.ended
    return true
  }

  /** Leases no more work, and waits for current runs. Runs without an answer after `drainMs` are put back and run again later. */
  async stop({ drainMs = DEFAULT_DRAIN_MS }: { readonly drainMs?: number } = {}): Promise<void> {
    await this.drain(drainMs, () => {
      // Its owner may have cancelled it through another process, which has charged it.
      for (const { task, run } of this.running.values()) void this.renewLease(task, run).then(() => run.putBack())
    })
  }

  protected async look(): Promise<void> {
    if (this.freePlaces <= 0) return
    await this.#beginOthers()
    if (this.freePlaces > 0) for (const task of await this.lease({ limit: this.freePlaces })) this.begin(task)
  }

  /**
   * Accounts below their share in this process come first, so that an account with many tasks does not delay the others. The store
   * then skips the waiting tasks of all other accounts, which is slow, so an empty result delays the next such query.
   */
  async #beginOthers(): Promise<void> {
    const nowMs = this.context.clock.now()
    const exceptAccounts = this.#accountsWithShare()
    if (exceptAccounts.length === 0 || isYoungerThan(LOOK_INTERVAL_MS, this.#noOthersAtMs, nowMs)) return
    const others = await this.lease({ limit: this.freePlaces, exceptAccounts })
    if (others.length === 0) this.#noOthersAtMs = nowMs
    for (const task of others) this.begin(task)
  }

  /** Returns the accounts whose runs here reach their share of the places, counting one additional account. */
  #accountsWithShare(): readonly string[] {
    const counts = new Map<string, number>()
    for (const { task } of this.running.values()) counts.set(task.accountId, (counts.get(task.accountId) ?? 0) + 1)
    const share = Math.max(1, Math.floor(this.maxRunning / (counts.size + 1)))
    return [...counts].flatMap(([accountId, count]) => (count >= share ? [accountId] : []))
  }

  protected open(task: TaskRecord): DeferredRun | undefined {
    const { details } = task
    const endpoint = this.context.endpoints.deferring(details.endpoint)
    const started = {
      ...task,
      state: 'in_progress',
      updatedAtMs: this.context.clock.now(),
      details: { ...details, polls: details.polls + 1 },
    } as const
    return endpoint && new DeferredRun(this.context, endpoint, started, this.#wakeWebhooks)
  }

  protected async runTask(task: TaskRecord, run: DeferredRun): Promise<void> {
    const { id, details } = task
    if (details.polls >= MAX_RUNS) {
      const error = { code: 'server_error', message: 'The answer could not be made.' }
      const end = { state: 'failed', nowMs: this.context.clock.now() } as const
      await commit(this.context, task, endTask(task, { ...details, error }, end), this.#wakeWebhooks)
      return
    }
    const refusal = await readRefusal(this.context, this.rightsOf(task))
    if (refusal !== undefined) run.refuse(refusal)
    const answered = lateReceipt(this.context, { ...task, state: 'queued' })
    if (!(await this.markRunning(task, { answered, details: run.task.details }))) return
    const outcome = await this.whileLeased(task, run, () => run.run())
    // The run has used nothing yet that counts as a failure.
    if (outcome.kind === 'again') await this.putBack(id, outcome.atMs, details)
  }

  protected refuse(_task: TaskRecord, run: DeferredRun, error: GatewayError): void {
    run.refuse(error)
  }

  /** Ends the run if its task has ended elsewhere. */
  protected async renewed({ id, accountId }: TaskRecord, run: DeferredRun, isLost: boolean): Promise<void> {
    if (!isLost) return
    const ended = await this.context.store.tasks.find(accountId, id)
    run.abandon({ isCharged: ended?.state === 'cancelled' })
  }
}

/** Result of a run: ended, or to be tried again at a later time. */
type RunOutcome = { readonly kind: 'ended' } | { readonly kind: 'again'; readonly atMs: number }

const ENDED: RunOutcome = { kind: 'ended' }

/**
 * Limits of the delay before a retry, in milliseconds. The delay is half of the time since the submission, if a limit or the store
 * stopped the run.
 */
const MIN_RETRY_DELAY_MS = 1_000
const MAX_RETRY_DELAY_MS = 60_000

/** Why a run is stopped. `ended`: its task has ended elsewhere. `charged`: its task has ended elsewhere, and that end has charged it. */
type StopReason = 'put-back' | 'cancelled' | 'ended' | 'charged'

/**
 * One run of a deferred answer, through the same stages as any request, with the money held at its acceptance. Its end is one change
 * of its task, with the answer, the settlement and the webhook in one transaction: if two processes run the same task, the first end
 * counts.
 */
class DeferredRun implements Completion {
  /** In state `in_progress`, and leased by this process. */
  readonly task: TaskRecord
  readonly #context: PipelineContext
  readonly #endpoint: Endpoint
  readonly #wake: WakeWebhooks
  readonly #caller = new InnerCaller()
  #received: CallRecord | undefined
  #stopReason: StopReason | undefined
  #refusal: GatewayError | undefined
  #outcome: RunOutcome = ENDED

  constructor(context: PipelineContext, endpoint: Endpoint, task: TaskRecord, wake: WakeWebhooks) {
    this.#context = context
    this.#endpoint = endpoint
    this.task = task
    this.#wake = wake
  }

  /**
   * Stops the run because its task has ended elsewhere. @param isCharged Whether its owner ended it, so that the end has charged for
   * it.
   */
  abandon({ isCharged }: { readonly isCharged: boolean }): void {
    this.#stop(isCharged ? 'charged' : 'ended')
  }

  /** Stops the run. Its task runs again from the beginning, unless its answer is complete. */
  putBack(): void {
    this.#stop('put-back')
  }

  /** Stops a run whose owner has lost the right to it. The task fails with this error, and is charged as if it was cancelled. */
  refuse(error: GatewayError): void {
    this.#refusal ??= error
    this.cancel()
  }

  /** Cancels the run for its owner. It ends like the request of a caller that disconnects, but the rest of the stream is not read. */
  cancel(): void {
    this.#stop('cancelled')
  }

  #stop(reason: StopReason): void {
    const isOlderFinal = this.#isLost || (this.#stopReason === 'cancelled' && reason === 'put-back')
    if (!isOlderFinal) this.#stopReason = reason
    this.#received?.calls.abort()
    // A cancelled call is charged to its caller. Any other stopped call is the operator's loss.
    if (reason === 'cancelled' || reason === 'charged') this.#caller.leave()
  }

  /** Runs to the end. Never rejects. */
  async run(): Promise<RunOutcome> {
    const { details, id: answerId, accountId, keyId } = this.task
    const { body, principal } = details.deferred!
    const received = laterCall(this.#context, {
      endpoint: this.#endpoint,
      principal: { ...principal, accountId, keyId },
      requestId: details.requestId,
      body,
      sink: this.#caller,
      answerId,
    })
    this.#received = received
    try {
      if (this.#stopReason !== undefined) throw new GatewayError('client_closed_request')
      await runToEnd(this.#context, received, () => this)
    } catch (cause) {
      await this.#refused(GatewayError.from(cause))
    } finally {
      received.calls.end()
    }
    return this.#outcome
  }

  /** Uses the money that is held since the acceptance of the request. */
  async reserve(_context: PipelineContext, admitted: Admitted): Promise<Reserved> {
    const { holdId, details } = this.task
    const { prices, heldUsage } = details
    // The hooks ran at the submission.
    admitted.chargedUnits(heldUsage.hookUnits ?? 0)
    if (holdId === undefined || prices === undefined) return admitted.reserved(undefined)
    const rates = Object.entries(prices).map(([model, rows]) => createRate(model, rows))
    const amount = frozenCharge(details, details.variant, details.heldUsage) ?? 0n
    const hold: Hold = { id: holdId, amount, rates }
    const chain = admitted.chain.filter(({ id }) => Object.hasOwn(prices, id))
    return admitted.reserved(hold, chain.length === 0 ? admitted.chain : chain)
  }

  async end(context: PipelineContext, reserved: Reserved, response: VendorResponse): Promise<void> {
    if (response.kind === 'stream') throw new TypeError('a deferred answer is never streamed')
    const { candidate, ending } = response
    const usage = settledUsage(context, reserved, { ending, candidate })
    const isEstimated = ending.usage === undefined
    const used = usage && candidate && { reserved, candidate, usage, isEstimated }
    try {
      if (this.#isLost) this.#tell(used)
      else if (response.kind === 'json') await this.#completed(reserved, response, used)
      else await this.#unanswered(response.error, used)
      if (candidate !== undefined && this.#stopReason !== 'charged')
        emitUnbilledEnding(context, reserved, candidate, ending)
    } catch (error) {
      this.#tell(used)
      throw error
    } finally {
      const counted = usage ?? ending.unbilled?.usage
      await release(context, reserved, (counted?.inputTokens ?? 0) + (counted?.outputTokens ?? 0))
    }
  }

  /** Whether the task has ended elsewhere. */
  get #isLost(): boolean {
    return this.#stopReason === 'ended' || this.#stopReason === 'charged'
  }

  /** Reports what a vendor bills for an obsolete run as the operator's loss, unless the end of the task has charged it. */
  #tell(used: UsedCall | undefined): void {
    if (used === undefined || this.#stopReason === 'charged') return
    emitUnbilledUsage(this.#context, used.reserved, used.candidate, used)
  }

  async #completed(reserved: Reserved, response: JsonResponse, used: UsedCall | undefined): Promise<void> {
    const context = this.#context
    const { candidate, body } = response
    const { deferral } = this.#endpoint
    const answer = body.keptAnswer
    if (answer === undefined || deferral === undefined) {
      this.#tell(used)
      return this.#unanswered(new GatewayError('upstream_invalid_response'), undefined)
    }
    const made = deferral.made(answer, this.task)
    context.stateMakers.note(reserved, candidate, made)
    const turn = keptTurn(context, reserved, candidate, made)
    const { id: upstreamId } = answer
    const keeps = turn && {
      ...turn,
      upstreamId: turn.upstreamId === undefined || typeof upstreamId !== 'string' ? undefined : upstreamId,
    }
    const facts = { ...this.task.details.facts, status: String(made['status']) }
    const details = { ...this.task.details, facts, model: candidate.model.id, vendor: candidate.vendor.id }
    const end = { state: 'completed', nowMs: context.clock.now(), details } as const
    const outcome = chargedEnd(this.task, end, this.#chargeOf(used))
    const { credentialId } = candidate
    const set = { ...outcome.change.set, credentialId }
    const task = { ...outcome.task, credentialId }
    await this.#commit({ ...outcome, task, change: { ...outcome.change, set, keeps } }, used)
  }

  #chargeOf(used: UsedCall | undefined): TaskCharge {
    const isHeld = this.task.holdId !== undefined
    if (used === undefined) return { usage: {}, amount: isHeld ? 0n : undefined }
    const { reserved, candidate } = used
    const usage = withHookUnits(used.usage, reserved.hookUnits)
    const amount = isHeld ? (chargeFor(reserved, candidate, usage) ?? reserved.hold?.amount) : undefined
    return { usage, amount }
  }

  /** Ends the task without an answer and charges its usage, or puts it back. */
  async #unanswered(error: GatewayError, used: UsedCall | undefined): Promise<void> {
    const nowMs = this.#context.clock.now()
    // Usage is an estimate if the call was cut off, and a report if hooks have withheld the answer.
    if (this.#stopReason === 'put-back' && used?.isEstimated !== false) {
      this.#tell(used)
      this.#outcome = { kind: 'again', atMs: nowMs }
      return
    }
    const isCancelled = this.#stopReason === 'cancelled' && this.#refusal === undefined
    const state = isCancelled ? 'cancelled' : 'failed'
    const { publicCode: code, message } = this.#refusal ?? error
    const failure = { code, message }
    const ended = isCancelled ? this.task.details : { ...this.task.details, error: failure }
    if (used === undefined) return await this.#commit(endTask(this.task, ended, { state, nowMs }), undefined)
    const { model, vendor } = used.candidate
    const details = { ...ended, model: model.id, vendor: vendor.id }
    await this.#commit(chargedEnd(this.task, { state, nowMs, details }, this.#chargeOf(used)), used)
  }

  /** Handles a run that ended before any vendor was called. Temporary errors lead to a retry. */
  async #refused(error: GatewayError): Promise<void> {
    if (this.#isLost) return
    const mayPass = error.code === 'rate_limited' || error.code === 'store_unavailable'
    if (this.#stopReason !== undefined || !mayPass) return await this.#unanswered(error, undefined)
    const nowMs = this.#context.clock.now()
    const waitedMs = Math.min((nowMs - this.task.createdAtMs) / 2, MAX_RETRY_DELAY_MS)
    const delayMs = Math.max(MIN_RETRY_DELAY_MS, waitedMs, (error.retryAfterSeconds ?? 0) * 1_000)
    this.#outcome = { kind: 'again', atMs: nowMs + delayMs }
  }

  /** Stores the end of the task, with retries until the store accepts it. */
  async #commit(outcome: ReportOutcome, used: UsedCall | undefined): Promise<void> {
    const context = this.#context
    const task = this.task
    const { requestId } = task.details
    const run = async (): Promise<void> => {
      const now = await commit(context, task, outcome, this.#wake)
      if (isSameEnd(now, outcome.task)) return
      // The owner who cancelled it was charged.
      if (now.state === 'cancelled') this.#stopReason = 'charged'
      else this.#tell(used)
    }
    const amount = outcome.ended?.costNanoDollars ?? 0n
    await runOrRetry(context, unsettled(requestId, task, amount), run, task.deadlineAtMs)
  }
}
