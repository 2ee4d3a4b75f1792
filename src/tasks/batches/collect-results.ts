import { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import type { NativeResult } from '../../endpoints/native-batches.ts'
import type { Ask } from '../../pipeline/completion.ts'
import { responseOf } from '../../pipeline/dispatch.ts'
import { type BatchSettings, emit, type PipelineContext } from '../../pipeline/pipeline-context.ts'
import { prepareOperation } from '../../pipeline/prepare-operation.ts'
import { usagePart } from '../../pipeline/usage-estimate.ts'
import type { TaskRecord } from '../../stores/task-store.ts'
import { factsOf } from './batch-record.ts'
import { lineOf } from './capture-requests.ts'
import type { NativePlan } from './native-journal.ts'
import type { BatchVendor } from './native-vendor.ts'
import { endedLines, outcomesExpireAtMs } from './outcome-lines.ts'
import { PlanIndex } from './plan-index.ts'
import { RequestRun } from './request-run.ts'
import { resultLines } from './result-lines.ts'

/** Number of outcomes that are built and stored at the same time: a store can write several in one statement. */
const KEPT_AT_ONCE = 16

/** Batch whose results are collected, and the part that was sent to the vendor. */
export interface CollectedBatch {
  readonly task: TaskRecord
  readonly endpoint: Endpoint
  readonly plan: NativePlan
}

/** Number of requests that the vendor reports as not executed. */
export interface Unmade {
  readonly expired: number
  readonly cancelled: number
}

/** Creates outcomes from a vendor's results. Each answer passes the same stages as the answer to a call. */
export class ResultCollection {
  readonly #context: PipelineContext
  readonly #settings: BatchSettings
  readonly #batch: CollectedBatch

  constructor(context: PipelineContext, settings: BatchSettings, batch: CollectedBatch) {
    this.#context = context
    this.#settings = settings
    this.#batch = batch
  }

  /**
   * Reads all results. An existing outcome is kept, so that reading the results again changes nothing.
   * @param isStopped Ends the reading early.
   * @throws ResultsUnreadable, and whatever the stores throw.
   */
  async read(at: BatchVendor, results: readonly string[], isStopped: () => boolean): Promise<Unmade> {
    const { task } = this.#batch
    const ended = await endedLines(this.#settings, task.id)
    const index = await PlanIndex.of(this.#settings, task.id)
    const unmade = { expired: 0, cancelled: 0 }
    const pool = new Pool(KEPT_AT_ONCE)
    try {
      for (const each of results) {
        const call = at.batches.results(each, at.apiKey)
        for await (const text of resultLines(this.#context, at, call)) {
          if (isStopped()) break
          const result = at.batches.result(text)
          const line = result && lineOf(result.customId)
          if (result === undefined || line === undefined || ended.has(line) || line >= index.size) continue
          if (result.kind !== 'answered') {
            unmade[result.kind]++
            continue
          }
          ended.add(line)
          await pool.begin(() => this.#keep(index, line, answeredOf(this.#batch.plan, result)))
        }
      }
    } finally {
      await pool.settled()
    }
    await pool.ended()
    return unmade
  }

  /** Ends the requests without an outcome with an error, uncharged, and reports what the vendor may bill for them. */
  async lose(): Promise<void> {
    const ended = await endedLines(this.#settings, this.#batch.task.id)
    const index = await PlanIndex.of(this.#settings, this.#batch.task.id)
    const pool = new Pool(KEPT_AT_ONCE)
    for (let line = 0; line < index.size; line++)
      if (!ended.has(line)) await pool.begin(() => this.#keep(index, line, LOST))
    await pool.ended()
  }

  /** Number of requests without an outcome. */
  async countOpen(): Promise<number> {
    const { task } = this.#batch
    return factsOf(task).total - (await endedLines(this.#settings, task.id)).size
  }

  async #keep(index: PlanIndex, line: number, { answer, mayBeBilled }: Made): Promise<void> {
    const { task, endpoint } = this.#batch
    const planned = await index.request(line)
    if (planned === undefined) return
    let isRead = false
    const ask: Ask = async (context, routed) => {
      const response = await answer(context, routed)
      isRead = true
      return response
    }
    const run = new RequestRun(this.#context, { task, endpoint, planned, line, ask })
    const result = await run.run()
    if (result.kind === 'stopped') return
    // A fault of the gateway's store may be temporary; the vendor keeps the answer.
    if (result.kind === 'again' && result.error.code === 'store_unavailable') throw result.error
    const isKept = await this.#settings.outcomes.add(task.id, result.outcome, outcomesExpireAtMs(task))
    // Another process has stored the outcome, and reports it.
    if (!isKept) return
    run.tellUnbilled()
    if (mayBeBilled && !isRead) this.tellUnread(1)
  }

  /** Reports requests that the vendor may have executed, although their answers are not read: they are lost, or can no longer be run. */
  tellUnread(count: number): void {
    if (count === 0) return
    const { task, plan } = this.#batch
    const { accountId, keyId, details } = task
    const { requestId, heldUsage } = details
    const { vendor, model } = plan
    const usage = usagePart(heldUsage, count / factsOf(task).total)
    const named = { requestId, accountId, keyId, vendor, model }
    emit(this.#context, { type: 'unbilled-usage', ...named, usage, isEstimated: true })
  }
}

/** Runs a limited number of jobs at the same time. */
class Pool {
  readonly #size: number
  readonly #underWay = new Set<Promise<void>>()
  #fault: { readonly error: unknown } | undefined

  constructor(size: number) {
    this.#size = size
  }

  /**
   * Starts a job once there is room.
   * @throws the error of an earlier job.
   */
  async begin(work: () => Promise<void>): Promise<void> {
    while (this.#underWay.size >= this.#size) await Promise.race(this.#underWay)
    this.#throwFault()
    const running: Promise<void> = work()
      .catch((error: unknown) => {
        this.#fault ??= { error }
      })
      .finally(() => this.#underWay.delete(running))
    this.#underWay.add(running)
  }

  /** Waits for all jobs. Never rejects. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  /**
   * Waits for all jobs.
   * @throws the error of a job.
   */
  async ended(): Promise<void> {
    await this.settled()
    this.#throwFault()
  }

  #throwFault(): void {
    if (this.#fault !== undefined) throw this.#fault.error
  }
}

/** Vendor's answer to a request. */
interface Made {
  readonly answer: Ask
  readonly mayBeBilled: boolean
}

/** Reads a result with the translator that the request was captured with. */
function answeredOf(plan: NativePlan, { status, body }: Extract<NativeResult, { kind: 'answered' }>): Made {
  const answer: Ask = async (context, { call, candidates }) => {
    const ofModel = candidates.filter(({ model, vendor }) => model.id === plan.model && vendor.id === plan.vendor)
    const candidate = ofModel.find(({ credentialId }) => credentialId === plan.credentialId) ?? ofModel[0]
    if (candidate === undefined) throw new GatewayError('model_not_configured')
    const operation = await prepareOperation(context, call, candidate)
    const headers = { 'content-type': 'application/json' }
    return responseOf(context, call, {
      candidate,
      operation,
      answer: { status, headers, chunks: [Buffer.from(body)] },
    })
  }
  return { answer, mayBeBilled: status < 300 }
}

const LOST: Made = {
  answer: () =>
    Promise.reject(
      new GatewayError('upstream_timeout', {
        message: 'It is not known whether the model vendor has answered this request, so it was not sent again.',
        retryable: false,
      }),
    ),
  mayBeBilled: true,
}
