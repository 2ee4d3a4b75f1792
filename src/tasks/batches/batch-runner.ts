// See docs/decisions/0016-batches.md.

import { isYoungerThan, scheduleCutOff, type Timer } from '../../core/clock.ts'
import type { GatewayError } from '../../core/errors.ts'
import { RecentMap } from '../../core/maps.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import { type CallerWork, readRefusal } from '../../pipeline/authenticate.ts'
import { type BatchSettings, type PipelineContext, reportFault } from '../../pipeline/pipeline-context.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../../stores/task-store.ts'
import { queuedReceipt } from '../deferred-submission.ts'
import { answeredLate, POLLED_STATES, type WakeWebhooks } from '../update-task.ts'
import { BATCH_CREDENTIAL_ID, type BatchEnd, factsOf, isCancelling } from './batch-record.ts'
import { BatchRun, type RequestTries, type StopReason } from './batch-run.ts'
import { cancelBatch, cleanUp, endBatch } from './end-batch.ts'
import { NativeRun } from './native-run.ts'
import { JournalConflict } from './native-vendor.ts'
import { COMPLETION_WINDOW_MS } from './submit-batch.ts'

/** Interval between queries for new work while there is none, in milliseconds. */
const LOOK_INTERVAL_MS = 1_000

/** Duration of a lease, in milliseconds. If a process does not renew it in time, another process continues the batch. */
const LEASE_MS = 60_000
const HEARTBEAT_MS = 5_000

/** Maximum number of batches that one process runs at the same time. */
const MOST_RUNNING = 4

/** After this time a batch makes room for a waiting one. Otherwise a few large batches would delay other accounts for hours. */
const TURN_MS = 5 * 60_000

/** How many batches this process remembers, and for how long: by then they have ended, here or elsewhere. */
const MOST_REMEMBERED = 1_000
const REMEMBERED_MS = COMPLETION_WINDOW_MS + 2 * 60 * 60_000

/** Delay before a batch is leased again after a fault of a store, in milliseconds. */
const RETRY_MS = 15_000

/** Delay before a batch of a frozen account is checked again, in milliseconds. */
const FROZEN_MS = 60_000

/** Interval between deletions of expired data, and the number deleted at a time. */
const PURGE_INTERVAL_MS = 60_000
const PURGE_BATCH_SIZE = 100

/** Leasing work is not subject to a vendor's limit. */
const NO_BUDGET = { takes: 10_000, windowMs: 1_000 }

interface Running {
  readonly task: TaskRecord
  readonly run: BatchWork
  readonly beganAtMs: number
  readonly ended: Promise<void>
}

/** Batch that is at a vendor, or was put back. */
interface Waiting {
  readonly task: Pick<TaskRecord, 'id' | 'accountId'>
  readonly tries: RequestTries
  readonly rights: Omit<CallerWork, 'end'>
}

/**
 * Runs batches. Processes share them by leases. After a crash, the next process continues from the stored state. Nobody holds a
 * batch while it waits at a vendor.
 */
export class BatchRunner {
  readonly #context: PipelineContext
  readonly #settings: BatchSettings
  readonly #wakeWebhooks: WakeWebhooks
  readonly #onBegin: () => void
  readonly #running = new Map<string, Running>()
  /** Batches that this process ran before and that are now at a vendor or put back, with the tries of their requests. */
  readonly #waiting = new RecentMap<Waiting>(MOST_REMEMBERED)
  #timer: Timer | undefined
  #looking: Promise<void> | undefined
  #purgedAtMs = Number.NEGATIVE_INFINITY
  #isStopped = true

  /** @param onBegin Called when a run begins. */
  constructor(context: PipelineContext, settings: BatchSettings, wakeWebhooks: WakeWebhooks, onBegin: () => void) {
    this.#context = context
    this.#settings = settings
    this.#wakeWebhooks = wakeWebhooks
    this.#onBegin = onBegin
  }

  /** Whether work is in progress in this process. */
  get isBusy(): boolean {
    return this.#looking !== undefined || this.#running.size > 0
  }

  start(): void {
    if (!this.#isStopped) return
    this.#isStopped = false
    this.wake()
  }

  /** Looks for work immediately. */
  wake(): void {
    if (this.#isStopped || this.#looking !== undefined) return
    this.#timer?.cancel()
    this.#looking = this.#look().finally(() => {
      this.#looking = undefined
      if (this.#isStopped) return
      this.#timer = this.#context.clock.schedule(LOOK_INTERVAL_MS, () => this.wake())
    })
  }

  /** Starts no more requests of a batch that its owner has cancelled, if it runs here, and notifies its vendor. */
  cancelled(batchId: string): void {
    const running = this.#running.get(batchId)
    if (running !== undefined) running.run.stop('cancelled')
    // If another process runs it, that process notices the cancellation by itself.
    else if (!this.#isStopped && this.#remembered(batchId) !== undefined) void this.#take({ id: batchId, limit: 1 })
  }

  *work(): Iterable<CallerWork> {
    for (const { task } of this.#running.values())
      yield { ...this.#rightsOf(task), end: (error) => void this.#refused(task, error) }
    for (const { task, rights } of this.#waiting.values(this.#context.clock.now()))
      if (!this.#running.has(task.id)) yield { ...rights, end: (error) => void this.#refused(task, error) }
  }

  #rightsOf(task: TaskRecord): Omit<CallerWork, 'end'> {
    const { accountId, keyId, details } = task
    const { endpoints, catalog } = this.#context
    const endpointIds = [details.endpoint, endpoints.at(factsOf(task).endpoint)?.id].filter((id) => id !== undefined)
    return { caller: { accountId, keyId }, endpointIds, model: catalog.find(details.model) }
  }

  /** Keeps a batch waiting while its account is frozen, and cancels it for any other refusal. Never rejects. */
  async #refused({ id, accountId }: Waiting['task'], refusal: GatewayError): Promise<void> {
    if (refusal.code === 'account_frozen') return this.#running.get(id)?.run.stop('put-back')
    try {
      const task = await this.#context.store.tasks.find(accountId, id)
      if (task === undefined || !OPEN_TASK_STATES.includes(task.state)) return this.#waiting.delete(id)
      if (isCancelling(task)) return
      const facts = { batchId: id, accountId, keyId: task.keyId, code: refusal.code }
      this.#context.logger.info('a batch is cancelled because its key may no longer run it', facts)
      await cancelBatch(this.#context, this, task)
    } catch (error) {
      reportFault(this.#context, undefined, 'batches', error)
    }
  }

  /** Leases no more work, and waits for the requests in flight. Requests that have not ended after `drainMs` are sent again later. */
  async stop({ drainMs }: { readonly drainMs: number }): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    await this.#looking
    for (const { run } of this.#running.values()) run.stop('put-back')
    const cutOff = scheduleCutOff(this.#context.clock, drainMs, () => {
      for (const { run } of this.#running.values()) run.abort()
    })
    await Promise.all([...this.#running.values()].map(({ ended }) => ended))
    cutOff.cancel()
  }

  /** Never rejects: a failing store is queried again later. */
  async #look(): Promise<void> {
    try {
      const limit = MOST_RUNNING - this.#running.size
      if (limit > 0) await this.#take({ limit })
      else if (limit === 0) await this.#passTurn()
      await this.#purge(this.#context.clock.now())
    } catch (error) {
      reportFault(this.#context, undefined, 'batches', error)
    }
  }

  /** Starts the batch that has waited longest in place of the one that has run longest, which then waits for its next turn. */
  async #passTurn(): Promise<void> {
    const [longest] = [...this.#running.values()].sort((one, other) => one.beganAtMs - other.beganAtMs)
    if (longest === undefined || isYoungerThan(TURN_MS, longest.beganAtMs, this.#context.clock.now())) return
    await this.#take({ limit: 1 })
    if (this.#running.size > MOST_RUNNING) longest.run.makeRoom()
  }

  /** Never rejects. */
  async #take(which: { readonly id?: string; readonly limit: number }): Promise<void> {
    const { clock, store } = this.#context
    const nowMs = clock.now()
    const query = { ...which, credentialId: BATCH_CREDENTIAL_ID, nowMs, leaseUntilMs: nowMs + LEASE_MS }
    try {
      for (const task of await store.tasks.leaseDue({ ...query, budget: NO_BUDGET })) {
        // A batch that is not due may be run by another process, which notices the cancellation by itself.
        if (which.id === undefined || task.state === 'queued') this.#begin(task)
      }
    } catch (error) {
      reportFault(this.#context, undefined, 'batches', error)
    }
  }

  async #purge(nowMs: number): Promise<void> {
    if (isYoungerThan(PURGE_INTERVAL_MS, this.#purgedAtMs, nowMs)) return
    const { files, blobs, outcomes } = this.#settings
    const ids = await files.purge(nowMs, PURGE_BATCH_SIZE)
    for (const id of ids) await blobs.delete(id)
    const others = (await blobs.purge(nowMs, PURGE_BATCH_SIZE)) + (await outcomes.purge(nowMs, PURGE_BATCH_SIZE))
    if (ids.length < PURGE_BATCH_SIZE && others < PURGE_BATCH_SIZE) this.#purgedAtMs = nowMs
  }

  #begin(task: TaskRecord): void {
    const { id, details } = task
    const endpoint = this.#context.endpoints.at(factsOf(task).endpoint)
    if (endpoint === undefined || details.deferred === undefined || this.#running.has(id)) return
    const waited = this.#remembered(id)
    const tries = waited?.tries ?? new Map()
    const run = new BatchWork(this.#context, this.#settings, endpoint, { task, tries })
    if (isCancelling(task)) run.stop('cancelled')
    const ended = this.#runTask(task, run, { tries, wasHere: waited !== undefined })
      .catch((error: unknown) => reportFault(this.#context, details.requestId, 'batches', error))
      .finally(() => {
        this.#running.delete(id)
        this.wake()
      })
    this.#running.set(id, { task, run, beganAtMs: this.#context.clock.now(), ended })
    this.#onBegin()
  }

  /** @param wasHere Whether this process ran the batch before. Then its Idempotency-Key is completed. */
  async #runTask(
    task: TaskRecord,
    run: BatchWork,
    { tries, wasHere }: { readonly tries: RequestTries; readonly wasHere: boolean },
  ): Promise<void> {
    const { clock, store } = this.#context
    const { id, accountId, details } = task
    const nowMs = clock.now()
    const claim = wasHere || task.state !== 'queued' ? undefined : details.claim
    const answered = answeredLate(claim, nowMs, () => queuedReceipt(this.#context, task))
    // `details` is not overwritten: a cancellation may have been written into it since the lease began.
    const set = { state: 'in_progress', updatedAtMs: nowMs, nextPollAtMs: nowMs + LEASE_MS } as const
    if (!(await store.tasks.change({ id, from: [task.state], set, answered }, nowMs))) return
    const stopBeating = this.#beat(task, run)
    try {
      const refusal = isOver(task, nowMs) ? undefined : await readRefusal(this.#context, this.#rightsOf(task))
      const isHeldUp = refusal?.code === 'account_frozen'
      if (refusal !== undefined) await this.#refused(task, refusal)
      const result: WorkResult = isHeldUp ? { kind: 'waits', untilMs: nowMs + FROZEN_MS } : await run.run()
      const ended = await store.tasks.find(accountId, id)
      const isOpen = ended !== undefined && POLLED_STATES.includes(ended.state)
      if (!isOpen || result.kind === 'ended') this.#waiting.delete(id)
      if (!isOpen) return await cleanUp(this.#settings, id)
      if (result.kind === 'ended')
        return await endBatch(this.#context, this.#settings, ended, { ...result, wake: this.#wakeWebhooks })
      this.#waiting.set(
        id,
        { task: { id, accountId }, tries, rights: this.#rightsOf(task) },
        clock.now(),
        REMEMBERED_MS,
      )
      // If a cancellation came in the meantime, the batch is due immediately.
      await this.#putBack(id, isCancelling(ended) && !isCancelling(task) ? clock.now() : result.untilMs)
    } catch (error) {
      // Another process holds the batch now.
      if (error instanceof JournalConflict) return
      await this.#putBack(id, clock.now() + RETRY_MS)
      throw error
    } finally {
      stopBeating()
    }
  }

  #remembered(id: string): Waiting | undefined {
    return this.#waiting.get(id, this.#context.clock.now())
  }

  async #putBack(id: string, atMs: number): Promise<void> {
    const { clock, store } = this.#context
    await store.tasks.change({ id, from: ['in_progress'], set: { state: 'queued', nextPollAtMs: atMs } }, clock.now())
  }

  /** Renews the lease while the batch runs, and checks whether the batch was cancelled elsewhere. */
  #beat({ id, accountId }: TaskRecord, run: BatchWork): () => void {
    const { clock, store } = this.#context
    let timer: Timer
    const beat = async (): Promise<void> => {
      try {
        const nowMs = clock.now()
        const set = { nextPollAtMs: nowMs + LEASE_MS }
        if (!(await store.tasks.change({ id, from: POLLED_STATES, set }, nowMs))) return run.abort()
        const task = await store.tasks.find(accountId, id)
        if (task !== undefined && isCancelling(task)) run.stop('cancelled')
      } catch (error) {
        reportFault(this.#context, undefined, 'batches', error)
      }
    }
    const schedule = (): void => {
      timer = clock.schedule(HEARTBEAT_MS, () => {
        schedule()
        void beat()
      })
    }
    schedule()
    return () => timer.cancel()
  }
}

/** Whether no more requests of the batch are started in any case. */
function isOver(task: TaskRecord, nowMs: number): boolean {
  return isCancelling(task) || nowMs >= factsOf(task).expiresAtMs
}

/** Result of the work on a batch. */
type WorkResult =
  /** Each request has its outcome, or is no longer executed. `vendor` is the vendor whose batch API was used, if any. */
  | { readonly kind: 'ended'; readonly end: BatchEnd; readonly vendor?: string | undefined }
  /** The batch is leased again at this time, in Unix milliseconds. */
  | { readonly kind: 'waits'; readonly untilMs: number }

/** Work on one batch while this process holds it: at the vendor's batch API, or by ordinary calls if that API does not accept the batch. */
class BatchWork {
  readonly #context: PipelineContext
  readonly #native: NativeRun
  readonly #paced: BatchRun

  constructor(
    context: PipelineContext,
    settings: BatchSettings,
    endpoint: Endpoint,
    turn: { readonly task: TaskRecord; readonly tries: RequestTries },
  ) {
    this.#context = context
    this.#native = new NativeRun(context, settings, endpoint, turn.task)
    this.#paced = new BatchRun(context, settings, endpoint, turn)
  }

  /** Starts nothing more; calls in flight end normally. */
  stop(reason: StopReason): void {
    this.#native.stop(reason)
    this.#paced.stop(reason)
  }

  /** Starts no more ordinary calls. The work with a vendor's batch API is short, so it is not interrupted for other batches. */
  makeRoom(): void {
    this.#paced.stop('put-back')
  }

  /** Aborts calls in flight, too. */
  abort(): void {
    this.#native.abort()
    this.#paced.abort()
  }

  /** @throws JournalConflict if another process continues the batch, and whatever the stores throw; the batch can be leased again. */
  async run(): Promise<WorkResult> {
    const turn = await this.#native.run()
    if (turn.kind !== 'paced') return turn
    const reason = await this.#paced.run()
    return reason === 'put-back'
      ? { kind: 'waits', untilMs: this.#context.clock.now() }
      : { kind: 'ended', end: reason ?? 'completed' }
  }
}
