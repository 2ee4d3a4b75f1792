import { CallsUnderWay } from '../../core/calls-under-way.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import type { LinesBody, NativeBatches, NativeCall, NativeReport } from '../../endpoints/native-batches.ts'
import type { WireAnswer } from '../../endpoints/operation.ts'
import { failureOfVendor } from '../../pipeline/error-classification.ts'
import { type BatchSettings, emit, type PipelineContext } from '../../pipeline/pipeline-context.ts'
import type { TaskRecord } from '../../stores/task-store.ts'
import { type CalledVendor, callVendor, type TaskResponse } from '../call-vendor.ts'
import { missingKey } from '../update-task.ts'
import { factsOf } from './batch-record.ts'
import type { StopReason } from './batch-run.ts'
import { captureRequests, NotNative } from './capture-requests.ts'
import { ResultCollection } from './collect-results.ts'
import type { BatchEnd } from './end-batch.ts'
import { linesBody } from './lines-body.ts'
import { linesId, NativeJournal, type NativePlan } from './native-journal.ts'
import { endedLines, outcomesExpireAtMs } from './outcome-lines.ts'
import { ResultsUnreadable } from './result-lines.ts'

/** How a turn of a batch at a vendor went. */
export type NativeTurn =
  | { readonly kind: 'ended'; readonly end: BatchEnd; readonly vendor: string }
  /** To be looked at again at this time; Unix milliseconds. */
  | { readonly kind: 'waits'; readonly untilMs: number }
  /** Its requests without an outcome are ordinary calls. */
  | { readonly kind: 'paced' }

const PACED: NativeTurn = { kind: 'paced' }

/** How long an upload, or a creation with its requests, may take. */
const UPLOAD_TIMEOUT_MS = 30 * 60_000

/** Times that it is tried to bring a batch to its vendor. */
const MOST_TRIES = 4
const RETRY_MS = 15_000

/** A vendor is asked after a tenth of the time that a batch has taken so far, within these bounds. */
const SHORTEST_WAIT_MS = 2_000
const LONGEST_WAIT_MS = 60_000

/** A creation without an answer is looked for this long; it is not on its way any more then. */
const SEARCH_MS = 60_000
/** By how much the clock of a vendor may be behind. */
const CLOCK_SKEW_MS = 10 * 60_000
/** Pages of a vendor's batches that are read in one search. */
const MOST_PAGES = 20

/** How long after its expiry a batch is followed that its vendor does not end. The hold lives longer. */
const GIVE_UP_MS = 90 * 60_000

/** What a turn at a vendor works with. */
interface AtVendor extends CalledVendor {
  readonly batches: NativeBatches
  readonly plan: NativePlan
}

/**
 * A batch at a vendor's batch API: captured, uploaded, created, followed and read. One turn does what can be done now; each step is
 * written down before the next, and the creation before it is sent, so that no batch is created twice for a process that dies.
 */
export class NativeRun {
  readonly #context: PipelineContext
  readonly #settings: BatchSettings
  readonly #endpoint: Endpoint
  readonly #task: TaskRecord
  readonly #calls = new CallsUnderWay()
  #reason: StopReason | undefined
  #journal!: NativeJournal

  constructor(context: PipelineContext, settings: BatchSettings, endpoint: Endpoint, task: TaskRecord) {
    this.#context = { ...context, taskCalls: this.#calls }
    this.#settings = settings
    this.#endpoint = endpoint
    this.#task = task
  }

  /** Begins no further step; the one under way ends. */
  stop(reason: StopReason): void {
    this.#reason ??= reason
  }

  /** Cuts off the calls under way, too. */
  abort(): void {
    this.stop('put-back')
    this.#calls.abortAll()
  }

  /**
   * One turn.
   * @throws JournalConflict when another process goes on with it, and whatever the stores throw; the batch can be taken again.
   */
  async run(): Promise<NativeTurn> {
    const { id } = this.#task
    if (this.#nowMs >= factsOf(this.#task).expiresAtMs) this.stop('expired')
    this.#journal = await NativeJournal.read(this.#settings, id, outcomesExpireAtMs(this.#task))
    if (this.#journal.latest('paced') !== undefined) return PACED
    const captured = this.#journal.latest('captured')?.plan ?? (await this.#capture())
    if (captured === 'stopped') return this.#waits(0)
    if (captured === undefined) return PACED
    const plan = captured
    const at = this.#vendorOf(plan)
    const collected = this.#journal.latest('collected')
    if (collected !== undefined) return await this.#conclude(at, plan, collected)
    if (at === undefined) return await this.#withoutVendor(plan)
    if (this.#journal.latest('created') !== undefined) return await this.#follow(at)
    return await this.#submit(at)
  }

  get #nowMs(): number {
    return this.#context.clock.now()
  }

  get #isStopping(): boolean {
    return this.#reason === 'put-back'
  }

  /** Is nothing more wanted of the vendor? */
  get #isOver(): boolean {
    return this.#reason === 'cancelled' || this.#reason === 'expired'
  }

  #waits(delayMs: number): NativeTurn {
    return { kind: 'waits', untilMs: this.#isStopping ? this.#nowMs : this.#nowMs + delayMs }
  }

  /** Undefined: its requests are ordinary calls. */
  async #capture(): Promise<NativePlan | 'stopped' | undefined> {
    const context = this.#context
    const { vendors, hooks } = context
    const ownHooks = hooks?.of(this.#endpoint)
    const isFit =
      this.#settings.isNative &&
      this.#reason === undefined &&
      // They are asked when a request is sent, and may change it; a line of a batch has no call of its own.
      ownHooks?.request === undefined &&
      ownHooks?.wire === undefined &&
      [...vendors.values()].some(({ batches, apiKeys }) => batches !== undefined && apiKeys.length > 0)
    const ended = await endedLines(this.#settings, this.#task.id)
    const wasBegun = !this.#journal.isEmpty
    // One that an earlier release began, or a gateway without this option, is gone on with as it was begun.
    if (!wasBegun && (!isFit || ended.size > 0)) return undefined
    if (!isFit || this.#journal.count('begun') >= MOST_TRIES) return await this.#pacedFor('it cannot be captured')
    await this.#journal.append({ step: 'begun' })
    try {
      const plan = await captureRequests(context, this.#settings, {
        task: this.#task,
        endpoint: this.#endpoint,
        ended,
        keep: async (outcome) => {
          await this.#settings.outcomes.add(this.#task.id, outcome, outcomesExpireAtMs(this.#task))
        },
        isStopped: () => this.#reason !== undefined,
      })
      if (plan === undefined) return await this.#pacedFor('no request of it can be sent')
      await this.#journal.append({ step: 'captured', plan })
      return plan
    } catch (error) {
      if (!(error instanceof NotNative)) throw error
      // A process that closes leaves it to the next one.
      return this.#isStopping ? 'stopped' : await this.#pacedFor(error.message)
    }
  }

  async #pacedFor(reason: string): Promise<undefined> {
    await this.#journal.append({ step: 'paced', reason })
    await this.#settings.blobs.delete(linesId(this.#task.id))
    return undefined
  }

  /** With the key that created it, or another one of its vendor. Undefined: there is none. */
  #vendorOf(plan: NativePlan): AtVendor | undefined {
    const routed = this.#context.routes.vendor(plan.vendor)
    const key = routed?.keys.find(({ credentialId }) => credentialId === plan.credentialId) ?? routed?.keys[0]
    const batches = routed?.vendor.batches
    if (routed === undefined || key === undefined || batches === undefined) return undefined
    return { vendor: routed.vendor, apiKey: key.apiKey, credentials: key.credentials, batches, plan }
  }

  async #withoutVendor(plan: NativePlan): Promise<NativeTurn> {
    this.#context.warnings.warn(missingKey(plan.credentialId))
    const wasSent = this.#journal.latest('created') !== undefined || this.#journal.openCreation !== undefined
    if (!wasSent) {
      await this.#pacedFor('no key of its vendor is configured')
      return PACED
    }
    return this.#isGivenUp ? await this.#giveUp(plan) : this.#waits(LONGEST_WAIT_MS)
  }

  async #submit(at: AtVendor): Promise<NativeTurn> {
    const open = this.#journal.openCreation
    if (open !== undefined) return await this.#search(at, open.atMs)
    if (this.#isStopping) return this.#waits(0)
    if (this.#isOver) return await this.#toPaced(at, 'it was stopped before it was created')
    const { batches, plan, apiKey } = at
    const name = this.#name
    if (batches.upload !== undefined && this.#journal.latest('uploaded') === undefined) {
      const uploaded = await this.#call(at, batches.upload.call(name, apiKey), batches.upload.uploaded)
      if (uploaded.kind !== 'answer') return this.#isStopping ? this.#waits(0) : await this.#unsent(at, uploaded)
      await this.#journal.append({ step: 'uploaded', fileId: uploaded.value })
      if (this.#isStopping) return this.#waits(0)
    }
    const { path, upstream } = plan
    const input = { fileId: this.#journal.latest('uploaded')?.fileId, path, upstream, name }
    await this.#journal.append({ step: 'creating', atMs: this.#nowMs })
    const created = await this.#call(at, batches.create(input, apiKey), batches.created)
    if (created.kind === 'answer') {
      await this.#journal.append({ step: 'created', batchId: created.value, atMs: this.#nowMs })
      return this.#waits(this.#pollWaitMs)
    }
    if (!mayHaveBegun(created)) return await this.#unsent(at, created)
    this.#warn('a vendor did not answer to the creation of a batch; it is looked for', at, created)
    return this.#waits(this.#searchWaitMs)
  }

  /** The name by which the vendor lists the batch. */
  get #name(): string {
    return this.#task.id.replaceAll('-', '_')
  }

  /** The vendor surely has no batch. */
  async #unsent(at: AtVendor, response: Unanswered): Promise<NativeTurn> {
    const reason = reasonOf(response)
    await this.#journal.append({ step: 'refused', reason })
    if (mayPass(response) && this.#journal.count('refused') < MOST_TRIES) {
      this.#warn('a vendor did not take a batch; it is sent again', at, response)
      return this.#waits(RETRY_MS * this.#journal.count('refused'))
    }
    this.#warn('a vendor does not take a batch; its requests are sent as ordinary calls', at, response)
    return await this.#toPaced(at, reason)
  }

  async #toPaced(at: AtVendor, reason: string): Promise<NativeTurn> {
    await this.#remove(at, [])
    await this.#pacedFor(reason)
    return PACED
  }

  /** Finds out what became of a creation without an answer. */
  async #search(at: AtVendor, sentAtMs: number): Promise<NativeTurn> {
    const { search } = at.batches
    if (search === undefined) {
      this.#context.logger.error(
        'a process died while a vendor created a batch that cannot be found there; its requests end with an error, because sending them again could be paid twice',
        this.#named(at),
      )
      await this.#journal.append({ step: 'lost' })
      await this.#collection(at.plan).lose()
      await this.#journal.append({ step: 'collected', rest: this.#ownEnd, results: [] })
      return await this.#conclude(at, at.plan, this.#journal.latest('collected')!)
    }
    const sought = { name: this.#name, sinceMs: sentAtMs - CLOCK_SKEW_MS }
    let after: string | undefined
    for (let page = 0; page < MOST_PAGES; page++) {
      const found = await this.#call(at, search.call(after, at.apiKey), (answer) => search.read(answer, sought))
      if (found.kind !== 'answer') {
        this.#warn('a vendor did not list its batches; it is asked again', at, found)
        return this.#waits(this.#searchWaitMs)
      }
      if (found.value.batchId !== undefined) {
        await this.#journal.append({ step: 'created', batchId: found.value.batchId, atMs: this.#nowMs })
        return await this.#follow(at)
      }
      after = found.value.after
      if (after === undefined) break
    }
    if (this.#nowMs < sentAtMs + SEARCH_MS) return this.#waits(this.#searchWaitMs)
    return await this.#unsent(at, { kind: 'unreachable', reason: 'it did not create the batch', wasSent: false })
  }

  async #follow(at: AtVendor): Promise<NativeTurn> {
    const { batchId } = this.#journal.latest('created')!
    const read = await this.#call(at, at.batches.read(batchId, at.apiKey), at.batches.report)
    if (read.kind !== 'answer') {
      this.#warn('a vendor did not tell the state of a batch; it is asked again', at, read)
      return this.#isGivenUp ? await this.#giveUp(at.plan) : this.#waits(this.#pollWaitMs)
    }
    const report = read.value
    switch (report.state) {
      case 'running':
        if (this.#isGivenUp) return await this.#giveUp(at.plan)
        if (this.#isOver && this.#journal.latest('cancelling') === undefined) await this.#cancel(at, batchId)
        return this.#waits(this.#pollWaitMs)
      case 'failed':
        this.#context.logger.warn('a vendor made nothing of a batch; its requests are sent as ordinary calls', {
          ...this.#named(at),
          vendorCode: report.failure?.code,
          vendorMessage: report.failure?.message,
        })
        return await this.#toPaced(at, report.failure?.code ?? 'failed')
      case 'ended':
        return await this.#collect(at, report)
    }
  }

  async #cancel(at: AtVendor, batchId: string): Promise<void> {
    const cancelled = await this.#call(at, at.batches.cancel(batchId, at.apiKey), () => true)
    if (cancelled.kind === 'answer') await this.#journal.append({ step: 'cancelling' })
    // It may have ended by itself meanwhile, which its next report tells.
    else this.#warn('a vendor did not cancel a batch; it is asked again', at, cancelled)
  }

  async #collect(at: AtVendor, report: NativeReport): Promise<NativeTurn> {
    const collection = this.#collection(at.plan)
    try {
      const unmade = await collection.read(at, report.results, () => this.#isStopping)
      if (this.#isStopping) return this.#waits(0)
      const isOver = this.#isOver || report.isExpired || unmade.expired > 0
      const rest = isOver
        ? this.#reason === 'cancelled'
          ? 'cancelled'
          : 'expired'
        : report.isCancelled || unmade.cancelled > 0
          ? 'paced'
          : 'completed'
      // A vendor that has ended in time and says nothing of a request may have billed it.
      if (rest === 'completed') await collection.lose()
      await this.#journal.append({ step: 'collected', rest, results: report.results })
    } catch (error) {
      if (!(error instanceof ResultsUnreadable)) throw error
      this.#context.logger.warn('the results of a batch could not be read; they are read again', {
        ...this.#named(at),
        reason: error.message,
      })
      return this.#isGivenUp ? await this.#giveUp(at.plan) : this.#waits(RETRY_MS)
    }
    return await this.#conclude(at, at.plan, this.#journal.latest('collected')!)
  }

  #collection(plan: NativePlan): ResultCollection {
    return new ResultCollection(this.#context, this.#settings, { task: this.#task, endpoint: this.#endpoint, plan })
  }

  get #ownEnd(): BatchEnd {
    return this.#reason === 'cancelled' || this.#reason === 'expired' ? this.#reason : 'completed'
  }

  /** Is it so late that the hold ends soon? */
  get #isGivenUp(): boolean {
    return this.#nowMs >= factsOf(this.#task).expiresAtMs + GIVE_UP_MS
  }

  async #giveUp(plan: NativePlan): Promise<NativeTurn> {
    const { vendor } = plan
    this.#context.logger.error('a batch is given up that its vendor has not ended; what it made is not charged', {
      ...this.#named({ plan }),
    })
    return { kind: 'ended', end: this.#reason === 'cancelled' ? 'cancelled' : 'expired', vendor }
  }

  async #conclude(
    at: AtVendor | undefined,
    { vendor }: NativePlan,
    { rest, results }: { readonly rest: BatchEnd | 'paced'; readonly results: readonly string[] },
  ): Promise<NativeTurn> {
    if (at !== undefined) await this.#remove(at, results)
    if (rest !== 'paced') return { kind: 'ended', end: rest, vendor }
    await this.#pacedFor('it was cancelled at the vendor')
    return PACED
  }

  /** Deletes what the vendor keeps. One that does not is told to the operator and asked once. */
  async #remove(at: AtVendor, results: readonly string[]): Promise<void> {
    const fileId = this.#journal.latest('uploaded')?.fileId
    const batchId = this.#journal.latest('created')?.batchId
    for (const call of at.batches.remove({ fileId, batchId, results }, at.apiKey)) {
      const removed = await this.#call(at, call, () => true)
      if (removed.kind === 'answer' || (removed.kind === 'refused' && removed.failure.status === 404)) continue
      this.#warn('a vendor did not delete what it keeps of a batch', at, removed)
    }
  }

  get #pollWaitMs(): number {
    const sinceMs = this.#nowMs - (this.#journal.latest('created')?.atMs ?? this.#nowMs)
    const longestMs = this.#isOver ? RETRY_MS : LONGEST_WAIT_MS
    return this.#context.taskPollIntervalMs ?? Math.min(longestMs, Math.max(SHORTEST_WAIT_MS, sinceMs / 10))
  }

  get #searchWaitMs(): number {
    return Math.min(RETRY_MS, this.#context.taskPollIntervalMs ?? RETRY_MS)
  }

  async #call<Value>(
    at: AtVendor,
    { method, path, headers, body }: NativeCall,
    read: (answer: WireAnswer) => Value | undefined,
  ): Promise<TaskResponse<Value>> {
    const own = { method, path, headers }
    if (body === null) return await callVendor(this.#context, at, own, read)
    if (typeof body === 'string') return await callVendor(this.#context, at, { ...own, body: () => body }, read)
    return await this.#callWithLines(at, own, body, read)
  }

  async #callWithLines<Value>(
    at: AtVendor,
    own: Pick<NativeCall, 'method' | 'path' | 'headers'>,
    form: LinesBody,
    read: (answer: WireAnswer) => Value | undefined,
  ): Promise<TaskResponse<Value>> {
    const body = linesBody(this.#settings, linesId(this.#task.id), form, at.plan)
    return await callVendor(this.#context, at, { ...own, body, timeoutMs: UPLOAD_TIMEOUT_MS }, read)
  }

  #named({ plan }: Pick<AtVendor, 'plan'>): Record<string, unknown> {
    const { id: taskId, details } = this.#task
    return { requestId: details.requestId, taskId, vendor: plan.vendor, model: plan.model }
  }

  /** One line, and an event where the operator must act. */
  #warn(text: string, at: AtVendor, response: Unanswered): void {
    const named = this.#named(at)
    if (response.kind === 'unreachable') {
      this.#context.logger.warn(text, { ...named, reason: response.reason })
      return
    }
    const { kind: reason, status, code, message } = response.failure
    const { requestId } = this.#task.details
    if (reason === 'operator')
      emit(this.#context, { type: 'vendor-account-problem', requestId, vendor: at.vendor.id, status, code, message })
    this.#context.logger.warn(text, { ...named, reason, status, vendorCode: code, vendorMessage: message })
  }
}

type Unanswered = Exclude<TaskResponse<unknown>, { kind: 'answer' }>

function reasonOf(response: Unanswered): string {
  return response.kind === 'unreachable' ? response.reason : `${response.failure.kind} ${response.failure.status}`
}

/** May the vendor have taken what was sent all the same? */
function mayHaveBegun(response: Unanswered): boolean {
  return response.kind === 'unreachable' ? response.wasSent : failureOfVendor(response.failure).mayHaveBegun
}

/** May it go better in a moment? */
function mayPass(response: Unanswered): boolean {
  if (response.kind === 'unreachable') return true
  const { kind } = response.failure
  return kind === 'rate_limited' || kind === 'unavailable' || kind === 'timeout'
}
