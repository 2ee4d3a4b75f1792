import { Pool } from '../../core/calls-in-flight.ts'
import type { Timer } from '../../core/clock.ts'
import type { GatewayError } from '../../core/errors.ts'
import { reportFault } from '../../pipeline/pipeline-context.ts'
import type { BatchOutcome } from '../../stores/file-store.ts'
import { type BatchEnd, type BatchJob, endedLines, factsOf, keepOutcome, type StopReason } from './batch-record.ts'
import type { PlannedRequest } from './check-requests.ts'
import { plannedRequests } from './end-batch.ts'
import { NativeRun } from './native-run.ts'
import { heldFor, RequestRun } from './request-run.ts'

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
      if (isOurs(result.error)) tries = Math.max(1, tries)
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

function isOurs({ code }: GatewayError): boolean {
  return code === 'rate_limited' || code === 'store_unavailable'
}

function delayOf(error: GatewayError, tries: number): number {
  const delayMs =
    error.retryAfterSeconds === undefined ? FIRST_DELAY_MS * 2 ** (tries - 1) : error.retryAfterSeconds * 1_000
  return Math.min(MAX_DELAY_MS, Math.max(delayMs, isOurs(error) ? 1_000 : FIRST_DELAY_MS))
}
