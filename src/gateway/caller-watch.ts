import type { Timer } from '../core/clock.ts'
import { type CallerWork, factsOfCaller, refusalOf } from '../pipeline/caller-rights.ts'
import { type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'

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
