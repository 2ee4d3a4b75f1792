import type { TaskOperation } from '../endpoints/task.ts'
import { emitGivenUp } from '../pipeline/charge.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { IDEMPOTENCY_RETENTION_MS } from '../stores/idempotency-store.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import type { Vendor } from '../vendors/vendor.ts'
import { vendorOf } from './call-vendor.ts'
import { WorkLoop } from './job-runner.ts'
import { queuedTask, unsettled } from './submit-task.ts'
import { isOwnTask, kindOf, lateReceipt } from './task-record.ts'
import {
  commit,
  endTask,
  isSameEnd,
  missingKey,
  POLLED_STATES,
  refreshTask,
  unbilledAsHeld,
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
export const MIN_TASK_RETENTION_DAYS = IDEMPOTENCY_RETENTION_MS / DAY_MS

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
export class TaskWorker extends WorkLoop {
  protected readonly lookIntervalMs: number
  readonly #wakeWebhooks: WakeWebhooks
  readonly #options: TaskWorkerOptions
  readonly #credentials: readonly PolledCredential[]
  /** Credential ids of removed keys, whose open tasks another key of the vendor polls. */
  #replaced: readonly PolledCredential[] = []

  constructor(context: PipelineContext, wakeWebhooks: WakeWebhooks, options: TaskWorkerOptions) {
    super(context, 'tasks')
    this.#options = options
    this.#wakeWebhooks = wakeWebhooks
    this.#credentials = polledCredentials(context)
    this.lookIntervalMs =
      this.#credentials.length === 0
        ? OVERDUE_INTERVAL_MS
        : Math.min(IDLE_INTERVAL_MS, context.taskPollIntervalMs ?? IDLE_INTERVAL_MS)
  }

  /**
   * Leases no more tasks, and waits for running polls and downloads. Work that has not ended after `drainMs`, five
   * seconds by default, is aborted; the tasks are not affected.
   */
  async stop({ drainMs = DEFAULT_DRAIN_MS }: { readonly drainMs?: number } = {}): Promise<void> {
    const calls = this.context.taskCalls
    this.track(calls.ended())
    await this.drain(drainMs, () => calls.abortAll())
  }

  /** Tasks without a configured vendor still fail at their deadline; otherwise their money would be held indefinitely. */
  protected async look(): Promise<void> {
    let delayMs = this.lookIntervalMs
    for (const { credentialId, pollBudget } of [...this.#credentials, ...this.#replaced]) {
      const tasks = await this.#take(credentialId, pollBudget)
      for (const task of tasks) this.track(this.#poll(task), task.details.requestId)
      // A full window means that more tasks are due in the next one.
      if (tasks.length >= pollBudget.takes) delayMs = Math.min(delayMs, pollBudget.windowMs)
    }
    await this.every('sweep', OVERDUE_INTERVAL_MS, () => this.#sweep())
    await this.every('purge', PURGE_INTERVAL_MS, () => this.#purge())
    await this.every('keys', REPLACED_KEYS_INTERVAL_MS, () => this.#findReplaced())
    this.lookAt(this.context.clock.now() + delayMs)
  }

  async #take(credentialId: string, budget: TaskOperation['pollBudget']): Promise<readonly TaskRecord[]> {
    const nowMs = this.context.clock.now()
    return await this.context.store.tasks.leaseDue({
      credentialId,
      nowMs,
      leaseUntilMs: nowMs + TASK_LEASE_MS,
      limit: budget.takes,
      budget,
    })
  }

  async #poll(task: TaskRecord): Promise<void> {
    const polled = await refreshTask(this.context, task, this.#wakeWebhooks)
    if (POLLED_STATES.includes(polled.state) && polled.deadlineAtMs <= this.context.clock.now())
      await this.#giveUp(polled)
  }

  async #findReplaced(): Promise<boolean> {
    const { store, routes, warnings } = this.context
    const replaced: PolledCredential[] = []
    for (const credentialId of await store.tasks.credentialIds()) {
      if (isOwnTask({ credentialId }) || this.#credentials.some((own) => own.credentialId === credentialId)) continue
      const routed = routes.vendor(credentialId.slice(0, credentialId.lastIndexOf(':')))
      const pollBudget =
        routed === undefined || routed.keys.length === 0 ? undefined : smallestBudget(this.context, routed.vendor)
      if (pollBudget === undefined) warnings.warn(missingKey(credentialId))
      else replaced.push({ credentialId, pollBudget })
    }
    this.#replaced = replaced
    return true
  }

  async #sweep(): Promise<boolean> {
    const { clock, store } = this.context
    const nowMs = clock.now()
    const tasks = await store.tasks.leaseExpired({ nowMs, leaseUntilMs: nowMs + TASK_LEASE_MS, limit: OVERDUE_BATCH })
    for (const task of tasks) this.track(this.#expire(task), task.details.requestId)
    return tasks.length < OVERDUE_BATCH
  }

  async #purge(): Promise<boolean> {
    const { clock, store } = this.context
    const retentionDays = await this.#options.retentionDays()
    if (!Number.isFinite(retentionDays)) return true
    const changedUntilMs = clock.now() - retentionDays * DAY_MS
    return (await store.tasks.purge({ changedUntilMs, limit: PURGE_BATCH })) < PURGE_BATCH
  }

  async #expire(task: TaskRecord): Promise<void> {
    if (task.state === 'submitting') await this.#lose(task)
    // Finished work must be charged, so the task is polled once more, within the vendor's budget. `#poll` ends it otherwise.
    else if (POLLED_STATES.includes(task.state) && vendorOf(this.context, task) !== undefined) {
      const nowMs = this.context.clock.now()
      const set = { nextPollAtMs: Math.min(task.nextPollAtMs, nowMs) }
      await this.context.store.tasks.change({ id: task.id, from: [task.state], set }, nowMs)
    } else await this.#giveUp(task)
  }

  /**
   * Handles a task whose submitting process is gone. A vendor may or may not have it, so it is never submitted again; a caller who
   * retries with the same Idempotency-Key gets this task. A task that the gateway runs itself is queued again.
   */
  async #lose(task: TaskRecord): Promise<void> {
    const { clock, store, taskDeadlineMs } = this.context
    const nowMs = clock.now()
    const lost: TaskRecord = isOwnTask(task)
      ? queuedTask(this.context, task)
      : { ...task, state: 'unknown', updatedAtMs: nowMs, deadlineAtMs: task.createdAtMs + taskDeadlineMs }
    const { state, updatedAtMs, nextPollAtMs, deadlineAtMs } = lost
    const set = { state, updatedAtMs, nextPollAtMs, deadlineAtMs }
    await store.tasks.change(
      { id: task.id, from: ['submitting'], set, answered: lateReceipt(this.context, lost) },
      nowMs,
    )
  }

  /** Enforces the operator's deadline: the task fails, and its hold is released. */
  async #giveUp(task: TaskRecord): Promise<void> {
    const error =
      task.state === 'unknown'
        ? { code: 'submission_unknown', message: 'It is unknown whether the model vendor accepted the task.' }
        : { code: 'task_deadline_exceeded', message: 'The task did not end before the deadline set by the operator.' }
    const nowMs = this.context.clock.now()
    // Runs in this process have reported their own calls.
    const unbilled = isOwnTask(task) ? undefined : unbilledAsHeld(task.details)
    const end = endTask(task, { ...task.details, error }, { state: 'failed', nowMs, unbilled })
    // The process that runs a task charges its finished parts. If none has run it until its deadline, these charges are given up.
    const amount = (await kindOf(task).costOfParts?.(this.context, task)) ?? 0n
    const now = await commit(this.context, task, end, this.#wakeWebhooks)
    if (amount > 0n && isSameEnd(now, end.task))
      emitGivenUp(this.context, unsettled(task.details.requestId, task, amount), 'expired', undefined)
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
