import { Buffer } from 'node:buffer'
import { endOfTurn } from '../../core/calls-in-flight.ts'
import { GatewayError } from '../../core/errors.ts'
import type { LinesBody, NativeBatches, NativeCall } from '../../endpoints/batches.ts'
import type { WireAnswer, WireRequest } from '../../endpoints/operation.ts'
import type { Ask } from '../../pipeline/completion.ts'
import type { Routed } from '../../pipeline/dispatch.ts'
import { failureOfVendor } from '../../pipeline/error-classification.ts'
import type { BatchSettings, PipelineContext } from '../../pipeline/pipeline-context.ts'
import { prepareOperation } from '../../pipeline/prepare-operation.ts'
import type { RouteCandidate } from '../../routing/candidate.ts'
import type { StreamedBody } from '../../transport/transport.ts'
import { joinChunks } from '../../wire/chunks.ts'
import {
  type CalledVendor,
  callVendor,
  type InternalCall,
  reportUnanswered,
  type TaskNames,
  type TaskResponse,
  type Unanswered,
} from '../call-vendor.ts'
import { type BatchEnd, type BatchJob, factsOf, keepOutcome, outcomesExpireAtMs } from './batch-record.ts'
import { journalId, linesId, type PlannedRequest, plannedRequests } from './lines.ts'
import { RequestRun } from './request-run.ts'

/** Maximum duration of an upload, or of a creation with its requests, in milliseconds. */
const UPLOAD_TIMEOUT_MS = 30 * 60_000

/** Maximum lag of a vendor's clock, in milliseconds. */
const CLOCK_SKEW_MS = 10 * 60_000
/** Maximum number of pages of a vendor's batches that one search reads. */
const MAX_PAGES = 20

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

  #bodyOf(body: string | LinesBody): Pick<InternalCall, 'body' | 'timeoutMs'> {
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
    for (let page = 0; page < MAX_PAGES; page++) {
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

/** Number of requests that are captured before other work gets a turn of the event loop. */
const CAPTURED_PER_TURN = 20

/** Why a batch cannot go to a vendor's batch API. Its requests become ordinary calls. */
export class NotNative extends Error {}

/** Thrown instead of calling the vendor: only the request was needed. */
const CAPTURED = new GatewayError('upstream_unavailable', { message: 'The request was captured and not sent.' })

/** Input of a capture. */
export interface Capture {
  /** Lines that have an outcome. */
  readonly ended: ReadonlySet<number>
  readonly isStopped: () => boolean
}

/**
 * Runs each request up to its call of a vendor and writes that call as a line for the vendor's batch API, so that the same
 * translators serve single calls and batches. The lines go to the store one by one.
 * @returns `undefined` if the translator has already ended each request.
 * @throws NotNative, GatewayError for a temporary fault, and whatever the stores throw.
 */
export async function captureRequests(job: BatchJob, capture: Capture): Promise<NativePlan | undefined> {
  const lines = new CapturedLines(job, capture)
  const { task } = job
  const blob = { id: linesId(task.id), expiresAtMs: factsOf(task).expiresAtMs + KEPT_MS }
  const byteLength = await job.settings.blobs.put(blob, lines.bytes())
  return lines.planOf(byteLength)
}

/** Lifetime of the lines if their deletion at the end of the batch fails. */
const KEPT_MS = 2 * 24 * 60 * 60_000

/** Returns the id of a request at the vendor. The caller's own id could contain anything. */
export function customIdOf(line: number): string {
  return `r${line}`
}

/** Returns the line number of an id from {@link customIdOf}, or `undefined` for any other id. */
export function lineOf(customId: string): number | undefined {
  return /^r\d{1,9}$/.test(customId) ? Number(customId.slice(1)) : undefined
}

class CapturedLines {
  readonly #job: BatchJob
  readonly #capture: Capture
  #chosen: { readonly candidate: RouteCandidate; readonly path: string } | undefined
  #requests = 0
  #byteLength = 0

  constructor(job: BatchJob, capture: Capture) {
    this.#job = job
    this.#capture = capture
  }

  planOf(byteLength: number): NativePlan | undefined {
    if (this.#chosen === undefined) return undefined
    const { path, candidate } = this.#chosen
    const { credentialId, model, vendor } = candidate
    const { id, upstream } = model
    return { vendor: vendor.id, credentialId, model: id, upstream, path, requests: this.#requests, byteLength }
  }

  async *bytes(): AsyncIterable<Uint8Array> {
    const { ended, isStopped } = this.#capture
    let turn = 0
    for await (const { line, planned } of plannedRequests(this.#job.settings, this.#job.task.id)) {
      if (ended.has(line)) continue
      if (isStopped()) throw new NotNative('it was stopped')
      if (++turn % CAPTURED_PER_TURN === 0) await endOfTurn()
      const body = await this.#captured(line, planned)
      if (body === undefined) continue
      const { candidate, path } = this.#chosen!
      const { limits, line: lineText } = candidate.vendor.batches!
      const bytes = Buffer.from(`${lineText({ customId: customIdOf(line), path, body })}\n`)
      this.#requests++
      this.#byteLength += bytes.byteLength
      if (
        this.#requests > limits.maxRequests ||
        bytes.byteLength > limits.maxLineBytes ||
        this.#byteLength > limits.maxBytes
      )
        throw new NotNative('it is larger than the vendor accepts')
      yield bytes
    }
  }

  /** Returns the body of a request in the vendor's format, or `undefined` if the request has an outcome now. */
  async #captured(line: number, planned: PlannedRequest): Promise<string | undefined> {
    let body: string | undefined
    let obstacle: NotNative | undefined
    const ask: Ask = async (context, routed) => {
      try {
        body = await this.#bodyOf(context, routed)
      } catch (error) {
        if (error instanceof NotNative) obstacle = error
        else throw error
      }
      throw CAPTURED
    }
    const result = await new RequestRun(this.#job, { planned, line, ask }).run()
    if (obstacle !== undefined) throw obstacle
    if (body !== undefined) return body
    if (result.kind === 'again') throw result.error
    if (result.kind === 'ended') await keepOutcome(this.#job, result.outcome)
    return undefined
  }

  async #bodyOf(context: PipelineContext, routed: Routed): Promise<string> {
    const { call, candidates } = routed
    // A fallback model is not tried before the model itself has failed.
    const able = candidates.filter(
      ({ model, vendor }) => model.id === call.chain[0]?.id && vendor.batches !== undefined,
    )
    const chosen = this.#chosen?.candidate
    const candidate =
      chosen === undefined ? able[0] : able.find(({ key, model }) => key === chosen.key && model.id === chosen.model.id)
    if (candidate === undefined) throw new NotNative('no vendor of the model has a batch API')
    if (call.endpoint.remoteMedia?.(call.body, candidate.vendor, candidate.model) !== undefined)
      throw new NotNative('the vendor accepts only images as bytes')
    const wire = await wireOf(context, { call, candidates }, candidate)
    const body = oneLine(wire.body)
    if (body === undefined || candidate.vendor.batches?.takes(wire) !== true)
      throw new NotNative('the vendor does not accept such requests in a batch')
    this.#chosen ??= { candidate, path: wire.path }
    if (this.#chosen.path !== wire.path) throw new NotNative('its requests have several paths at the vendor')
    return body
  }
}

/** @throws NotNative, and GatewayError of the translator if there is no other vendor. */
async function wireOf(
  context: PipelineContext,
  { call, candidates }: Routed,
  candidate: RouteCandidate,
): Promise<WireRequest> {
  try {
    const { requests } = await prepareOperation(context, call, candidate)
    const [wire] = requests
    if (wire === undefined || requests.length > 1) throw new NotNative('a request of it is several calls at the vendor')
    return wire
  } catch (error) {
    // An ordinary call can be tried at the other vendors.
    const hasOthers = candidates.some(({ vendor }) => vendor !== candidate.vendor)
    throw hasOthers && GatewayError.isInstance(error)
      ? new NotNative('the vendor does not accept a request of it')
      : error
  }
}

/** Returns JSON text in one line, or `undefined` if the body is a form. */
function oneLine(body: WireRequest['body']): string | undefined {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return undefined
  const text = typeof body === 'string' ? body : Buffer.from(joinChunks([body])).toString()
  // JSON strings contain no line breaks, so every line break here is between tokens.
  return text.startsWith('{') ? text.replaceAll(/[\r\n]+/g, ' ') : undefined
}
