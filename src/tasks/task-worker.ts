import type { Timer } from '../core/clock.ts'
import { vendorAccount } from '../routing/vendor-account.ts'
import { reportFault, type StageContext } from '../stages/stage-context.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import type { VideoOperation } from '../vendors/vendor.ts'
import { endTask } from './apply-report.ts'
import { commit, POLLED_STATES, refreshTask, type WakeWebhooks } from './update-task.ts'

/** How often a store is asked for due tasks while there are none, unless tasks are asked about more often. */
const IDLE_INTERVAL_MS = 1_000

/** How often it is asked for tasks whose time is over. */
const OVERDUE_INTERVAL_MS = 10_000

/** A task is left to one process for so long; it is more than asking the vendor can take. */
export const TASK_LEASE_MS = 90_000

/** Most tasks that are looked at in one go because their time is over. */
const OVERDUE_BATCH = 50

/** A key at a vendor, and how it may be asked about tasks. */
interface PolledAccount {
  readonly vendorAccount: string
  readonly videos: VideoOperation
}

/**
 * Follows open tasks to their end. Several processes share the work by leases, and a vendor's limit on questions by the
 * store's budget.
 */
export class TaskWorker {
  readonly #context: StageContext
  readonly #wake: WakeWebhooks
  readonly #accounts: readonly PolledAccount[]
  readonly #running = new Set<Promise<void>>()
  #timer: Timer | undefined
  #isStopped = true
  #overdueAtMs = 0

  constructor(context: StageContext, wake: WakeWebhooks) {
    this.#context = context
    this.#wake = wake
    this.#accounts = polledAccounts(context)
  }

  /** Begins to follow tasks. Without a vendor that makes any, there is nothing to follow. */
  start(): void {
    if (!this.#isStopped || this.#accounts.length === 0) return
    this.#isStopped = false
    this.#schedule(0)
  }

  /** Takes no more tasks and waits for those being asked about. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    await Promise.all(this.#running)
  }

  #schedule(delayMs: number): void {
    if (this.#isStopped) return
    this.#timer = this.#context.clock.schedule(delayMs, () => this.#track(this.#turn()))
  }

  #track(work: Promise<void>): void {
    this.#running.add(work)
    void work.finally(() => this.#running.delete(work))
  }

  /** One look at the store. Never rejects: a store that is down is asked again later. */
  async #turn(): Promise<void> {
    let delayMs = Math.min(IDLE_INTERVAL_MS, this.#context.taskPollIntervalMs ?? IDLE_INTERVAL_MS)
    try {
      for (const { vendorAccount: account, videos } of this.#accounts) {
        const { pollBudget } = videos
        const tasks = await this.#take(account, pollBudget)
        for (const task of tasks) this.#track(this.#poll(task))
        // Whoever got all that one window allows has more to do in the next.
        if (tasks.length >= pollBudget.takes) delayMs = Math.min(delayMs, pollBudget.windowMs)
      }
      await this.#sweep()
    } catch (error) {
      reportFault(this.#context, undefined, 'tasks', error)
    }
    this.#schedule(delayMs)
  }

  async #take(account: string, budget: VideoOperation['pollBudget']): Promise<readonly TaskRecord[]> {
    const nowMs = this.#context.clock.now()
    return await this.#context.store.tasks.takeDue({
      vendorAccount: account,
      nowMs,
      leaseUntilMs: nowMs + TASK_LEASE_MS,
      limit: budget.takes,
      budget,
    })
  }

  async #poll(task: TaskRecord): Promise<void> {
    try {
      await refreshTask(this.#context, task, this.#wake)
    } catch (error) {
      reportFault(this.#context, task.details.requestId, 'tasks', error)
    }
  }

  async #sweep(): Promise<void> {
    const { clock, store } = this.#context
    const nowMs = clock.now()
    if (nowMs < this.#overdueAtMs) return
    const tasks = await store.tasks.takeOverdue({ nowMs, leaseUntilMs: nowMs + TASK_LEASE_MS, limit: OVERDUE_BATCH })
    if (tasks.length < OVERDUE_BATCH) this.#overdueAtMs = nowMs + OVERDUE_INTERVAL_MS
    for (const task of tasks) this.#track(this.#expire(task))
  }

  async #expire(task: TaskRecord): Promise<void> {
    try {
      if (task.state === 'submitting') await this.#lose(task)
      else await this.#giveUp(task)
    } catch (error) {
      reportFault(this.#context, task.details.requestId, 'tasks', error)
    }
  }

  /** Whoever was submitting it is gone. The vendor may or may not have it, so it is never submitted again. */
  async #lose(task: TaskRecord): Promise<void> {
    const { clock, store, taskDeadlineMs } = this.#context
    const nowMs = clock.now()
    const set = { state: 'unknown', updatedAtMs: nowMs, deadlineAtMs: task.createdAtMs + taskDeadlineMs } as const
    await store.tasks.change({ id: task.id, from: ['submitting'], set }, nowMs)
  }

  /** The operator's limit: the vendor is asked once more where it can be asked, then the money is free. */
  async #giveUp(task: TaskRecord): Promise<void> {
    const isPolled = POLLED_STATES.includes(task.state) && task.upstreamId !== undefined
    const last = isPolled ? await refreshTask(this.#context, task, this.#wake) : task
    if (last.state !== 'unknown' && !POLLED_STATES.includes(last.state)) return
    const error =
      last.state === 'unknown'
        ? { code: 'submission_unknown', message: 'It never became known whether the model vendor took the task.' }
        : { code: 'task_deadline_exceeded', message: 'The task did not end within the time that the operator allows.' }
    const nowMs = this.#context.clock.now()
    await commit(this.#context, last, endTask(last, { ...last.details, error }, { state: 'failed', nowMs }), this.#wake)
  }
}

function polledAccounts(context: StageContext): readonly PolledAccount[] {
  const accounts: PolledAccount[] = []
  for (const vendor of context.vendors.values()) {
    const { videos } = vendor
    if (videos === undefined) continue
    for (const apiKey of vendor.apiKeys) accounts.push({ vendorAccount: vendorAccount(vendor.id, apiKey), videos })
  }
  return accounts
}
