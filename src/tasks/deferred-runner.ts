import { Buffer } from 'node:buffer'
import { createRate } from '../catalog/prices/rate.ts'
import { isYoungerThan, scheduleCutOff, type Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { withHookUnits } from '../core/usage.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { release } from '../pipeline/admission.ts'
import { type CallerWork, readRefusal } from '../pipeline/authenticate.ts'
import { type Admitted, CallRecord, type Hold, type Reserved } from '../pipeline/call-record.ts'
import { emitUnbilledEnding, emitUnbilledUsage, settledUsage, type UsedCall } from '../pipeline/charge.ts'
import type { Completion } from '../pipeline/completion.ts'
import { InnerCaller, innerRequest } from '../pipeline/idempotent-request.ts'
import { type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import { chargeFor } from '../pipeline/pricing.ts'
import { runToEnd } from '../pipeline/serve.ts'
import { keptTurn } from '../pipeline/stored-answers.ts'
import type { JsonResponse, VendorResponse } from '../pipeline/vendor-response.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import { endTask, type ReportOutcome } from './apply-report.ts'
import { queuedReceipt } from './deferred-submission.ts'
import { frozenCharge } from './new-task.ts'
import { runOrRetry, unsettled } from './submit-task.ts'
import {
  answeredLate,
  chargedEnd,
  commit,
  DEFERRED_CREDENTIAL_ID,
  type DeferredCharge,
  isSameEnd,
  POLLED_STATES,
  type WakeWebhooks,
} from './update-task.ts'

/** Interval between queries for new work while there is none, in milliseconds. */
const LOOK_INTERVAL_MS = 1_000

/** Duration of a lease, in milliseconds. If a process does not renew it in time, another process runs the task again. */
const LEASE_MS = 60_000
const HEARTBEAT_MS = 20_000

/** Maximum number of runs in one process at the same time. */
const MOST_RUNNING = 32

/** A task whose process died this many times may be the cause, and fails. */
const MOST_RUNS = 5

/** Leasing work is not subject to a vendor's limit. */
const NO_BUDGET = { takes: 10_000, windowMs: 1_000 }

/** How long a closing gateway waits for runs, in milliseconds. */
const DEFAULT_DRAIN_MS = 5_000

/** Run, and the timer that renews the lease of its task. */
interface Running {
  readonly task: TaskRecord
  readonly run: DeferredRun
  readonly ended: Promise<void>
}

/**
 * Runs deferred answers. Processes share them by leases, so that another process, or the same one after its restart, repeats the runs
 * of a process that died.
 */
export class DeferredRunner {
  readonly #context: PipelineContext
  readonly #wakeWebhooks: WakeWebhooks
  readonly #onBegin: () => void
  readonly #running = new Map<string, Running>()
  #timer: Timer | undefined
  #looking: Promise<void> | undefined
  #looksAgain = false
  /** When a query last found no due task of accounts below their share. */
  #noOthersAtMs = Number.NEGATIVE_INFINITY
  #isStopped = true

  /** @param onBegin Called when a run begins. */
  constructor(context: PipelineContext, wakeWebhooks: WakeWebhooks, onBegin: () => void) {
    this.#context = context
    this.#wakeWebhooks = wakeWebhooks
    this.#onBegin = onBegin
  }

  /** Whether work is in progress in this process. */
  get isBusy(): boolean {
    return this.#looking !== undefined || this.#running.size > 0
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  start(): void {
    if (!this.#isStopped) return
    this.#isStopped = false
    this.wake()
  }

  /** Looks for work immediately. */
  wake(): void {
    if (this.#isStopped) return
    this.#looksAgain = true
    if (this.#looking !== undefined) return
    this.#timer?.cancel()
    this.#looking = this.#look().finally(() => {
      this.#looking = undefined
      if (this.#isStopped) return
      if (this.#looksAgain) this.wake()
      else this.#timer = this.#context.clock.schedule(LOOK_INTERVAL_MS, () => this.wake())
    })
  }

  /** Cancels the run of a task, and waits for its end. Returns `false` if this process does not run it. */
  async cancel(taskId: string): Promise<boolean> {
    const running = this.#running.get(taskId)
    if (running === undefined) return false
    running.run.cancel()
    await running.ended
    return true
  }

  *work(): Iterable<CallerWork> {
    for (const { task, run } of this.#running.values())
      yield { ...this.#rightsOf(task), end: (error) => run.refuse(error) }
  }

  #rightsOf(task: TaskRecord): Omit<CallerWork, 'end'> {
    const { endpoint, model } = task.details
    return { caller: task, endpointIds: [endpoint], model: this.#context.catalog.find(model) }
  }

  /** Leases no more work, and waits for current runs. Runs without an answer after `drainMs` are put back and run again later. */
  async stop({ drainMs = DEFAULT_DRAIN_MS }: { readonly drainMs?: number } = {}): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    await this.#looking
    const cutOff = scheduleCutOff(this.#context.clock, drainMs, () => {
      // Its owner may have cancelled it through another process, which has charged it.
      for (const { task, run } of this.#running.values()) void this.#signOfLife(task, run).then(() => run.putBack())
    })
    await Promise.all([...this.#running.values()].map(({ ended }) => ended))
    cutOff.cancel()
  }

  /** Never rejects: a failing store is queried again later. */
  async #look(): Promise<void> {
    this.#looksAgain = false
    if (this.#running.size >= MOST_RUNNING) return
    try {
      await this.#beginOthers()
      for (const task of await this.#lease()) this.#begin(task)
    } catch (error) {
      reportFault(this.#context, undefined, 'deferred answers', error)
    }
  }

  /**
   * Accounts below their share in this process come first, so that an account with many tasks does not delay the others. The store
   * then skips the waiting tasks of all other accounts, which is slow, so an empty result delays the next such query.
   */
  async #beginOthers(): Promise<void> {
    const nowMs = this.#context.clock.now()
    const accounts = this.#accountsWithShare()
    if (accounts.length === 0 || isYoungerThan(LOOK_INTERVAL_MS, this.#noOthersAtMs, nowMs)) return
    const others = await this.#lease(accounts)
    if (others.length === 0) this.#noOthersAtMs = nowMs
    for (const task of others) this.#begin(task)
  }

  /** Returns the accounts whose runs here reach their share of the places, counting one additional account. */
  #accountsWithShare(): readonly string[] {
    const counts = new Map<string, number>()
    for (const { task } of this.#running.values()) counts.set(task.accountId, (counts.get(task.accountId) ?? 0) + 1)
    const share = Math.max(1, Math.floor(MOST_RUNNING / (counts.size + 1)))
    return [...counts].flatMap(([accountId, count]) => (count >= share ? [accountId] : []))
  }

  /** Leases as many due tasks as there are free places, except those of some accounts. */
  async #lease(exceptAccounts: readonly string[] = []): Promise<readonly TaskRecord[]> {
    const { clock, store } = this.#context
    const limit = MOST_RUNNING - this.#running.size
    if (limit <= 0) return []
    const nowMs = clock.now()
    const query = { credentialId: DEFERRED_CREDENTIAL_ID, nowMs, leaseUntilMs: nowMs + LEASE_MS, limit }
    return await store.tasks.leaseDue({ ...query, budget: NO_BUDGET, exceptAccounts })
  }

  #begin(task: TaskRecord): void {
    const { id, details } = task
    const endpoint = this.#context.endpoints.deferring(details.endpoint)
    // Its deadline ends a task that this gateway can no longer run. A task that already runs here is not lost.
    if (endpoint === undefined || details.deferred === undefined || this.#running.has(id)) return
    const started = this.#startedTask(task)
    const run = new DeferredRun(this.#context, endpoint, started, this.#wakeWebhooks)
    const ended = this.#runTask(task, started, run)
      .catch((error: unknown) => reportFault(this.#context, details.requestId, 'deferred answers', error))
      .finally(() => {
        this.#running.delete(id)
        this.wake()
      })
    this.#running.set(id, { task, run, ended })
    this.#onBegin()
  }

  #startedTask(task: TaskRecord): TaskRecord {
    const nowMs = this.#context.clock.now()
    const details = { ...task.details, polls: task.details.polls + 1 }
    return { ...task, state: 'in_progress', updatedAtMs: nowMs, nextPollAtMs: nowMs + LEASE_MS, details }
  }

  async #runTask(task: TaskRecord, started: TaskRecord, run: DeferredRun): Promise<void> {
    const { clock, store } = this.#context
    const { id, details } = task
    if (details.polls >= MOST_RUNS) return await this.#giveUp(task)
    const refusal = await readRefusal(this.#context, this.#rightsOf(task))
    if (refusal !== undefined) run.refuse(refusal)
    const { state, updatedAtMs, nextPollAtMs } = started
    const set = { state, updatedAtMs, nextPollAtMs, details: started.details }
    const nowMs = clock.now()
    const receipt = () => queuedReceipt(this.#context, { ...task, state: 'queued' })
    const answered = answeredLate(details.claim, nowMs, receipt)
    if (!(await store.tasks.change({ id, from: [task.state], set, answered }, nowMs))) return
    const stopBeating = this.#beat(started, run)
    let outcome: RunOutcome
    try {
      outcome = await run.run()
    } finally {
      stopBeating()
    }
    if (outcome.kind === 'ended') return
    // The run has used nothing yet that counts as a failure.
    const again = { state: 'queued', nextPollAtMs: outcome.atMs, details } as const
    await store.tasks.change({ id, from: ['in_progress'], set: again }, clock.now())
  }

  async #giveUp(task: TaskRecord): Promise<void> {
    const error = { code: 'server_error', message: 'The answer could not be made.' }
    const end = { state: 'failed', nowMs: this.#context.clock.now() } as const
    await commit(this.#context, task, endTask(task, { ...task.details, error }, end), this.#wakeWebhooks)
  }

  /** Renews the lease periodically. The returned function stops it. */
  #beat(task: TaskRecord, run: DeferredRun): () => void {
    let timer: Timer
    const schedule = (): void => {
      timer = this.#context.clock.schedule(HEARTBEAT_MS, () => {
        schedule()
        void this.#signOfLife(task, run)
      })
    }
    schedule()
    return () => timer.cancel()
  }

  /** Renews the lease of the task, and ends the run if the task has ended elsewhere. Never rejects. */
  async #signOfLife({ id, accountId }: TaskRecord, run: DeferredRun): Promise<void> {
    const { clock, store } = this.#context
    try {
      const nowMs = clock.now()
      const set = { nextPollAtMs: nowMs + LEASE_MS }
      if (await store.tasks.change({ id, from: POLLED_STATES, set }, nowMs)) return
      const ended = await store.tasks.find(accountId, id)
      run.abandon({ isCharged: ended?.state === 'cancelled' })
    } catch (error) {
      reportFault(this.#context, undefined, 'deferred answers', error)
    }
  }
}

/** Result of a run: ended, or to be tried again at a later time. */
type RunOutcome = { readonly kind: 'ended' } | { readonly kind: 'again'; readonly atMs: number }

const ENDED: RunOutcome = { kind: 'ended' }

/**
 * Limits of the delay before a retry, in milliseconds. The delay is half of the time since the submission, if a limit or the store
 * stopped the run.
 */
const SHORTEST_RETRY_DELAY_MS = 1_000
const LONGEST_RETRY_DELAY_MS = 60_000

/** Why a run is stopped. `ended`: its task has ended elsewhere. `charged`: its task has ended elsewhere, and that end has charged it. */
type StopReason = 'put-back' | 'cancelled' | 'ended' | 'charged'

/**
 * One run of a deferred answer, through the same stages as any request, with the money held at its acceptance. Its end is one change
 * of its task, with the answer, the settlement and the webhook in one transaction: if two processes run the same task, the first end
 * counts.
 */
class DeferredRun implements Completion {
  readonly #context: PipelineContext
  readonly #endpoint: Endpoint
  readonly #task: TaskRecord
  readonly #wake: WakeWebhooks
  readonly #caller = new InnerCaller()
  #received: CallRecord | undefined
  #stopReason: StopReason | undefined
  #refusal: GatewayError | undefined
  #outcome: RunOutcome = ENDED

  /** @param task In state `in_progress`, and leased by this process. */
  constructor(context: PipelineContext, endpoint: Endpoint, task: TaskRecord, wake: WakeWebhooks) {
    this.#context = context
    this.#endpoint = endpoint
    this.#task = task
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
    const { clock } = this.#context
    const { details, id, accountId, keyId } = this.#task
    const { body, principal } = details.deferred!
    const received = new CallRecord({
      request: innerRequest(this.#endpoint.path, Buffer.from(body)),
      sink: this.#caller,
      requestId: details.requestId,
      startedAtMs: clock.now(),
      called: this.#endpoint,
      vouchedPrincipal: { ...principal, accountId, keyId },
      routeOverride: undefined,
      answerId: id,
    })
    received.observation = this.#context.observers?.later(received.startedAtMs)
    this.#received = received
    // The submission and the end of the task have their own events.
    received.announced()
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
    const { holdId, details } = this.#task
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
    const made = deferral.made(answer, this.#task)
    context.stateMakers.note(reserved, candidate, made)
    const turn = keptTurn(context, reserved, candidate, made)
    const { id: upstreamId } = answer
    const keeps = turn && {
      ...turn,
      upstreamId: turn.upstreamId === undefined || typeof upstreamId !== 'string' ? undefined : upstreamId,
    }
    const facts = { ...this.#task.details.facts, status: String(made['status']) }
    const details = { ...this.#task.details, facts, model: candidate.model.id, vendor: candidate.vendor.id }
    const end = { state: 'completed', nowMs: context.clock.now(), details } as const
    const outcome = chargedEnd(this.#task, end, this.#chargeOf(used))
    const { credentialId } = candidate
    const set = { ...outcome.change.set, credentialId }
    const task = { ...outcome.task, credentialId }
    await this.#commit({ ...outcome, task, change: { ...outcome.change, set, keeps } }, used)
  }

  #chargeOf(used: UsedCall | undefined): DeferredCharge {
    const isHeld = this.#task.holdId !== undefined
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
    const ended = isCancelled ? this.#task.details : { ...this.#task.details, error: failure }
    if (used === undefined) return await this.#commit(endTask(this.#task, ended, { state, nowMs }), undefined)
    const { model, vendor } = used.candidate
    const details = { ...ended, model: model.id, vendor: vendor.id }
    await this.#commit(chargedEnd(this.#task, { state, nowMs, details }, this.#chargeOf(used)), used)
  }

  /** Handles a run that ended before any vendor was called. Temporary errors lead to a retry. */
  async #refused(error: GatewayError): Promise<void> {
    if (this.#isLost) return
    const mayPass = error.code === 'rate_limited' || error.code === 'store_unavailable'
    if (this.#stopReason !== undefined || !mayPass) return await this.#unanswered(error, undefined)
    const nowMs = this.#context.clock.now()
    const waitedMs = Math.min((nowMs - this.#task.createdAtMs) / 2, LONGEST_RETRY_DELAY_MS)
    const delayMs = Math.max(SHORTEST_RETRY_DELAY_MS, waitedMs, (error.retryAfterSeconds ?? 0) * 1_000)
    this.#outcome = { kind: 'again', atMs: nowMs + delayMs }
  }

  /** Stores the end of the task, with retries until the store accepts it. */
  async #commit(outcome: ReportOutcome, used: UsedCall | undefined): Promise<void> {
    const context = this.#context
    const task = this.#task
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
