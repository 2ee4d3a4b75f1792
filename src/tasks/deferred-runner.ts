import { isYoungerThan, scheduleCutOff, type Timer } from '../core/clock.ts'
import { type CallerWork, readRefusal } from '../pipeline/caller-rights.ts'
import { type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import type { TaskRecord } from '../stores/task-store.ts'
import { endTask } from './apply-report.ts'
import { DEFERRED_CREDENTIAL_ID } from './deferred-end.ts'
import { DeferredRun, type RunOutcome } from './deferred-run.ts'
import { queuedReceipt } from './deferred-submission.ts'
import { answeredLate, commit, POLLED_STATES, type WakeWebhooks } from './update-task.ts'

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
