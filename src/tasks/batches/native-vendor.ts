import type { LinesBody, NativeBatches, NativeCall } from '../../endpoints/native-batches.ts'
import type { WireAnswer } from '../../endpoints/operation.ts'
import { failureOfVendor } from '../../pipeline/error-classification.ts'
import { type BatchSettings, emit, type PipelineContext } from '../../pipeline/pipeline-context.ts'
import { TEXT_LEFT_OUT } from '../../pipeline/quoted-prompts.ts'
import type { TaskRecord } from '../../stores/task-store.ts'
import { type CalledVendor, callVendor, type OwnCall, type TaskResponse } from '../call-vendor.ts'
import { linesBody } from './lines-body.ts'
import { linesId, type NativePlan } from './native-journal.ts'

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

/** Response without a usable answer. */
export type Unanswered = Exclude<TaskResponse<unknown>, { kind: 'answer' }>

/** Vendor of one batch, and the calls to it. */
export class NativeVendor {
  readonly called: BatchVendor
  readonly plan: NativePlan
  readonly #context: PipelineContext
  readonly #settings: BatchSettings
  readonly #task: TaskRecord

  constructor(
    context: PipelineContext,
    settings: BatchSettings,
    { task, plan, called }: { readonly task: TaskRecord; readonly plan: NativePlan; readonly called: BatchVendor },
  ) {
    this.#context = context
    this.#settings = settings
    this.#task = task
    this.plan = plan
    this.called = called
  }

  get batches(): NativeBatches {
    return this.called.batches
  }

  /** Fields of log lines. */
  get named(): Record<string, unknown> {
    const { id: taskId, details } = this.#task
    return { requestId: details.requestId, taskId, vendor: this.plan.vendor, model: this.plan.model }
  }

  /** Sends a call. Lines of the batch are read from the store while they are sent. */
  call<Value>(
    { method, path, headers, body }: NativeCall,
    read: (answer: WireAnswer) => Value | undefined,
  ): Promise<TaskResponse<Value>> {
    const own = { method, path, headers }
    return callVendor(this.#context, this.called, body === null ? own : { ...own, ...this.#bodyOf(body) }, read)
  }

  #bodyOf(body: string | LinesBody): Pick<OwnCall, 'body' | 'timeoutMs'> {
    if (typeof body === 'string') return { body: () => body }
    const lines = linesBody(this.#settings, linesId(this.#task.id), body, this.plan)
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
    if (response.kind === 'unreachable') {
      this.#context.logger.warn(text, { ...this.named, reason: response.reason })
      return
    }
    // The vendor stores the prompts in a file, so quotes of them cannot be found.
    const message = TEXT_LEFT_OUT
    const { kind: reason, status, code } = response.failure
    const { requestId } = this.#task.details
    const vendor = this.plan.vendor
    if (reason === 'operator')
      emit(this.#context, { type: 'vendor-account-problem', requestId, vendor, status, code, message })
    this.#context.logger.warn(text, { ...this.named, reason, status, vendorCode: code })
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
