import { isYoungerThan, scheduleCutOff, type Timer } from '../core/clock.ts'
import type { GatewayError } from '../core/errors.ts'
import type { CallerWork } from '../pipeline/authenticate.ts'
import { type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import type { TaskChange, TaskRecord } from '../stores/task-store.ts'
import { POLLED_STATES } from './update-task.ts'

/** Interval between queries for new work while there is none, in milliseconds. */
export const LOOK_INTERVAL_MS = 1_000

/** Duration of a lease, in milliseconds. If a process does not renew it in time, another process runs the task. */
const LEASE_MS = 60_000

/** Leasing own work is not subject to a vendor's limit. */
const NO_BUDGET = { takes: 10_000, windowMs: 1_000 }

/**
 * Looks for due work in the store, one look at a time: periodically, and when it is woken. Several processes share the work by
 * leases.
 */
export abstract class WorkLoop {
  protected readonly context: PipelineContext
  /** Name of the work in reports of faults. */
  readonly #area: string
  readonly #jobs = new Set<Promise<void>>()
  /** When periodic work was last done, by name. */
  readonly #doneAtMs = new Map<string, number>()
  #looking: Promise<void> | undefined
  #looksAgain = false
  #timer: Timer | undefined
  #timerAtMs = Number.POSITIVE_INFINITY
  #isStopped = true

  constructor(context: PipelineContext, area: string) {
    this.context = context
    this.#area = area
  }

  /** Interval between looks, in milliseconds. */
  protected abstract readonly lookIntervalMs: number

  /** Leases due work and starts its jobs. If a store fails, the next look tries again. */
  protected abstract look(): Promise<void>

  /** Whether work is in progress in this process. */
  get isBusy(): boolean {
    return this.#looking !== undefined || this.#jobs.size > 0
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Starts to look for work. Has no effect if it has started. The store must be open. */
  start(): void {
    if (!this.#isStopped) return
    this.#isStopped = false
    this.wake()
  }

  /** Looks for work immediately. Has no effect before `start`. */
  wake(): void {
    if (this.#isStopped) return
    this.#looksAgain = true
    this.#looking ??= this.#lookWhileWoken().finally(() => {
      this.#looking = undefined
      if (this.#looksAgain) this.wake()
    })
  }

  async #lookWhileWoken(): Promise<void> {
    while (this.#looksAgain && !this.#isStopped) {
      this.#looksAgain = false
      try {
        await this.look()
      } catch (error) {
        this.report(error)
      }
    }
    this.lookAt(this.context.clock.now() + this.lookIntervalMs)
  }

  /** Sets the single timer to this time, in Unix milliseconds, if that is earlier. */
  protected lookAt(timeMs: number): void {
    if (this.#isStopped || timeMs >= this.#timerAtMs) return
    const { clock } = this.context
    this.#timer?.cancel()
    this.#timerAtMs = timeMs
    this.#timer = clock.schedule(timeMs - clock.now(), () => {
      this.#timerAtMs = Number.POSITIVE_INFINITY
      this.wake()
    })
  }

  /** Does periodic work if it is due. `work` returns `false` if it has more to do immediately. */
  protected async every(name: string, intervalMs: number, work: () => Promise<boolean>): Promise<void> {
    const nowMs = this.context.clock.now()
    const doneAtMs = this.#doneAtMs.get(name) ?? Number.NEGATIVE_INFINITY
    if (!isYoungerThan(intervalMs, doneAtMs, nowMs) && (await work())) this.#doneAtMs.set(name, nowMs)
  }

  /** Counts a job as in progress until it ends. If it fails, its lease expires and the work is done again. */
  protected track(work: Promise<void>, requestId?: string): Promise<void> {
    const job = work
      .catch((error: unknown) => this.report(error, requestId))
      .finally(() => {
        this.#jobs.delete(job)
      })
    this.#jobs.add(job)
    return job
  }

  protected report(error: unknown, requestId?: string): void {
    reportFault(this.context, requestId, this.#area, error)
  }

  /** Starts nothing more, and waits for work in progress. Calls `cutOff` for work that has not ended after `drainMs`. */
  protected async drain(drainMs: number, cutOff: () => void): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    this.#timerAtMs = Number.POSITIVE_INFINITY
    await this.#looking
    const timer = scheduleCutOff(this.context.clock, drainMs, cutOff)
    while (this.#jobs.size > 0) await Promise.all(this.#jobs)
    timer.cancel()
  }
}

/** Task that this process runs. */
export interface RunningJob<Run> {
  readonly task: TaskRecord
  readonly run: Run
  readonly startedAtMs: number
  readonly ended: Promise<void>
}

/** Caller of a task, and the rights that its key needs. */
export type CallerRights = Omit<CallerWork, 'end'>

/**
 * Runs tasks of one kind in the gateway itself. Each is leased, runs while its lease is renewed, and ends or is put back. After a
 * crash, another process, or the same one after its restart, leases the task again.
 */
export abstract class JobRunner<Run> extends WorkLoop {
  protected readonly running = new Map<string, RunningJob<Run>>()
  protected readonly lookIntervalMs = LOOK_INTERVAL_MS
  /** Credential id of the tasks. */
  protected abstract readonly credentialId: string
  /** Maximum number of tasks that run in this process at the same time. */
  protected abstract readonly maxRunning: number
  protected abstract readonly heartbeatMs: number
  readonly #onBegin: () => void

  /** @param onBegin Called when a run begins. */
  constructor(context: PipelineContext, area: string, onBegin: () => void) {
    super(context, area)
    this.#onBegin = onBegin
  }

  /** Returns the run of a leased task, or `undefined` if this gateway cannot run it; then its deadline ends it. */
  protected abstract open(task: TaskRecord): Run | undefined

  /** Runs a leased task to its end, or puts it back. */
  protected abstract runTask(task: TaskRecord, run: Run): Promise<void>

  /**
   * Called after each renewal of a lease.
   * @param isLost Whether the task has ended elsewhere, so that its run must stop.
   */
  protected abstract renewed(task: TaskRecord, run: Run, isLost: boolean): Promise<void>

  /** Ends a run whose caller has lost the right to it. */
  protected abstract refuse(task: TaskRecord, run: Run, error: GatewayError): void

  /** Number of tasks that may be started now. */
  protected get freePlaces(): number {
    return this.maxRunning - this.running.size
  }

  *work(): Iterable<CallerWork> {
    for (const { task, run } of this.running.values())
      yield { ...this.rightsOf(task), end: (error) => this.refuse(task, run, error) }
  }

  protected rightsOf({ accountId, keyId, details }: TaskRecord): CallerRights {
    const { endpoint, model } = details
    return { caller: { accountId, keyId }, endpointIds: [endpoint], model: this.context.catalog.find(model) }
  }

  /** Leases due tasks. */
  protected async lease(query: {
    readonly limit: number
    readonly id?: string
    readonly exceptAccounts?: readonly string[]
  }): Promise<readonly TaskRecord[]> {
    const nowMs = this.context.clock.now()
    const times = { nowMs, leaseUntilMs: nowMs + LEASE_MS }
    const { credentialId } = this
    return await this.context.store.tasks.leaseDue({ ...query, ...times, credentialId, budget: NO_BUDGET })
  }

  /** Starts the run of a leased task. Has no effect if the task runs here already. */
  protected begin(task: TaskRecord): void {
    const { id, details } = task
    if (details.deferred === undefined || this.running.has(id)) return
    const run = this.open(task)
    if (run === undefined) return
    const work = this.runTask(task, run).finally(() => {
      this.running.delete(id)
      this.wake()
    })
    const startedAtMs = this.context.clock.now()
    this.running.set(id, { task, run, startedAtMs, ended: this.track(work, details.requestId) })
    this.#onBegin()
  }

  /** Marks a leased task as running. Returns `false` if it has changed since it was leased. */
  protected async markRunning(
    { id, state }: TaskRecord,
    change: Pick<TaskChange, 'answered'> & { readonly details?: TaskRecord['details'] },
  ): Promise<boolean> {
    const { answered, ...members } = change
    const nowMs = this.context.clock.now()
    const set = { state: 'in_progress', updatedAtMs: nowMs, nextPollAtMs: nowMs + LEASE_MS, ...members } as const
    return (await this.context.store.tasks.change({ id, from: [state], set, answered }, nowMs)) !== undefined
  }

  /** Queues a running task again. It is due at this time, in Unix milliseconds. */
  protected async putBack(id: string, nextPollAtMs: number, details?: TaskRecord['details']): Promise<void> {
    const set = { state: 'queued', nextPollAtMs, ...(details && { details }) } as const
    await this.context.store.tasks.change({ id, from: ['in_progress'], set }, this.context.clock.now())
  }

  /** Runs `work` while the lease of its task is renewed periodically. */
  protected async whileLeased<Value>(task: TaskRecord, run: Run, work: () => Promise<Value>): Promise<Value> {
    let timer: Timer
    const schedule = (): void => {
      timer = this.context.clock.schedule(this.heartbeatMs, () => {
        schedule()
        void this.renewLease(task, run)
      })
    }
    schedule()
    try {
      return await work()
    } finally {
      timer!.cancel()
    }
  }

  /** Renews the lease of a running task. Never rejects. */
  protected async renewLease(task: TaskRecord, run: Run): Promise<void> {
    const { clock, store } = this.context
    try {
      const nowMs = clock.now()
      const set = { nextPollAtMs: nowMs + LEASE_MS }
      const isRenewed = await store.tasks.change({ id: task.id, from: POLLED_STATES, set }, nowMs)
      await this.renewed(task, run, !isRenewed)
    } catch (error) {
      this.report(error)
    }
  }
}
