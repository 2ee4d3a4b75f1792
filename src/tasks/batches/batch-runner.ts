// See docs/decisions/0016-batches.md.

import { Buffer } from 'node:buffer'
import { Pool } from '../../core/calls-in-flight.ts'
import { isYoungerThan, type Timer } from '../../core/clock.ts'
import { GatewayError } from '../../core/errors.ts'
import { RecentMap } from '../../core/maps.ts'
import { addUsage, type Usage } from '../../core/usage.ts'
import { readRefusal } from '../../pipeline/authenticate.ts'
import { type BatchSettings, type PipelineContext, reportFault } from '../../pipeline/pipeline-context.ts'
import type { BatchOutcome } from '../../stores/file-store.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../../stores/task-store.ts'
import { type CallerRights, JobRunner } from '../job-runner.ts'
import { lateReceipt } from '../task-record.ts'
import { chargedEnd, commit, POLLED_STATES, type WakeWebhooks } from '../update-task.ts'
import {
  BATCH_CREDENTIAL_ID,
  type BatchEnd,
  type BatchJob,
  endedLines,
  factsOf,
  isCancelling,
  keepOutcome,
  outcomesOf,
  type StopReason,
} from './batch-record.ts'
import { journalId, linesId, type PlannedRequest, planId, plannedRequests } from './lines.ts'
import { NativeRun } from './native-run.ts'
import { JournalConflict } from './native-vendor.ts'
import { heldFor, outcomeId, RequestRun } from './request-run.ts'
import { COMPLETION_WINDOW_MS } from './submit-batch.ts'

/** After this time a batch makes room for a waiting one. Otherwise a few large batches would delay other accounts for hours. */
const TURN_MS = 5 * 60_000

/** How many batches this process remembers, and for how long: by then they have ended, here or elsewhere. */
const MAX_REMEMBERED = 1_000
const REMEMBERED_MS = COMPLETION_WINDOW_MS + 2 * 60 * 60_000

/** Delay before a batch is leased again after a fault of a store, in milliseconds. */
const RETRY_MS = 15_000

/** Delay before a batch of a frozen account is checked again, in milliseconds. */
const FROZEN_MS = 60_000

/** Interval between deletions of expired data, and the number deleted at a time. */
const PURGE_INTERVAL_MS = 60_000
const PURGE_BATCH_SIZE = 100

/** Batch that is at a vendor, or was put back. */
interface Waiting {
  readonly task: Pick<TaskRecord, 'id' | 'accountId'>
  readonly tries: RequestTries
  readonly rights: CallerRights
}

/** Runs batches. The next process continues one from the stored state. Nobody holds a batch while it waits at a vendor. */
export class BatchRunner extends JobRunner<BatchRun> {
  protected readonly credentialId = BATCH_CREDENTIAL_ID
  protected readonly maxRunning = 4
  protected readonly heartbeatMs = 5_000
  readonly #settings: BatchSettings
  readonly #wakeWebhooks: WakeWebhooks
  /** Batches that this process ran before and that are now at a vendor or put back, with the tries of their requests. */
  readonly #waiting = new RecentMap<Waiting>(MAX_REMEMBERED)

  /** @param onBegin Called when a run begins. */
  constructor(context: PipelineContext, settings: BatchSettings, wakeWebhooks: WakeWebhooks, onBegin: () => void) {
    super(context, 'batches', onBegin)
    this.#settings = settings
    this.#wakeWebhooks = wakeWebhooks
  }

  /** Starts no more requests of a batch that its owner has cancelled, if it runs here, and notifies its vendor. */
  cancelled(batchId: string): void {
    const running = this.running.get(batchId)
    if (running !== undefined) running.run.stop('cancelled')
    else if (!this.isStopped && this.#remembered(batchId) !== undefined) void this.track(this.#takeCancelled(batchId))
  }

  /** If another process runs the batch, that process notices the cancellation by itself. */
  async #takeCancelled(id: string): Promise<void> {
    for (const task of await this.lease({ id, limit: 1 })) if (task.state === 'queued') this.begin(task)
  }

  override *work(): ReturnType<JobRunner<BatchRun>['work']> {
    yield* super.work()
    for (const { task, rights } of this.#waiting.values(this.context.clock.now()))
      if (!this.running.has(task.id)) yield { ...rights, end: (error) => void this.#refused(task, error) }
  }

  protected override rightsOf(task: TaskRecord): CallerRights {
    const rights = super.rightsOf(task)
    const inner = this.context.endpoints.at(factsOf(task).endpoint)
    return inner === undefined ? rights : { ...rights, endpointIds: [...rights.endpointIds, inner.id] }
  }

  protected refuse(task: TaskRecord, _run: BatchRun, error: GatewayError): void {
    void this.#refused(task, error)
  }

  /** Keeps a batch waiting while its account is frozen, and cancels it for any other refusal. Never rejects. */
  async #refused({ id, accountId }: Waiting['task'], refusal: GatewayError): Promise<void> {
    if (refusal.code === 'account_frozen') return this.running.get(id)?.run.stop('put-back')
    try {
      const task = await this.context.store.tasks.find(accountId, id)
      if (task === undefined || !OPEN_TASK_STATES.includes(task.state)) return this.#waiting.delete(id)
      if (isCancelling(task)) return
      const facts = { batchId: id, accountId, keyId: task.keyId, code: refusal.code }
      this.context.logger.info('a batch is cancelled because its key may no longer run it', facts)
      await cancelBatch(this.context, this, task)
    } catch (error) {
      this.report(error)
    }
  }

  /** Leases no more work, and waits for the requests in flight. Requests that have not ended after `drainMs` are sent again later. */
  async stop({ drainMs }: { readonly drainMs: number }): Promise<void> {
    const draining = this.drain(drainMs, () => {
      for (const { run } of this.running.values()) run.abort()
    })
    for (const { run } of this.running.values()) run.stop('put-back')
    await draining
  }

  protected async look(): Promise<void> {
    if (this.freePlaces > 0) for (const task of await this.lease({ limit: this.freePlaces })) this.begin(task)
    else if (this.freePlaces === 0) await this.#passTurn()
    await this.every('purge', PURGE_INTERVAL_MS, () => this.#purge())
  }

  /** Starts the batch that has waited longest in place of the one that has run longest, which then waits for its next turn. */
  async #passTurn(): Promise<void> {
    const [longest] = [...this.running.values()].sort((one, other) => one.startedAtMs - other.startedAtMs)
    if (longest === undefined || isYoungerThan(TURN_MS, longest.startedAtMs, this.context.clock.now())) return
    for (const task of await this.lease({ limit: 1 })) this.begin(task)
    if (this.freePlaces < 0) longest.run.makeRoom()
  }

  async #purge(): Promise<boolean> {
    const { files, blobs, outcomes } = this.#settings
    const nowMs = this.context.clock.now()
    const ids = await files.purge(nowMs, PURGE_BATCH_SIZE)
    for (const id of ids) await blobs.delete(id)
    const others = (await blobs.purge(nowMs, PURGE_BATCH_SIZE)) + (await outcomes.purge(nowMs, PURGE_BATCH_SIZE))
    return ids.length < PURGE_BATCH_SIZE && others < PURGE_BATCH_SIZE
  }

  protected open(task: TaskRecord): BatchRun | undefined {
    const endpoint = this.context.endpoints.at(factsOf(task).endpoint)
    if (endpoint === undefined) return undefined
    const tries = this.#remembered(task.id)?.tries ?? new Map()
    const run = new BatchRun({ context: this.context, settings: this.#settings, endpoint, task }, tries)
    if (isCancelling(task)) run.stop('cancelled')
    if (this.isStopped) run.stop('put-back')
    return run
  }

  protected async runTask(task: TaskRecord, run: BatchRun): Promise<void> {
    const { clock } = this.context
    const { id } = task
    // This process has completed the Idempotency-Key of a batch that it ran before.
    const isKnown = this.#remembered(id) !== undefined || task.state !== 'queued'
    const answered = isKnown ? undefined : lateReceipt(this.context, task)
    // `details` is not overwritten: a cancellation may have been written into it since the lease began.
    if (!(await this.markRunning(task, { answered }))) return
    try {
      await this.whileLeased(task, run, () => this.#runLeased(task, run))
    } catch (error) {
      // Another process holds the batch now.
      if (error instanceof JournalConflict) return
      await this.putBack(id, clock.now() + RETRY_MS)
      throw error
    }
  }

  async #runLeased(task: TaskRecord, run: BatchRun): Promise<void> {
    const { clock, store } = this.context
    const { id, accountId } = task
    const rights = this.rightsOf(task)
    const nowMs = clock.now()
    const isOver = isCancelling(task) || nowMs >= factsOf(task).expiresAtMs
    const refusal = isOver ? undefined : await readRefusal(this.context, rights)
    if (refusal !== undefined) await this.#refused(task, refusal)
    const isFrozen = refusal?.code === 'account_frozen'
    const result = isFrozen ? ({ kind: 'waits', untilMs: nowMs + FROZEN_MS } as const) : await run.run()
    const now = await store.tasks.find(accountId, id)
    const isOpen = now !== undefined && POLLED_STATES.includes(now.state)
    if (!isOpen || result.kind === 'ended') this.#waiting.delete(id)
    if (!isOpen) return await cleanUp(this.#settings, id)
    if (result.kind === 'ended')
      return await endBatch(this.context, this.#settings, now, { ...result, wake: this.#wakeWebhooks })
    const waiting = { task: { id, accountId }, tries: run.tries, rights }
    this.#waiting.set(id, waiting, clock.now(), REMEMBERED_MS)
    // If a cancellation came in the meantime, the batch is due immediately.
    await this.putBack(id, isCancelling(now) && !isCancelling(task) ? clock.now() : result.untilMs)
  }

  #remembered(id: string): Waiting | undefined {
    return this.#waiting.get(id, this.context.clock.now())
  }

  /** Checks whether the batch was cancelled elsewhere. */
  protected async renewed({ id, accountId }: TaskRecord, run: BatchRun, isLost: boolean): Promise<void> {
    if (isLost) return run.abort()
    const task = await this.context.store.tasks.find(accountId, id)
    if (task !== undefined && isCancelling(task)) run.stop('cancelled')
  }
}

/** Number of the current try of each request that has failed before, by line. */
export type RequestTries = Map<number, number>

/** Maximum number of tries of a request that no vendor could answer. */
const MAX_TRIES = 5
const FIRST_DELAY_MS = 2_000
const MAX_DELAY_MS = 60_000

/** Result of the work on a batch. */
export type BatchResult =
  /** Each request has its outcome, or is no longer executed. `vendor` is the vendor whose batch API was used, if any. */
  | { readonly kind: 'ended'; readonly end: BatchEnd; readonly vendor?: string }
  /** The batch is leased again at this time, in Unix milliseconds. */
  | { readonly kind: 'waits'; readonly untilMs: number }

/**
 * Work on one batch while this process holds it: at the vendor's batch API, or by ordinary calls if that API does not accept the
 * batch. Several calls run at the same time. An outcome is stored before the next call starts, so that a process that dies loses
 * only the requests in flight.
 */
export class BatchRun {
  /** Tries of earlier turns, updated in place. */
  readonly tries: RequestTries
  readonly #job: BatchJob
  readonly #native: NativeRun
  readonly #running = new Set<RequestRun>()
  readonly #waiting = new Map<Timer, () => void>()
  #reason: StopReason | undefined
  /** Whether a request was left without an outcome. */
  #isLeftOpen = false

  constructor(job: BatchJob, tries: RequestTries) {
    this.#job = job
    this.tries = tries
    this.#native = new NativeRun(job)
  }

  /** Starts nothing more; calls in flight end normally. */
  stop(reason: StopReason): void {
    this.#native.stop(reason)
    this.#stopCalls(reason)
  }

  /** Starts no more ordinary calls. The work with a vendor's batch API is short, so it is not interrupted for other batches. */
  makeRoom(): void {
    this.#stopCalls('put-back')
  }

  #stopCalls(reason: StopReason): void {
    this.#reason ??= reason
    for (const [timer, resume] of this.#waiting) {
      timer.cancel()
      resume()
    }
    this.#waiting.clear()
  }

  /** Aborts calls in flight, too. */
  abort(): void {
    this.#native.abort()
    this.#stopCalls('put-back')
    for (const run of this.#running) run.stop()
  }

  /** @throws JournalConflict if another process continues the batch, and whatever the stores throw; the batch can be leased again. */
  async run(): Promise<BatchResult> {
    const turn = await this.#native.run()
    if (turn.kind !== 'paced') return turn
    const reason = await this.#runCalls()
    return reason === 'put-back'
      ? { kind: 'waits', untilMs: this.#job.context.clock.now() }
      : { kind: 'ended', end: reason ?? 'completed' }
  }

  /** Returns why the run ended early, or `undefined` if every request has an outcome. */
  async #runCalls(): Promise<StopReason | undefined> {
    const { context, settings, task } = this.#job
    const leftMs = factsOf(task).expiresAtMs - context.clock.now()
    if (leftMs <= 0) this.#stopCalls('expired')
    const expiry = context.clock.schedule(Math.max(0, leftMs), () => this.#stopCalls('expired'))
    const pool = new Pool(settings.requestsAtOnce)
    try {
      const ended = await endedLines(settings, task.id)
      for await (const { line, planned } of plannedRequests(settings, task.id)) {
        if (ended.has(line)) continue
        await pool.begin(() => this.#toTheEnd(line, planned))
        if (this.#isLeftOpen) break
      }
    } finally {
      await pool.settled()
      expiry.cancel()
    }
    await pool.ended()
    // A batch that was put back at its last requests has nothing left to wait for.
    return this.#reason === 'put-back' && !this.#isLeftOpen ? undefined : this.#reason
  }

  async #toTheEnd(line: number, planned: PlannedRequest): Promise<void> {
    const held = heldFor(planned, this.#job.task)
    for (let tries = this.tries.get(line) ?? 1; ; ) {
      if (this.#reason !== undefined) return this.#leaveOpen(line, tries)
      const run = new RequestRun(this.#job, { planned, line, held })
      this.#running.add(run)
      const result = await run.run()
      this.#running.delete(run)
      if (result.kind === 'stopped') return this.#leaveOpen(line, tries)
      if (result.kind === 'ended') return await this.#keep(run, result.outcome)
      // Rejections by the caller's limits or the store do not count as a try.
      if (isGatewayLimit(result.error)) tries = Math.max(1, tries)
      else if (tries++ >= MAX_TRIES) return await this.#keep(run, result.outcome)
      if (this.#reason !== undefined) return this.#leaveOpen(line, tries)
      await this.#pause(delayOf(result.error, tries))
    }
  }

  #leaveOpen(line: number, tries: number): void {
    this.#isLeftOpen = true
    if (tries > 1) this.tries.set(line, tries)
  }

  async #keep(run: RequestRun, outcome: BatchOutcome): Promise<void> {
    const { context, task } = this.#job
    for (let tries = 1; ; tries++) {
      try {
        const isKept = await keepOutcome(this.#job, outcome)
        // Another process ran the batch in the meantime, unless the store had saved the outcome at an earlier try.
        if (!isKept && tries === 1) run.tellUnkept()
        return
      } catch (error) {
        reportFault(context, task.details.requestId, 'batches', error)
        // The vendor has answered. Without its outcome, the next process that runs the batch sends the request again.
        if (tries >= MAX_TRIES) {
          run.tellUnkept()
          throw error
        }
        await this.#pause(FIRST_DELAY_MS)
      }
    }
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#job.context.clock.schedule(delayMs, () => {
        this.#waiting.delete(timer)
        resolve()
      })
      this.#waiting.set(timer, resolve)
    })
  }
}

function isGatewayLimit({ code }: GatewayError): boolean {
  return code === 'rate_limited' || code === 'store_unavailable'
}

function delayOf(error: GatewayError, tries: number): number {
  const delayMs =
    error.retryAfterSeconds === undefined ? FIRST_DELAY_MS * 2 ** (tries - 1) : error.retryAfterSeconds * 1_000
  return Math.min(MAX_DELAY_MS, Math.max(delayMs, isGatewayLimit(error) ? 1_000 : FIRST_DELAY_MS))
}

/** Error codes of requests that were never executed. */
export const CANCELLED = 'batch_cancelled'
export const EXPIRED = 'batch_expired'

/** Number of outcomes that are deleted at a time. */
const PAGE = 100

/** Totals of the outcomes of a batch. */
interface Sums {
  answered: number
  notMade: number
  usage: Usage
  amount: bigint
}

/**
 * Writes the files of a batch and ends it: exactly the answered requests are charged, once, in the transaction of the end. A
 * process that dies in between leaves files only. The next process that takes the batch replaces them, because their ids are the same.
 */
export async function endBatch(
  context: PipelineContext,
  settings: BatchSettings,
  task: TaskRecord,
  { end, wake, vendor }: { readonly end: BatchEnd; readonly wake: WakeWebhooks; readonly vendor?: string | undefined },
): Promise<void> {
  const sums: Sums = { answered: 0, notMade: 0, usage: {}, amount: 0n }
  const suffix = task.id.slice(task.id.indexOf('_') + 1)
  const outputFileId = await writeFile(context, settings, task, {
    id: `file_${suffix}_output`,
    name: 'output',
    lines: answeredLines(settings, task, sums),
  })
  const errorFileId = await writeFile(context, settings, task, {
    id: `file_${suffix}_errors`,
    name: 'errors',
    lines: failedLines(settings, task, end, sums),
  })
  const { answered, notMade, usage, amount } = sums
  const nowMs = context.clock.now()
  const old = factsOf(task)
  const files = { outputFileId, errorFileId }
  const facts = { ...old, ...files, answered, notMade, failed: old.total - answered, end, endedAtMs: nowMs }
  const { deferred: _done, ...kept } = task.details
  const details = { ...kept, facts, usage, vendor: vendor ?? kept.vendor }
  const state = end === 'cancelled' ? 'cancelled' : 'completed'
  const charge = { usage, amount: task.holdId === undefined ? undefined : amount }
  await commit(context, task, chargedEnd(task, { state, nowMs, details }, charge), wake)
  await cleanUp(settings, task.id)
}

/** Deletes data that a finished batch no longer needs. */
export async function cleanUp({ blobs, outcomes }: BatchSettings, batchId: string): Promise<void> {
  await blobs.delete(planId(batchId))
  await blobs.delete(linesId(batchId))
  for (const id of [batchId, journalId(batchId)]) while ((await outcomes.delete(id, PAGE)) === PAGE);
}

/** Writes no file if there are no lines. */
async function writeFile(
  { clock }: PipelineContext,
  { blobs, files, retentionMs }: BatchSettings,
  task: TaskRecord,
  file: { readonly id: string; readonly name: string; readonly lines: AsyncIterable<string> },
): Promise<string | null> {
  const { id: batchId, accountId } = task
  const createdAtMs = clock.now()
  const expiresAtMs = createdAtMs + Math.min(factsOf(task).outputLifetimeMs ?? retentionMs, retentionMs)
  const byteLength = await blobs.put({ id: file.id, expiresAtMs }, bytesOf(file.lines))
  if (byteLength === 0) {
    await blobs.delete(file.id)
    return null
  }
  const filename = `${batchId}_${file.name}.jsonl`
  await files.save({ id: file.id, accountId, purpose: 'batch_output', filename, byteLength, createdAtMs, expiresAtMs })
  return file.id
}

async function* bytesOf(lines: AsyncIterable<string>): AsyncIterable<Uint8Array> {
  for await (const line of lines) yield Buffer.from(`${line}\n`)
}

async function* answeredLines(settings: BatchSettings, { id }: TaskRecord, sums: Sums): AsyncIterable<string> {
  for await (const outcome of outcomesOf(settings.outcomes, id)) {
    sums.amount += outcome.amount
    if (outcome.usage !== undefined) sums.usage = addUsage(sums.usage, outcome.usage)
    if (!outcome.isAnswered) continue
    sums.answered++
    yield outcome.text
  }
}

/** Yields errors, and requests that were never executed. */
async function* failedLines(
  settings: BatchSettings,
  { id }: TaskRecord,
  end: BatchEnd,
  sums: Sums,
): AsyncIterable<string> {
  const outcomes = outcomesOf(settings.outcomes, id)[Symbol.asyncIterator]()
  let next = await outcomes.next()
  for await (const { line, planned } of plannedRequests(settings, id)) {
    while (!next.done && next.value.line < line) next = await outcomes.next()
    if (next.done || next.value.line !== line) {
      sums.notMade++
      yield notMadeLine(id, line, planned, end)
    } else if (!next.value.isAnswered) yield next.value.text
  }
}

function notMadeLine(batchId: string, line: number, { id: customId }: PlannedRequest, end: BatchEnd): string {
  const error =
    end === 'cancelled'
      ? { code: CANCELLED, message: 'This request was not executed because the batch was cancelled.' }
      : { code: EXPIRED, message: 'This request could not be executed before the completion window expired.' }
  return JSON.stringify({ id: outcomeId(batchId, line), custom_id: customId, response: null, error })
}

/**
 * Starts no more requests; those in flight end normally and are charged.
 * @throws GatewayError `task_not_cancellable` for a batch that has ended.
 */
export async function cancelBatch(
  context: PipelineContext,
  runner: { cancelled(batchId: string): void },
  task: TaskRecord,
): Promise<TaskRecord> {
  const { clock, store } = context
  if (!OPEN_TASK_STATES.includes(task.state))
    throw new GatewayError('task_not_cancellable', {
      message: `A batch with status ${factsOf(task).end} cannot be cancelled.`,
    })
  if (isCancelling(task)) return task
  const nowMs = clock.now()
  const details = { ...task.details, facts: { ...factsOf(task), cancellingAtMs: nowMs } }
  // A queued batch may be started and put back several times, which keeps its details.
  const from = POLLED_STATES.includes(task.state) ? POLLED_STATES : [task.state]
  const isMade = await store.tasks.change({ id: task.id, from, set: { details, updatedAtMs: nowMs } }, nowMs)
  const now = await store.tasks.find(task.accountId, task.id)
  if (now === undefined) return task
  // The batch was accepted or ended in between.
  if (!isMade) return await cancelBatch(context, runner, now)
  runner.cancelled(task.id)
  return now
}
