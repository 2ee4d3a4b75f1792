import type { Timer } from '../../core/clock.ts'
import type { GatewayError } from '../../core/errors.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import { type BatchSettings, type PipelineContext, reportFault } from '../../pipeline/pipeline-context.ts'
import type { BatchOutcome } from '../../stores/file-store.ts'
import type { TaskRecord } from '../../stores/task-store.ts'
import { factsOf } from './batch-record.ts'
import type { PlannedRequest } from './check-requests.ts'
import { plannedRequests } from './end-batch.ts'
import { endedLines, outcomesExpireAtMs } from './lines.ts'
import { heldFor, RequestRun } from './request-run.ts'

/** Why no more requests of a batch are started. */
export type StopReason = 'expired' | 'cancelled' | 'put-back'

/** Number of the current try of each request that has failed before, by line. */
export type RequestTries = Map<number, number>

/** Maximum number of tries of a request that no vendor could answer. */
const MOST_TRIES = 5
const FIRST_DELAY_MS = 2_000
const LONGEST_DELAY_MS = 60_000

/**
 * Runs the requests of one batch that have no outcome yet, several at the same time. An outcome is stored before the next request
 * starts, so that a process that dies loses only the requests in flight.
 */
export class BatchRun {
  readonly #context: PipelineContext
  readonly #settings: BatchSettings
  readonly #endpoint: Endpoint
  readonly #task: TaskRecord
  readonly #tries: RequestTries
  readonly #running = new Set<RequestRun>()
  readonly #waiting = new Map<Timer, () => void>()
  #reason: StopReason | undefined
  #underWay = 0
  /** Whether a request was left without an outcome. */
  #isLeftOpen = false
  #wake: (() => void) | undefined
  #fault: unknown

  /** @param tries Tries of earlier turns; the map is updated in place. */
  constructor(
    context: PipelineContext,
    settings: BatchSettings,
    endpoint: Endpoint,
    { task, tries }: { readonly task: TaskRecord; readonly tries: RequestTries },
  ) {
    this.#context = context
    this.#settings = settings
    this.#endpoint = endpoint
    this.#task = task
    this.#tries = tries
  }

  /** Starts no more requests; those in flight end normally. */
  stop(reason: StopReason): void {
    this.#reason ??= reason
    for (const [timer, resume] of this.#waiting) {
      timer.cancel()
      resume()
    }
    this.#waiting.clear()
    this.#wake?.()
  }

  /** Aborts the requests in flight, too. */
  abort(): void {
    this.stop('put-back')
    for (const run of this.#running) run.stop()
  }

  /**
   * @returns why the run ended early, or `undefined` if every request has an outcome.
   * @throws whatever the stores throw; the batch can be leased again.
   */
  async run(): Promise<StopReason | undefined> {
    const { requestsAtOnce } = this.#settings
    const leftMs = factsOf(this.#task).expiresAtMs - this.#context.clock.now()
    if (leftMs <= 0) this.stop('expired')
    const expiry = this.#context.clock.schedule(Math.max(0, leftMs), () => this.stop('expired'))
    try {
      const ended = await endedLines(this.#settings, this.#task.id)
      for await (const { line, planned } of plannedRequests(this.#settings, this.#task.id)) {
        if (ended.has(line)) continue
        while (this.#underWay >= requestsAtOnce && this.#goesOn()) await this.#change()
        if (!this.#goesOn()) {
          this.#isLeftOpen = true
          break
        }
        this.#begin(line, planned)
      }
    } finally {
      while (this.#underWay > 0) await this.#change()
      expiry.cancel()
    }
    if (this.#fault !== undefined) throw this.#fault
    // A batch that was put back at its last requests has nothing left to wait for.
    return this.#reason === 'put-back' && !this.#isLeftOpen ? undefined : this.#reason
  }

  #goesOn(): boolean {
    return this.#reason === undefined && this.#fault === undefined
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #begin(line: number, planned: PlannedRequest): void {
    this.#underWay++
    void this.#toTheEnd(line, planned)
      .catch((error: unknown) => {
        this.#fault ??= error
      })
      .finally(() => {
        this.#underWay--
        this.#wake?.()
      })
  }

  async #toTheEnd(line: number, planned: PlannedRequest): Promise<void> {
    const held = heldFor(planned, this.#task)
    for (let tries = this.#tries.get(line) ?? 1; ; ) {
      const run = new RequestRun(this.#context, { task: this.#task, endpoint: this.#endpoint, planned, line, held })
      this.#running.add(run)
      const result = await run.run()
      this.#running.delete(run)
      if (result.kind === 'stopped') return this.#leaveOpen(line, tries)
      if (result.kind === 'ended') return await this.#keep(run, result.outcome)
      // Rejections by the caller's limits or the store do not count as a try.
      if (isOurs(result.error)) tries = Math.max(1, tries)
      else if (tries++ >= MOST_TRIES) return await this.#keep(run, result.outcome)
      if (this.#reason !== undefined) return this.#leaveOpen(line, tries)
      await this.#pause(delayOf(result.error, tries))
      if (this.#reason !== undefined) return this.#leaveOpen(line, tries)
    }
  }

  #leaveOpen(line: number, tries: number): void {
    this.#isLeftOpen = true
    if (tries > 1) this.#tries.set(line, tries)
  }

  async #keep(run: RequestRun, outcome: BatchOutcome): Promise<void> {
    const expiresAtMs = outcomesExpireAtMs(this.#task)
    for (let tries = 1; ; tries++) {
      try {
        const isKept = await this.#settings.outcomes.add(this.#task.id, outcome, expiresAtMs)
        // Another process ran the batch in the meantime, unless the store had saved the outcome at an earlier try.
        if (!isKept && tries === 1) run.tellUnkept()
        return
      } catch (error) {
        reportFault(this.#context, this.#task.details.requestId, 'batches', error)
        // The vendor has answered. Without its outcome, the next process that runs the batch sends the request again.
        if (tries >= MOST_TRIES) {
          run.tellUnkept()
          throw error
        }
        await this.#pause(FIRST_DELAY_MS)
      }
    }
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#context.clock.schedule(delayMs, () => {
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
  return Math.min(LONGEST_DELAY_MS, Math.max(delayMs, isOurs(error) ? 1_000 : FIRST_DELAY_MS))
}
