import { Buffer } from 'node:buffer'
import type { LinesBody, NativeBatches, NativeCall } from '../../endpoints/batches.ts'
import type { WireAnswer } from '../../endpoints/operation.ts'
import { failureOfVendor } from '../../pipeline/error-classification.ts'
import type { BatchSettings } from '../../pipeline/pipeline-context.ts'
import type { StreamedBody } from '../../transport/transport.ts'
import {
  type CalledVendor,
  callVendor,
  type OwnCall,
  reportUnanswered,
  type TaskNames,
  type TaskResponse,
  type Unanswered,
} from '../call-vendor.ts'
import { type BatchEnd, type BatchJob, outcomesExpireAtMs } from './batch-record.ts'

/** Maximum duration of an upload, or of a creation with its requests, in milliseconds. */
const UPLOAD_TIMEOUT_MS = 30 * 60_000

/** Maximum lag of a vendor's clock, in milliseconds. */
const CLOCK_SKEW_MS = 10 * 60_000
/** Maximum number of pages of a vendor's batches that one search reads. */
const MOST_PAGES = 20

/** Vendor with a batch API, and the key for its calls. */
export interface BatchVendor extends CalledVendor {
  readonly batches: NativeBatches
  /** Whether this is another key than the one that the batch was captured for. It may belong to another account. */
  readonly isSubstitute: boolean
}

/** Vendor of one batch, and the calls to it. */
export class NativeVendor {
  readonly called: BatchVendor
  readonly plan: NativePlan
  readonly #job: BatchJob

  constructor(job: BatchJob, plan: NativePlan, called: BatchVendor) {
    this.#job = job
    this.plan = plan
    this.called = called
  }

  get batches(): NativeBatches {
    return this.called.batches
  }

  /** Fields of log lines. */
  get named(): TaskNames {
    const { id: taskId, details } = this.#job.task
    return { requestId: details.requestId, taskId, vendor: this.plan.vendor, model: this.plan.model }
  }

  /** Sends a call. Lines of the batch are read from the store while they are sent. */
  call<Value>(
    { method, path, headers, body }: NativeCall,
    read: (answer: WireAnswer) => Value | undefined,
  ): Promise<TaskResponse<Value>> {
    const own = { method, path, headers }
    return callVendor(this.#job.context, this.called, body === null ? own : { ...own, ...this.#bodyOf(body) }, read)
  }

  #bodyOf(body: string | LinesBody): Pick<OwnCall, 'body' | 'timeoutMs'> {
    if (typeof body === 'string') return { body: () => body }
    const lines = linesBody(this.#job.settings, linesId(this.#job.task.id), body, this.plan)
    return { body: lines, timeoutMs: UPLOAD_TIMEOUT_MS }
  }

  /**
   * Searches for a batch by its name, among those created since the time at which its creation was sent. If the result has
   * `after`, the batch may be on a later page.
   */
  async find(
    name: string,
    sentAtMs: number,
  ): Promise<TaskResponse<{ readonly batchId?: string | undefined; readonly after?: string | undefined }>> {
    const { search } = this.batches
    if (search === undefined) throw new TypeError('the batches of this vendor cannot be found by their names')
    const sought = { name, sinceMs: sentAtMs - CLOCK_SKEW_MS }
    let after: string | undefined
    for (let page = 0; page < MOST_PAGES; page++) {
      const call = search.call(after, this.called.apiKey)
      const found = await this.call(call, (answer) => search.read(answer, sought))
      if (found.kind !== 'answer' || found.value.batchId !== undefined) return found
      after = found.value.after
      if (after === undefined) break
    }
    return { kind: 'answer', value: { after } }
  }

  /** Deletes the files that the vendor stores, with one attempt each. A failed deletion is logged for the operator. */
  async remove(kept: Parameters<NativeBatches['remove']>[0]): Promise<void> {
    for (const call of this.batches.remove(kept, this.called.apiKey)) {
      const removed = await this.call(call, () => true)
      if (removed.kind === 'answer' || (removed.kind === 'refused' && removed.failure.status === 404)) continue
      this.warn('a vendor did not delete the files of a batch', removed)
    }
  }

  /** Logs one line, and emits an event if the operator must act. */
  warn(text: string, response: Unanswered): void {
    reportUnanswered(this.#job.context, this.named, text, response)
  }
}

/** Short reason for a call without an answer. */
export function reasonOf(response: Unanswered): string {
  return response.kind === 'unreachable' ? response.reason : `${response.failure.kind} ${response.failure.status}`
}

/** Whether the vendor may have accepted the request anyway. */
export function mayHaveBegun(response: Unanswered): boolean {
  return response.kind === 'unreachable' ? response.wasSent : failureOfVendor(response.failure).mayHaveBegun
}

/** Whether a retry may succeed. */
export function mayPass(response: Unanswered): boolean {
  if (response.kind === 'unreachable') return true
  const { kind } = response.failure
  return kind === 'rate_limited' || kind === 'unavailable' || kind === 'timeout'
}

const NEWLINE = 0x0a

/**
 * Creates a body from lines in the store, again for each try.
 * @param id Blob with the lines; each ends with a line break.
 */
function linesBody(
  { blobs }: BatchSettings,
  id: string,
  { before, between, after }: LinesBody,
  { requests, byteLength }: Pick<NativePlan, 'requests' | 'byteLength'>,
): () => StreamedBody {
  const betweens = Buffer.byteLength(between) * (requests - 1)
  const lineBytes = byteLength - requests
  const total = Buffer.byteLength(before) + lineBytes + betweens + Buffer.byteLength(after)
  async function* content(): AsyncIterable<Uint8Array> {
    const blob = await blobs.get(id)
    if (blob === undefined) throw new Error(`the lines ${id} are gone`)
    if (before !== '') yield Buffer.from(before)
    const separator = Buffer.from(between)
    let left = requests - 1
    for await (const piece of blob.content) yield joined(piece)
    if (after !== '') yield Buffer.from(after)

    /** Returns the chunk with `between` in place of each line break, except the last one of the file. */
    function joined(piece: Uint8Array): Uint8Array {
      const parts: Uint8Array[] = []
      let start = 0
      for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, start)) {
        parts.push(piece.subarray(start, end))
        if (left-- > 0) parts.push(separator)
        start = end + 1
      }
      parts.push(piece.subarray(start))
      return Buffer.concat(parts)
    }
  }
  return () => ({ byteLength: total, content: content() })
}

/** Contents of a vendor's batch: requests with one path and one model, sent to one vendor with one of the operator's keys. */
export interface NativePlan {
  readonly vendor: string
  readonly credentialId: string
  /** Id of the model in the gateway. */
  readonly model: string
  /** Id of the model at the vendor. */
  readonly upstream: string
  readonly path: string
  /** Number of lines. Each line is one request and ends with a line break, which `bytes` includes. */
  readonly requests: number
  readonly byteLength: number
}

/** Step of a batch at a vendor: done, or about to be done if doing it twice would cost twice. */
export type NativeStep =
  | { readonly step: 'begun' }
  | { readonly step: 'captured'; readonly plan: NativePlan }
  | { readonly step: 'uploaded'; readonly fileId: string }
  /** The next request creates the batch. */
  | { readonly step: 'creating'; readonly atMs: number }
  /** The vendor certainly has no batch. */
  | { readonly step: 'refused'; readonly reason: string }
  | { readonly step: 'created'; readonly batchId: string; readonly atMs: number }
  /** The vendor has accepted the cancellation. */
  | { readonly step: 'cancelling' }
  /** Creation with an unknown outcome: the requests end with an error. */
  | { readonly step: 'lost' }
  /** The gateway no longer waits for the vendor, and reports what the vendor may bill. */
  | { readonly step: 'given-up' }
  /** Each result is an outcome. `rest` decides what happens to requests without one. */
  | { readonly step: 'collected'; readonly rest: BatchEnd | 'paced'; readonly results: readonly string[] }
  /** Requests without an outcome become ordinary calls. */
  | { readonly step: 'paced'; readonly reason: string }

/** Another process continues the batch. */
export class JournalConflict extends Error {}

const PAGE = 100

/**
 * Journal of a batch's steps at its vendor. Each step is a numbered row that can be written only once. If two processes both hold
 * the batch, only one can continue, and after a crash the next process knows every step.
 */
export class NativeJournal {
  readonly #job: BatchJob
  readonly #steps: NativeStep[]

  private constructor(job: BatchJob, steps: NativeStep[]) {
    this.#job = job
    this.#steps = steps
  }

  static async read(job: BatchJob): Promise<NativeJournal> {
    const id = journalId(job.task.id)
    const steps: NativeStep[] = []
    for (;;) {
      const rows = await job.settings.outcomes.page(id, steps.length - 1, PAGE)
      for (const { text } of rows) steps.push(JSON.parse(text) as NativeStep)
      if (rows.length < PAGE) return new NativeJournal(job, steps)
    }
  }

  get isEmpty(): boolean {
    return this.#steps.length === 0
  }

  /** Returns the latest step of a kind, or `undefined` if there is none. */
  latest<Kind extends NativeStep['step']>(kind: Kind): Extract<NativeStep, { step: Kind }> | undefined {
    return this.#steps.findLast((step): step is Extract<NativeStep, { step: Kind }> => step.step === kind)
  }

  count(kind: NativeStep['step']): number {
    return this.#steps.filter(({ step }) => step === kind).length
  }

  /** Creation that was sent, or was about to be sent, and whose outcome is unknown. */
  get openCreation(): { readonly atMs: number } | undefined {
    const last = this.#steps.findLast(({ step }) => step === 'creating' || step === 'refused' || step === 'created')
    return last?.step === 'creating' ? last : undefined
  }

  /** @throws JournalConflict if another process has written a step since this one read it. */
  async append(step: NativeStep): Promise<void> {
    const { settings, task } = this.#job
    const row = { isAnswered: false, text: JSON.stringify(step), usage: undefined, amount: 0n }
    const outcome = { ...row, line: this.#steps.length }
    if (!(await settings.outcomes.add(journalId(task.id), outcome, outcomesExpireAtMs(task))))
      throw new JournalConflict('another process continues the batch')
    this.#steps.push(step)
  }
}

/** Id under which the steps of a batch are stored. */
export function journalId(batchId: string): string {
  return `${batchId}_native`
}

/** Id of the file with the lines for the vendor. */
export function linesId(batchId: string): string {
  return `${batchId}_lines`
}
