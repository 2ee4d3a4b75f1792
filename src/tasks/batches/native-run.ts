// See docs/decisions/0016-batches.md.

import { Buffer } from 'node:buffer'
import { InFlightCalls, Pool } from '../../core/calls-in-flight.ts'
import { GatewayError } from '../../core/errors.ts'
import { parseExactJson } from '../../core/exact-json.ts'
import type { NativeReport, NativeResult } from '../../endpoints/batches.ts'
import type { Ask } from '../../pipeline/completion.ts'
import { responseOf } from '../../pipeline/dispatch.ts'
import { usagePart } from '../../pipeline/estimate.ts'
import { type BatchSettings, emit } from '../../pipeline/pipeline-context.ts'
import { prepareOperation } from '../../pipeline/prepare-operation.ts'
import { joinChunks } from '../../wire/chunks.ts'
import type { Unanswered } from '../call-vendor.ts'
import { missingKey } from '../update-task.ts'
import { type BatchEnd, type BatchJob, endedLines, factsOf, keepOutcome, type StopReason } from './batch-record.ts'
import { EXACT_BODY, linesId, type PlannedRequest, planId, ResultsUnreadable, resultLines } from './lines.ts'
import {
  type BatchVendor,
  captureRequests,
  lineOf,
  mayHaveBegun,
  mayPass,
  NativeJournal,
  type NativePlan,
  NativeVendor,
  NotNative,
  reasonOf,
} from './native-vendor.ts'
import { RequestRun } from './request-run.ts'

/** Result of one turn of a batch at a vendor. */
export type NativeTurn =
  | { readonly kind: 'ended'; readonly end: BatchEnd; readonly vendor: string }
  /** The next turn is due at this time, in Unix milliseconds. */
  | { readonly kind: 'waits'; readonly untilMs: number }
  /** Requests without an outcome become ordinary calls. */
  | { readonly kind: 'paced' }

const PACED: NativeTurn = { kind: 'paced' }

/** Maximum number of attempts to submit a batch to its vendor. */
const MAX_TRIES = 4
const RETRY_MS = 15_000

/** The vendor is polled after a tenth of the time that the batch has taken so far, within these limits. */
const MIN_WAIT_MS = 2_000
const MAX_WAIT_MS = 60_000

/** How long to search for a batch whose creation was not answered, in milliseconds. After it, the request can no longer arrive. */
const SEARCH_MS = 60_000

/** How long a batch is polled after its expiry if its vendor does not end it, in milliseconds. The hold lives longer. */
const GIVE_UP_MS = 90 * 60_000

/**
 * Batch at a vendor's batch API: it is captured, uploaded, created, polled and read. One turn does everything that is possible
 * now. Each step is written to the journal before the next, and the creation before it is sent, so that a crash never creates a
 * batch twice.
 */
export class NativeRun {
  readonly #job: BatchJob
  readonly #calls = new InFlightCalls()
  #reason: StopReason | undefined
  #journal!: NativeJournal

  constructor(job: BatchJob) {
    this.#job = { ...job, context: { ...job.context, taskCalls: this.#calls } }
  }

  /** Starts no more steps; the current one ends normally. */
  stop(reason: StopReason): void {
    this.#reason ??= reason
  }

  /** Aborts the calls in flight, too. */
  abort(): void {
    this.stop('put-back')
    this.#calls.abortAll()
  }

  /**
   * Runs one turn.
   * @throws JournalConflict if another process continues the batch, and whatever the stores throw; the batch can be leased again.
   */
  async run(): Promise<NativeTurn> {
    if (this.#nowMs >= factsOf(this.#job.task).expiresAtMs) this.stop('expired')
    this.#journal = await NativeJournal.read(this.#job)
    if (this.#journal.latest('paced') !== undefined) return PACED
    const captured = this.#journal.latest('captured')?.plan ?? (await this.#capture())
    if (captured === 'stopped') return this.#waits(0)
    if (captured === undefined) return PACED
    const plan = captured
    if (this.#journal.latest('given-up') !== undefined) return this.#givenUp(plan)
    const at = this.#vendorOf(plan)
    const collected = this.#journal.latest('collected')
    if (collected !== undefined) return await this.#conclude(at, plan, collected)
    if (at === undefined) return await this.#withoutVendor(plan)
    if (this.#journal.latest('created') !== undefined) return await this.#follow(at)
    return await this.#submit(at)
  }

  get #nowMs(): number {
    return this.#job.context.clock.now()
  }

  get #isStopping(): boolean {
    return this.#reason === 'put-back'
  }

  /** Whether nothing more is needed from the vendor. */
  get #isOver(): boolean {
    return this.#reason === 'cancelled' || this.#reason === 'expired'
  }

  #waits(delayMs: number): NativeTurn {
    return { kind: 'waits', untilMs: this.#isStopping ? this.#nowMs : this.#nowMs + delayMs }
  }

  /** Returns `undefined` if the requests become ordinary calls. */
  async #capture(): Promise<NativePlan | 'stopped' | undefined> {
    const { vendors, hooks } = this.#job.context
    const ownHooks = hooks?.of(this.#job.endpoint)
    const isFit =
      this.#job.settings.isNative &&
      this.#reason === undefined &&
      // These hooks run when a request is sent and may change it; a line of a batch is not sent by its own call.
      ownHooks?.request === undefined &&
      ownHooks?.wire === undefined &&
      [...vendors.values()].some(({ batches, apiKeys }) => batches !== undefined && apiKeys.length > 0)
    const wasBegun = !this.#journal.isEmpty
    if (wasBegun && this.#isStopping) return 'stopped'
    if (!wasBegun && !isFit) return undefined
    const ended = await endedLines(this.#job.settings, this.#job.task.id)
    // A batch that an earlier release, or a gateway without this option, has begun continues in the same way.
    if (!wasBegun && ended.size > 0) return undefined
    if (!isFit || this.#journal.count('begun') >= MAX_TRIES) return await this.#pacedFor('it cannot be captured')
    await this.#journal.append({ step: 'begun' })
    try {
      const plan = await captureRequests(this.#job, { ended, isStopped: () => this.#reason !== undefined })
      if (plan === undefined) return await this.#pacedFor('no request of it can be sent')
      await this.#journal.append({ step: 'captured', plan })
      return plan
    } catch (error) {
      if (!(error instanceof NotNative)) throw error
      // A closing process leaves the batch to the next one.
      return this.#isStopping ? 'stopped' : await this.#pacedFor(error.message)
    }
  }

  async #pacedFor(reason: string): Promise<undefined> {
    await this.#journal.append({ step: 'paced', reason })
    await this.#job.settings.blobs.delete(linesId(this.#job.task.id))
    return undefined
  }

  /** Returns the vendor with the key that created the batch, or with another key of that vendor. Returns `undefined` if it has none. */
  #vendorOf(plan: NativePlan): NativeVendor | undefined {
    const routed = this.#job.context.routes.vendor(plan.vendor)
    const key = routed?.keys.find(({ credentialId }) => credentialId === plan.credentialId) ?? routed?.keys[0]
    const batches = routed?.vendor.batches
    if (routed === undefined || key === undefined || batches === undefined) return undefined
    const { apiKey, credentials, credentialId } = key
    const isSubstitute = credentialId !== plan.credentialId
    const called = { vendor: routed.vendor, apiKey, credentials, batches, isSubstitute }
    return new NativeVendor(this.#job, plan, called)
  }

  async #withoutVendor(plan: NativePlan): Promise<NativeTurn> {
    this.#job.context.warnings.warn(missingKey(plan.credentialId))
    const wasSent = this.#journal.latest('created') !== undefined || this.#journal.openCreation !== undefined
    if (!wasSent) {
      await this.#pacedFor('no key of its vendor is configured')
      return PACED
    }
    return this.#isGivenUp ? await this.#giveUp(plan) : this.#waits(MAX_WAIT_MS)
  }

  async #submit(at: NativeVendor): Promise<NativeTurn> {
    if (this.#journal.latest('lost') !== undefined) return await this.#lose(at)
    const open = this.#journal.openCreation
    if (open !== undefined) return await this.#search(at, open.atMs)
    if (this.#isStopping) return this.#waits(0)
    if (this.#isOver) return await this.#toPaced(at, 'it was stopped before it was created')
    const { batches, plan, called } = at
    const { apiKey } = called
    const name = this.#name
    if (batches.upload !== undefined && this.#journal.latest('uploaded') === undefined) {
      const uploaded = await at.call(batches.upload.call(name, apiKey), batches.upload.uploaded)
      if (uploaded.kind !== 'answer') return this.#isStopping ? this.#waits(0) : await this.#unsent(at, uploaded)
      await this.#journal.append({ step: 'uploaded', fileId: uploaded.value })
      if (this.#isStopping) return this.#waits(0)
    }
    const { path, upstream } = plan
    const input = { fileId: this.#journal.latest('uploaded')?.fileId, path, upstream, name }
    await this.#journal.append({ step: 'creating', atMs: this.#nowMs })
    const created = await at.call(batches.create(input, apiKey), batches.created)
    if (created.kind === 'answer') {
      await this.#journal.append({ step: 'created', batchId: created.value, atMs: this.#nowMs })
      return this.#waits(this.#pollWaitMs)
    }
    if (!mayHaveBegun(created)) return await this.#unsent(at, created)
    at.warn('a vendor did not answer to the creation of a batch; the gateway searches for it', created)
    return this.#waits(this.#retryWaitMs)
  }

  /** Name of the batch in the vendor's list. */
  get #name(): string {
    return this.#job.task.id.replaceAll('-', '_')
  }

  /** Handles a creation that certainly failed at the vendor. */
  async #unsent(at: NativeVendor, response: Unanswered): Promise<NativeTurn> {
    const reason = reasonOf(response)
    await this.#journal.append({ step: 'refused', reason })
    if (mayPass(response) && this.#journal.count('refused') < MAX_TRIES) {
      at.warn('a vendor did not accept a batch; it is sent again', response)
      return this.#waits(RETRY_MS * this.#journal.count('refused'))
    }
    at.warn('a vendor does not accept a batch; its requests are sent as ordinary calls', response)
    return await this.#toPaced(at, reason)
  }

  async #toPaced(at: NativeVendor, reason: string): Promise<NativeTurn> {
    await at.remove(this.#kept([]))
    await this.#pacedFor(reason)
    return PACED
  }

  /** Finds out whether a creation without an answer succeeded. */
  async #search(at: NativeVendor, sentAtMs: number): Promise<NativeTurn> {
    if (at.batches.search === undefined) return await this.#lose(at)
    const found = await at.find(this.#name, sentAtMs)
    if (found.kind !== 'answer') {
      at.warn('a vendor did not list its batches; the query is repeated', found)
      return this.#waits(this.#retryWaitMs)
    }
    if (found.value.batchId !== undefined) {
      await this.#journal.append({ step: 'created', batchId: found.value.batchId, atMs: this.#nowMs })
      return await this.#follow(at)
    }
    if (this.#nowMs < sentAtMs + SEARCH_MS) return this.#waits(this.#retryWaitMs)
    // The batch may be on a page that was not read, or in the list of another account.
    if (found.value.after !== undefined || at.called.isSubstitute) return await this.#lose(at)
    return await this.#unsent(at, { kind: 'unreachable', reason: 'it did not create the batch', wasSent: false })
  }

  async #lose(at: NativeVendor): Promise<NativeTurn> {
    if (this.#journal.latest('lost') === undefined) {
      this.#job.context.logger.error(
        'a vendor did not answer to the creation of a batch, which cannot be found there; its requests end with an error, because sending them again could be paid twice',
        at.named,
      )
      await this.#journal.append({ step: 'lost' })
    }
    await new ResultCollection(this.#job, at.plan).lose()
    await this.#journal.append({ step: 'collected', rest: this.#ownEnd, results: [] })
    return await this.#conclude(at, at.plan, this.#journal.latest('collected')!)
  }

  async #follow(at: NativeVendor): Promise<NativeTurn> {
    const { batchId } = this.#journal.latest('created')!
    const read = await at.call(at.batches.read(batchId, at.called.apiKey), at.batches.report)
    if (read.kind !== 'answer') {
      at.warn('a vendor did not report the state of a batch; the query is repeated', read)
      return this.#isGivenUp ? await this.#giveUp(at.plan) : this.#waits(this.#pollWaitMs)
    }
    const report = read.value
    switch (report.state) {
      case 'running':
        if (this.#isGivenUp) return await this.#giveUp(at.plan)
        if (this.#isOver && this.#journal.latest('cancelling') === undefined) await this.#cancel(at, batchId)
        return this.#waits(this.#pollWaitMs)
      case 'failed':
        this.#job.context.logger.warn('a vendor rejected a batch; its requests are sent as ordinary calls', {
          ...at.named,
          vendorCode: report.failure?.code,
        })
        return await this.#toPaced(at, report.failure?.code ?? 'failed')
      case 'ended':
        return await this.#collect(at, report)
    }
  }

  async #cancel(at: NativeVendor, batchId: string): Promise<void> {
    const cancelled = await at.call(at.batches.cancel(batchId, at.called.apiKey), () => true)
    if (cancelled.kind === 'answer') await this.#journal.append({ step: 'cancelling' })
    // The batch may have ended by itself; the next report then shows it.
    else at.warn('a vendor did not cancel a batch; the cancellation is repeated', cancelled)
  }

  async #collect(at: NativeVendor, report: NativeReport): Promise<NativeTurn> {
    const collection = new ResultCollection(this.#job, at.plan)
    try {
      const unmade = await collection.read(at.called, report.results, () => this.#isStopping)
      if (this.#isStopping) return this.#waits(0)
      const isExpired = report.isExpired || unmade.expired > 0
      const isCancelled = report.isCancelled || unmade.cancelled > 0
      // If the vendor ended the batch in time and reports nothing about a request, it may have billed that request.
      if (!isExpired && !isCancelled) await collection.lose()
      const rest = this.#restOf({ isExpired, isCancelled })
      await this.#journal.append({ step: 'collected', rest, results: report.results })
    } catch (error) {
      if (!(error instanceof ResultsUnreadable)) throw error
      this.#job.context.logger.warn('the results of a batch could not be read; they are read again', {
        ...at.named,
        reason: error.message,
      })
      return this.#isGivenUp ? await this.#giveUp(at.plan) : this.#waits(this.#retryWaitMs)
    }
    return await this.#conclude(at, at.plan, this.#journal.latest('collected')!)
  }

  /** Decides what happens to the requests that the vendor did not execute. */
  #restOf(vendor: { readonly isExpired: boolean; readonly isCancelled: boolean }): BatchEnd | 'paced' {
    if (this.#isOver) return this.#ownEnd
    if (vendor.isExpired) return 'expired'
    return vendor.isCancelled ? 'paced' : 'completed'
  }

  get #ownEnd(): BatchEnd {
    return this.#reason === 'cancelled' || this.#reason === 'expired' ? this.#reason : 'completed'
  }

  /** Whether the hold ends soon. */
  get #isGivenUp(): boolean {
    return this.#nowMs >= factsOf(this.#job.task).expiresAtMs + GIVE_UP_MS
  }

  async #giveUp(plan: NativePlan): Promise<NativeTurn> {
    const collection = new ResultCollection(this.#job, plan)
    const open = await collection.countOpen()
    await this.#journal.append({ step: 'given-up' })
    this.#job.context.logger.error(
      'a batch is given up because its vendor has not ended it; its answers are not charged',
      {
        requestId: this.#job.task.details.requestId,
        taskId: this.#job.task.id,
        vendor: plan.vendor,
      },
    )
    collection.tellUnread(open)
    return this.#givenUp(plan)
  }

  #givenUp({ vendor }: NativePlan): NativeTurn {
    return { kind: 'ended', end: this.#reason === 'cancelled' ? 'cancelled' : 'expired', vendor }
  }

  async #conclude(
    at: NativeVendor | undefined,
    { vendor }: NativePlan,
    { rest, results }: { readonly rest: BatchEnd | 'paced'; readonly results: readonly string[] },
  ): Promise<NativeTurn> {
    if (at !== undefined) await at.remove(this.#kept(results))
    if (rest !== 'paced') return { kind: 'ended', end: rest, vendor }
    await this.#pacedFor('it was cancelled at the vendor')
    return PACED
  }

  #kept(results: readonly string[]): Parameters<NativeVendor['remove']>[0] {
    const fileId = this.#journal.latest('uploaded')?.fileId
    return { fileId, batchId: this.#journal.latest('created')?.batchId, results }
  }

  get #pollWaitMs(): number {
    const sinceMs = this.#nowMs - (this.#journal.latest('created')?.atMs ?? this.#nowMs)
    const longestMs = this.#isOver ? RETRY_MS : MAX_WAIT_MS
    return this.#job.context.taskPollIntervalMs ?? Math.min(longestMs, Math.max(MIN_WAIT_MS, sinceMs / 10))
  }

  get #retryWaitMs(): number {
    return Math.min(RETRY_MS, this.#job.context.taskPollIntervalMs ?? RETRY_MS)
  }
}

/** Number of outcomes that are built and stored at the same time: a store can write several in one statement. */
const SAVE_BATCH_SIZE = 16

/** Number of requests that the vendor reports as not executed. */
export interface UnexecutedCounts {
  readonly expired: number
  readonly cancelled: number
}

/** Creates outcomes from a vendor's results. Each answer passes the same stages as the answer to a call. */
class ResultCollection {
  readonly #job: BatchJob
  readonly #plan: NativePlan

  constructor(job: BatchJob, plan: NativePlan) {
    this.#job = job
    this.#plan = plan
  }

  /**
   * Reads all results. An existing outcome is kept, so that reading the results again changes nothing.
   * @param isStopped Ends the reading early.
   * @throws ResultsUnreadable, and whatever the stores throw.
   */
  async read(at: BatchVendor, results: readonly string[], isStopped: () => boolean): Promise<UnexecutedCounts> {
    const { task } = this.#job
    const ended = await endedLines(this.#job.settings, task.id)
    const index = await PlanIndex.of(this.#job.settings, task.id)
    const unmade = { expired: 0, cancelled: 0 }
    const pool = new Pool(SAVE_BATCH_SIZE)
    try {
      for (const each of results) {
        const call = at.batches.results(each, at.apiKey)
        for await (const text of resultLines(this.#job.context, at, call)) {
          if (isStopped()) break
          const result = at.batches.result(text)
          const line = result && lineOf(result.customId)
          if (result === undefined || line === undefined || ended.has(line) || line >= index.size) continue
          if (result.kind !== 'answered') {
            unmade[result.kind]++
            continue
          }
          ended.add(line)
          await pool.begin(() => this.#keep(index, line, answeredOf(this.#plan, result)))
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
    const ended = await endedLines(this.#job.settings, this.#job.task.id)
    const index = await PlanIndex.of(this.#job.settings, this.#job.task.id)
    const pool = new Pool(SAVE_BATCH_SIZE)
    for (let line = 0; line < index.size; line++)
      if (!ended.has(line)) await pool.begin(() => this.#keep(index, line, LOST))
    await pool.ended()
  }

  /** Number of requests without an outcome. */
  async countOpen(): Promise<number> {
    const { task } = this.#job
    return factsOf(task).total - (await endedLines(this.#job.settings, task.id)).size
  }

  async #keep(index: PlanIndex, line: number, { answer, mayBeBilled }: Made): Promise<void> {
    const planned = await index.request(line)
    if (planned === undefined) return
    let isRead = false
    const ask: Ask = async (context, routed) => {
      const response = await answer(context, routed)
      isRead = true
      return response
    }
    const run = new RequestRun(this.#job, { planned, line, ask })
    const result = await run.run()
    if (result.kind === 'stopped') return
    // A fault of the gateway's store may be temporary; the vendor keeps the answer.
    if (result.kind === 'again' && result.error.code === 'store_unavailable') throw result.error
    const isKept = await keepOutcome(this.#job, result.outcome)
    // Another process has stored the outcome, and reports it.
    if (!isKept) return
    run.tellUnbilled()
    if (mayBeBilled && !isRead) this.tellUnread(1)
  }

  /** Reports requests that the vendor may have executed, although their answers are not read: they are lost, or can no longer be run. */
  tellUnread(count: number): void {
    if (count === 0) return
    const { task } = this.#job
    const { accountId, keyId, details } = task
    const { requestId, heldUsage } = details
    const { vendor, model } = this.#plan
    const usage = usagePart(heldUsage, count / factsOf(task).total)
    const named = { requestId, accountId, keyId, vendor, model }
    emit(this.#job.context, { type: 'unbilled-usage', ...named, usage, isEstimated: true })
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

const NEWLINE = 0x0a

/** Size of a part of the plan that is read at a time, and the maximum number of parts in memory. */
const WINDOW_BYTES = 512 * 1024
const MAX_WINDOWS = 64

/** Gives access to the requests of a batch by number, in any order, without all of them in memory. */
class PlanIndex {
  readonly #settings: BatchSettings
  readonly #planId: string
  /** End offset of each request in bytes, without the line break. */
  readonly #ends: readonly number[]
  /** Parts by number; the last one was used last. */
  readonly #windows = new Map<number, Promise<Uint8Array>>()

  private constructor(settings: BatchSettings, id: string, ends: readonly number[]) {
    this.#settings = settings
    this.#planId = id
    this.#ends = ends
  }

  static async of(settings: BatchSettings, batchId: string): Promise<PlanIndex> {
    const id = planId(batchId)
    const plan = await settings.blobs.get(id)
    if (plan === undefined) throw new Error(`the requests of the batch ${batchId} are gone`)
    const ends: number[] = []
    let position = 0
    for await (const piece of plan.content) {
      for (let at = piece.indexOf(NEWLINE); at !== -1; at = piece.indexOf(NEWLINE, at + 1)) ends.push(position + at)
      position += piece.byteLength
    }
    return new PlanIndex(settings, id, ends)
  }

  /** Number of requests. */
  get size(): number {
    return this.#ends.length
  }

  /** Returns a request by its number, or `undefined` if there is no such request. */
  async request(line: number): Promise<PlannedRequest | undefined> {
    const end = this.#ends[line]
    if (end === undefined) return undefined
    const start = line === 0 ? 0 : this.#ends[line - 1]! + 1
    const parts: Uint8Array[] = []
    for (let window = Math.floor(start / WINDOW_BYTES); window * WINDOW_BYTES < end; window++) {
      const first = window * WINDOW_BYTES
      const bytes = await this.#window(window)
      parts.push(bytes.subarray(Math.max(0, start - first), end - first))
    }
    return parseExactJson(Buffer.from(joinChunks(parts)).toString(), EXACT_BODY) as PlannedRequest
  }

  #window(number: number): Promise<Uint8Array> {
    const known = this.#windows.get(number)
    this.#windows.delete(number)
    const window = known ?? this.#read(number)
    this.#windows.set(number, window)
    for (const oldest of this.#windows.keys()) {
      if (this.#windows.size <= MAX_WINDOWS) break
      this.#windows.delete(oldest)
    }
    return window
  }

  async #read(number: number): Promise<Uint8Array> {
    const start = number * WINDOW_BYTES
    try {
      const blob = await this.#settings.blobs.get(this.#planId, { start, end: start + WINDOW_BYTES })
      if (blob === undefined) throw new Error(`the requests ${this.#planId} are gone`)
      const parts: Uint8Array[] = []
      for await (const piece of blob.content) parts.push(Uint8Array.from(piece))
      return joinChunks(parts)
    } catch (error) {
      // A later access reads it again.
      this.#windows.delete(number)
      throw error
    }
  }
}
