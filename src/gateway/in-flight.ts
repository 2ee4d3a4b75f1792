import { type Clock, countdown, scheduleCutOff, type Timer } from '../core/clock.ts'
import { type CallerWork, factsOfCaller, refusalOf } from '../pipeline/authenticate.ts'
import type { Parsed, Received } from '../pipeline/call-record.ts'
import { type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import type { BatchRunner } from '../tasks/batches/batch-runner.ts'
import type { DeferredRunner } from '../tasks/deferred-answers.ts'
import type { TaskWorker } from '../tasks/task-worker.ts'
import type { WebhookDeliverer } from '../tasks/webhook-deliverer.ts'

/** Request in flight, with the facts known so far. */
export type Underway = Pick<Received, 'called' | 'calls' | 'sink'> &
  Partial<Pick<Parsed, 'principal' | 'chain'>> & {
    /** Position in {@link InFlight}; only that class writes it. */
    place: number
  }

/** Grace for aborted requests to settle before the store is closed. */
const SETTLE_GRACE_MS = 5_000

/** Requests in flight, for a graceful shutdown. Each entry of the list knows its position, so adding and removing take constant time. */
export class InFlight {
  readonly #requests: Underway[] = []
  readonly #onAdd: () => void
  #onEmpty: (() => void) | undefined

  /** @param onAdd Called after each {@link add}. */
  constructor(onAdd: () => void) {
    this.#onAdd = onAdd
  }

  add(request: Underway): void {
    request.place = this.#requests.length
    this.#requests.push(request)
    this.#onAdd()
  }

  delete(request: Underway): void {
    const last = this.#requests.pop()
    if (last !== undefined && last !== request) {
      this.#requests[request.place] = last
      last.place = request.place
    }
    if (this.#requests.length === 0) this.#onEmpty?.()
  }

  get size(): number {
    return this.#requests.length
  }

  /** Closes the connection of each request after its answer. */
  endConnections(): void {
    for (const { sink } of this.#requests) sink.endConnection?.()
  }

  /** Yields work to end, except submissions of tasks: it would stay unknown whether the vendor has the task. */
  *work(): Iterable<CallerWork> {
    for (const { principal, called, chain, calls } of this.#requests)
      if (principal !== undefined && called.task === undefined)
        yield {
          caller: principal,
          endpointIds: [called.id],
          model: chain?.[0],
          end: (error) => calls.abort(error),
        }
  }

  /** Waits until all requests have ended; after `drainMs` it aborts the rest. */
  async drain(clock: Clock, drainMs: number): Promise<void> {
    if (await this.#emptyWithin(clock, drainMs)) return
    for (const { calls } of [...this.#requests]) calls.abort()
    await this.#emptyWithin(clock, SETTLE_GRACE_MS)
  }

  #whenEmpty(listener: () => void): void {
    this.#onEmpty = listener
  }

  #emptyWithin(clock: Clock, delayMs: number): Promise<boolean> {
    if (this.#requests.length === 0) return Promise.resolve(true)
    return new Promise((resolve) => {
      const timer = scheduleCutOff(clock, delayMs, () => {
        this.#onEmpty = undefined
        resolve(false)
      })
      this.#whenEmpty(() => {
        this.#onEmpty = undefined
        timer.cancel()
        resolve(true)
      })
    })
  }
}

/** Work in progress of a closing gateway. */
export interface GatewayWork {
  readonly inFlight: InFlight
  readonly runner: DeferredRunner
  readonly batches: BatchRunner | undefined
  readonly worker: TaskWorker
  readonly deliverer: WebhookDeliverer
  readonly watch: CallerWatch
}

/**
 * Lets work end for at most `drainMs` in total, and ends the rest. Waiting settlements come last, after everything that can add to
 * them.
 */
export async function endWork(
  { clock, settlementRetries }: PipelineContext,
  { inFlight, runner, batches, worker, deliverer, watch }: GatewayWork,
  drainMs: number,
): Promise<void> {
  const leftMs = countdown(clock, drainMs)
  const left = (): { readonly drainMs: number } => ({ drainMs: leftMs() })
  await inFlight.drain(clock, drainMs)
  await Promise.all([runner.stop(left()), batches?.stop(left())])
  await settlementRetries.drain(leftMs())
  watch.stop()
  await Promise.all([worker.stop(left()), deliverer.stop(left())])
}

/** Maximum time that {@link workEnded} waits, in milliseconds. */
const MAX_WORK_MS = 5 * 60_000

const WORK_CHECK_MS = 25

/** Resolves if no worker is busy and no settlement waits, at the latest after 5 minutes. Never rejects. */
export async function workEnded(
  { clock, settlementRetries, usage }: PipelineContext,
  workers: readonly ({ readonly isBusy: boolean } | undefined)[],
): Promise<void> {
  const leftMs = countdown(clock, MAX_WORK_MS)
  await usage?.flush()
  while ((settlementRetries.size > 0 || workers.some((worker) => worker?.isBusy === true)) && leftMs() > 0)
    await new Promise<void>((resolve) => clock.schedule(WORK_CHECK_MS, resolve))
}

/** Interval of the checks. Together with the time that keys are cached, it is below 5 seconds. */
const CHECK_INTERVAL_MS = 2_000

/** Maximum number of callers whose keys are read at the same time. */
const READ_BATCH_SIZE = 32

/** Source of work for callers. */
export interface WorkSource {
  /** Number of entries, including those whose caller is not known yet. If omitted, `work` returns all of them. */
  readonly size?: number
  work(): Iterable<CallerWork>
}

/**
 * Ends the work of callers whose key was revoked, has expired or lost a scope, or whose account was frozen or removed. Reads the
 * store only while there is work.
 */
export class CallerWatch {
  readonly #context: PipelineContext
  readonly #sources: () => readonly (WorkSource | undefined)[]
  #timer: Timer | undefined
  #isStopped = true

  constructor(context: PipelineContext, sources: () => readonly (WorkSource | undefined)[]) {
    this.#context = context
    this.#sources = sources
  }

  start(): void {
    if (!this.#isStopped) return
    this.#isStopped = false
    this.wake()
  }

  /** Schedules the next check. A source calls it when work begins. */
  wake(): void {
    if (this.#isStopped || this.#timer !== undefined) return
    this.#timer = this.#context.clock.schedule(CHECK_INTERVAL_MS, () => void this.#check())
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  /** Never rejects: a failing store is read again later. */
  async #check(): Promise<void> {
    const callers = new Map<string, CallerWork[]>()
    const sources = this.#sources()
    for (const source of sources)
      for (const work of source?.work() ?? []) {
        const name = JSON.stringify([work.caller.accountId, work.caller.keyId])
        const known = callers.get(name)
        if (known === undefined) callers.set(name, [work])
        else known.push(work)
      }
    const all = [...callers.values()]
    try {
      for (let from = 0; from < all.length && !this.#isStopped; from += READ_BATCH_SIZE)
        await Promise.all(all.slice(from, from + READ_BATCH_SIZE).map((works) => this.#checkCaller(works)))
    } catch (error) {
      reportFault(this.#context, undefined, 'callers', error)
    }
    this.#timer = undefined
    if (all.length > 0 || sources.some((source) => (source?.size ?? 0) > 0)) this.wake()
  }

  async #checkCaller(works: readonly CallerWork[]): Promise<void> {
    const { store, clock } = this.#context
    const facts = await factsOfCaller(store, works[0]!.caller)
    for (const work of works) {
      const refusal = refusalOf(facts, work, clock.now())
      if (refusal !== undefined) work.end(refusal)
    }
  }
}
