import { isYoungerThan, scheduleCutOff, type Timer } from '../core/clock.ts'
import type { TaskOperation } from '../endpoints/task.ts'
import { emitGivenUp } from '../pipeline/charge.ts'
import { type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import { IDEMPOTENCY_RETENTION_MS } from '../stores/idempotency-store.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { endTask, unbilledAsHeld } from './apply-report.ts'
import { BATCH_CREDENTIAL_ID, isBatch } from './batches/batch-record.ts'
import { outcomesOf } from './batches/lines.ts'
import { vendorOf } from './call-vendor.ts'
import { queuedReceipt, queuedTask } from './deferred-submission.ts'
import { receiptResponse, unsettled } from './submit-task.ts'
import {
  answeredLate,
  commit,
  DEFERRED_CREDENTIAL_ID,
  isSameEnd,
  missingKey,
  POLLED_STATES,
  refreshTask,
  type WakeWebhooks,
} from './update-task.ts'

/** Interval between queries for due tasks while there are none, in milliseconds, unless the poll interval is shorter. */
const IDLE_INTERVAL_MS = 1_000

/** Interval between queries for tasks past their deadline, in milliseconds. */
const OVERDUE_INTERVAL_MS = 10_000

/** Duration of a lease, in milliseconds; longer than a poll can take. */
export const TASK_LEASE_MS = 90_000

/** How long a closing gateway waits for polls and downloads, in milliseconds. */
const DEFAULT_DRAIN_MS = 5_000

/** Maximum number of overdue tasks per query. */
const OVERDUE_BATCH = 50

/** Interval between queries for tasks whose key was removed, in milliseconds. */
const REPLACED_KEYS_INTERVAL_MS = 60_000

/** Interval between purges of expired tasks, in milliseconds. */
const PURGE_INTERVAL_MS = 10 * 60_000

/** Maximum number of tasks purged in one transaction. The rest follow in the next turn. */
const PURGE_BATCH = 100

const DAY_MS = 24 * 60 * 60_000

/** The minimum: an Idempotency-Key returns the id of its task for this long, and the task ends after its key was claimed. */
export const SHORTEST_TASK_RETENTION_DAYS = IDEMPOTENCY_RETENTION_MS / DAY_MS

/** Options of {@link TaskWorker}. */
export interface TaskWorkerOptions {
  /** Returns how long tasks are kept now after their end, with their messages; `Infinity`: indefinitely. */
  retentionDays(): Promise<number>
}

/** A vendor key and its polling budget. */
interface PolledCredential {
  readonly credentialId: string
  readonly pollBudget: TaskOperation['pollBudget']
}

/** Polls open tasks until they end. Several processes share the work by leases, and a vendor's limit on polls by the store's budget. */
export class TaskWorker {
  readonly #context: PipelineContext
  readonly #wake: WakeWebhooks
  readonly #credentials: readonly PolledCredential[]
  readonly #running = new Set<Promise<void>>()
  #timer: Timer | undefined
  #isStopped = true
  /** When overdue tasks were last leased. */
  #sweptAtMs = Number.NEGATIVE_INFINITY
  readonly #options: TaskWorkerOptions
  /** When the last expired task was purged. */
  #purgedAtMs = Number.NEGATIVE_INFINITY
  /** Credential ids of removed keys, whose open tasks another key of the vendor polls. */
  #replaced: readonly PolledCredential[] = []
  #replacedAtMs = Number.NEGATIVE_INFINITY

  constructor(context: PipelineContext, wake: WakeWebhooks, options: TaskWorkerOptions) {
    this.#options = options
    this.#context = context
    this.#wake = wake
    this.#credentials = polledCredentials(context)
  }

  /** Whether work is in progress in this process. */
  get isBusy(): boolean {
    return this.#running.size > 0
  }

  /**
   * Starts to poll tasks. Tasks without a configured vendor still fail at their deadline; otherwise their money would be held
   * indefinitely.
   */
  start(): void {
    if (!this.#isStopped) return
    this.#isStopped = false
    this.#schedule(this.#credentials.length === 0 ? OVERDUE_INTERVAL_MS : 0)
  }

  /**
   * Leases no more tasks, and waits for running polls and downloads. Work that has not ended after `drainMs`, five
   * seconds by default, is aborted; the tasks are not affected.
   */
  async stop({ drainMs = DEFAULT_DRAIN_MS }: { readonly drainMs?: number } = {}): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    const calls = this.#context.taskCalls
    const cutOff = scheduleCutOff(this.#context.clock, drainMs, () => calls.abortAll())
    await this.#idle()
    await calls.ended()
    cutOff.cancel()
  }

  /** A finished turn may have started polls, so one wait is not enough. */
  async #idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  #schedule(delayMs: number): void {
    if (this.#isStopped) return
    this.#timer = this.#context.clock.schedule(delayMs, () => this.#track(this.#turn()))
  }

  #track(work: Promise<void>): void {
    this.#running.add(work)
    void work.finally(() => this.#running.delete(work))
  }

  /** Queries the store once. Never rejects: a failing store is retried later. */
  async #turn(): Promise<void> {
    let delayMs = Math.min(IDLE_INTERVAL_MS, this.#context.taskPollIntervalMs ?? IDLE_INTERVAL_MS)
    if (this.#credentials.length === 0) delayMs = OVERDUE_INTERVAL_MS
    try {
      for (const { credentialId, pollBudget } of [...this.#credentials, ...this.#replaced]) {
        const tasks = await this.#take(credentialId, pollBudget)
        for (const task of tasks) this.#track(this.#poll(task))
        // A full window means that more tasks are due in the next one.
        if (tasks.length >= pollBudget.takes) delayMs = Math.min(delayMs, pollBudget.windowMs)
      }
      await this.#sweep()
      await this.#purge()
      await this.#findReplaced()
    } catch (error) {
      reportFault(this.#context, undefined, 'tasks', error)
    }
    this.#schedule(delayMs)
  }

  async #take(credentialId: string, budget: TaskOperation['pollBudget']): Promise<readonly TaskRecord[]> {
    const nowMs = this.#context.clock.now()
    return await this.#context.store.tasks.leaseDue({
      credentialId,
      nowMs,
      leaseUntilMs: nowMs + TASK_LEASE_MS,
      limit: budget.takes,
      budget,
    })
  }

  async #poll(task: TaskRecord): Promise<void> {
    try {
      const asked = await refreshTask(this.#context, task, this.#wake)
      if (POLLED_STATES.includes(asked.state) && asked.deadlineAtMs <= this.#context.clock.now())
        await this.#giveUp(asked)
    } catch (error) {
      reportFault(this.#context, task.details.requestId, 'tasks', error)
    }
  }

  async #findReplaced(): Promise<void> {
    const { clock, store, routes, warnings } = this.#context
    const nowMs = clock.now()
    if (isYoungerThan(REPLACED_KEYS_INTERVAL_MS, this.#replacedAtMs, nowMs)) return
    this.#replacedAtMs = nowMs
    const replaced: PolledCredential[] = []
    for (const credentialId of await store.tasks.credentialIds()) {
      if (credentialId === DEFERRED_CREDENTIAL_ID || credentialId === BATCH_CREDENTIAL_ID) continue
      if (this.#credentials.some((own) => own.credentialId === credentialId)) continue
      const routed = routes.vendor(credentialId.slice(0, credentialId.lastIndexOf(':')))
      const pollBudget =
        routed === undefined || routed.keys.length === 0 ? undefined : smallestBudget(this.#context, routed.vendor)
      if (pollBudget === undefined) warnings.warn(missingKey(credentialId))
      else replaced.push({ credentialId, pollBudget })
    }
    this.#replaced = replaced
  }

  async #sweep(): Promise<void> {
    const { clock, store } = this.#context
    const nowMs = clock.now()
    if (isYoungerThan(OVERDUE_INTERVAL_MS, this.#sweptAtMs, nowMs)) return
    const tasks = await store.tasks.leaseExpired({ nowMs, leaseUntilMs: nowMs + TASK_LEASE_MS, limit: OVERDUE_BATCH })
    if (tasks.length < OVERDUE_BATCH) this.#sweptAtMs = nowMs
    for (const task of tasks) this.#track(this.#expire(task))
  }

  async #purge(): Promise<void> {
    const { clock, store } = this.#context
    const nowMs = clock.now()
    if (isYoungerThan(PURGE_INTERVAL_MS, this.#purgedAtMs, nowMs)) return
    const retentionDays = await this.#options.retentionDays()
    const query = { changedUntilMs: nowMs - retentionDays * DAY_MS, limit: PURGE_BATCH }
    const count = Number.isFinite(retentionDays) ? await store.tasks.purge(query) : 0
    if (count < PURGE_BATCH) this.#purgedAtMs = nowMs
  }

  async #expire(task: TaskRecord): Promise<void> {
    try {
      if (task.state === 'submitting') await this.#lose(task)
      else if (POLLED_STATES.includes(task.state) && vendorOf(this.#context, task) !== undefined)
        await this.#askSoon(task)
      else await this.#giveUp(task)
    } catch (error) {
      reportFault(this.#context, task.details.requestId, 'tasks', error)
    }
  }

  /**
   * Handles a task whose submitting process is gone. The vendor may or may not have the task, so it is never submitted again; a
   * caller who retries with the same Idempotency-Key gets this task.
   */
  async #lose(task: TaskRecord): Promise<void> {
    const { clock, store, taskDeadlineMs } = this.#context
    const nowMs = clock.now()
    // No vendor was called: the gateway runs this task itself, so it is queued again.
    if (task.details.deferred !== undefined) {
      const queued = queuedTask(this.#context, task)
      const { state, updatedAtMs, nextPollAtMs, deadlineAtMs } = queued
      const answered = answeredLate(task.details.claim, nowMs, () => queuedReceipt(this.#context, queued))
      const waiting = { state, updatedAtMs, nextPollAtMs, deadlineAtMs }
      await store.tasks.change({ id: task.id, from: ['submitting'], set: waiting, answered }, nowMs)
      return
    }
    const set = { state: 'unknown', updatedAtMs: nowMs, deadlineAtMs: task.createdAtMs + taskDeadlineMs } as const
    const lost = { ...task, ...set }
    const answered = answeredLate(task.details.claim, nowMs, () => receiptResponse(this.#context, lost))
    await store.tasks.change({ id: task.id, from: ['submitting'], set, answered }, nowMs)
  }

  /**
   * Schedules one more poll, within the vendor's budget, if the task's key is still configured: finished work must be charged. {@link
   * TaskWorker.#poll} handles the result.
   */
  async #askSoon(task: TaskRecord): Promise<void> {
    const nowMs = this.#context.clock.now()
    const set = { nextPollAtMs: Math.min(task.nextPollAtMs, nowMs) }
    await this.#context.store.tasks.change({ id: task.id, from: [task.state], set }, nowMs)
  }

  /** Enforces the operator's deadline: the task fails, and its hold is released. */
  async #giveUp(task: TaskRecord): Promise<void> {
    const error =
      task.state === 'unknown'
        ? { code: 'submission_unknown', message: 'It is unknown whether the model vendor accepted the task.' }
        : { code: 'task_deadline_exceeded', message: 'The task did not end before the deadline set by the operator.' }
    const nowMs = this.#context.clock.now()
    // Runs in this process have reported their own calls.
    const isOfVendor = task.details.deferred === undefined && !isBatch(task)
    const unbilled = isOfVendor ? unbilledAsHeld(task.details) : undefined
    const end = endTask(task, { ...task.details, error }, { state: 'failed', nowMs, unbilled })
    // The process that runs a batch charges its answers. If none has run it for a year, these charges are given up.
    const answered = isBatch(task) ? await this.#amountOfOutcomes(task) : 0n
    const now = await commit(this.#context, task, end, this.#wake)
    if (answered > 0n && isSameEnd(now, end.task))
      emitGivenUp(this.#context, unsettled(task.details.requestId, task, answered), 'expired', undefined)
  }

  /** Returns the sum in nano-dollars. */
  async #amountOfOutcomes({ id }: TaskRecord): Promise<bigint> {
    const { batches } = this.#context.store
    let amount = 0n
    if (batches !== undefined) for await (const outcome of outcomesOf(batches, id)) amount += outcome.amount
    return amount
  }
}

function polledCredentials(context: PipelineContext): readonly PolledCredential[] {
  const credentials: PolledCredential[] = []
  for (const { vendor, keys } of context.routes.vendors) {
    const pollBudget = smallestBudget(context, vendor)
    if (pollBudget === undefined) continue
    for (const credentialId of new Set(keys.map((key) => key.credentialId)))
      credentials.push({ credentialId, pollBudget })
  }
  return credentials
}

/** Returns the strictest poll budget of a vendor's task endpoints, or `undefined` if the vendor has none. */
function smallestBudget(context: PipelineContext, vendor: Vendor): TaskOperation['pollBudget'] | undefined {
  let smallest: TaskOperation['pollBudget'] | undefined
  for (const { task } of context.endpoints.withTasks) {
    const budget = task?.operation(vendor)?.pollBudget
    if (budget === undefined) continue
    if (smallest === undefined || budget.takes / budget.windowMs < smallest.takes / smallest.windowMs) smallest = budget
  }
  return smallest
}
