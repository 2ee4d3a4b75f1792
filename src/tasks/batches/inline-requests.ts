import { Buffer } from 'node:buffer'
import { DetailedError } from '../../core/detailed-error.ts'
import { GatewayError } from '../../core/errors.ts'
import { readExactCallerJson } from '../../core/exact-json.ts'
import { bodyPieces, type GatewayRequest } from '../../core/exchange.ts'
import { isJsonObject, parseCallerJson } from '../../core/json.ts'
import type { InlineBatches, InlineResult } from '../../endpoints/batches.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import { invalidField } from '../../endpoints/field-errors.ts'
import { pageSizeOf } from '../../endpoints/file-dialect.ts'
import { checkEndpointScope } from '../../pipeline/authenticate.ts'
import { streamedClaimOf } from '../../pipeline/parse.ts'
import type { BatchSettings, PipelineContext } from '../../pipeline/pipeline-context.ts'
import { respondJson } from '../../pipeline/respond.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../../stores/task-store.ts'
import { asBuffer, joinChunks } from '../../wire/chunks.ts'
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../wire/json-cursor.ts'
import { findMembers } from '../../wire/json-edits.ts'
import { sendPieces } from '../download.ts'
import { isTaskId, pageOf } from '../task-requests.ts'
import { factsOf, inlineState, isInline } from './batch-record.ts'
import { type BatchService, requireJson, respondSubmitted, webhookUrlOf } from './batch-requests.ts'
import { CANCELLED, cancelBatch, EXPIRED } from './batch-runner.ts'
import { type BatchRequest, checkCaller, findFile } from './files.ts'
import { type LineFault, linesOf, TOO_LONG, type WrittenRequest } from './lines.ts'
import { type BatchSubmission, submitBatch } from './submit-batch.ts'

/**
 * Answers a request about the batches of an endpoint's own API, whose requests come with the submission. In all other respects
 * they work like batches from files. An account sees only its own batches; foreign, unknown, deleted and malformed ids get
 * identical responses.
 * @throws GatewayError `permission_denied` for a key that may not use batches or the endpoint, `batch_not_found`,
 *   `batch_not_ended`, `task_not_cancellable`, `file_not_found` for results that are gone, `rate_limited`, the errors of {@link
 *   submitInline}, and `store_unavailable`.
 */
export async function serveInlineBatchRequest(
  context: PipelineContext,
  service: BatchService,
  asked: InlineBatchRequest,
): Promise<void> {
  const { request, sink, requestId, principal, segments, endpoint, dialect } = asked
  await checkCaller(context, principal)
  checkEndpointScope(principal, endpoint.id)
  try {
    const [id, action] = segments
    if (id === undefined) {
      if (request.method !== 'POST') return respondJson(sink, requestId, await listBatches(context, service, asked))
      return respondSubmitted(service, asked, await submitInline(context, service.settings, asked))
    }
    const task = await findBatch(context, asked, id)
    if (action === 'results') return await sendResults(context, service, asked, task)
    if (request.method === 'DELETE') {
      await deleteBatch(context, service, task)
      return respondJson(sink, requestId, dialect.deleted(task.id))
    }
    const found = action === 'cancel' ? await cancelBatch(context, service.runner, task) : task
    respondJson(sink, requestId, dialect.record(stateOf(context, service, asked, found)))
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? cause : new GatewayError('store_unavailable', { cause })
  }
}

function isOwn({ endpoint }: InlineBatchRequest, task: TaskRecord): boolean {
  if (!isInline(task)) return false
  const { endpoint: path, deletedAtMs } = factsOf(task)
  return path === endpoint.path && deletedAtMs === null
}

async function findBatch({ store }: PipelineContext, asked: InlineBatchRequest, id: string): Promise<TaskRecord> {
  const { principal, dialect } = asked
  const isId = id.startsWith(`${dialect.idPrefix}_`) && isTaskId(id)
  const task = isId ? await store.tasks.find(principal.accountId, id) : undefined
  // Stores also find tasks by the ids of vendors.
  if (task?.id !== id || !isOwn(asked, task)) throw new GatewayError('batch_not_found')
  return task
}

function stateOf(
  { clock }: PipelineContext,
  { settings }: BatchService,
  { request, dialect }: InlineBatchRequest,
  task: TaskRecord,
) {
  const { end, endedAtMs } = factsOf(task)
  if (end === null || endedAtMs === null) return inlineState(task, clock.now())
  const url = publicUrl(request, `${dialect.path}/${task.id}/results`)
  return inlineState(task, clock.now(), { url, untilMs: endedAtMs + settings.retentionMs })
}

async function listBatches(
  context: PipelineContext,
  service: BatchService,
  asked: InlineBatchRequest,
): Promise<object> {
  const { principal, request, dialect } = asked
  const parameters = new URLSearchParams(request.query)
  const page = await pageOf(context, principal.accountId, (task) => isOwn(asked, task), {
    limit: pageSizeOf(parameters, Math.min(20, dialect.maxPage), dialect.maxPage),
    after: parameters.get(dialect.cursors.after) ?? undefined,
    before: parameters.get(dialect.cursors.before) ?? undefined,
  })
  const batches = page.tasks.map((task) => stateOf(context, service, asked, task))
  return dialect.list({ batches, hasMore: page.hasMore })
}

/** Results are deleted first: if the deletion is interrupted, it can be requested again. */
async function deleteBatch(context: PipelineContext, { settings }: BatchService, task: TaskRecord): Promise<void> {
  assertEnded(task)
  for (const id of fileIdsOf(task)) {
    await settings.files.delete(task.accountId, id)
    await settings.blobs.delete(id)
  }
  const nowMs = context.clock.now()
  const details = { ...task.details, facts: { ...factsOf(task), deletedAtMs: nowMs } }
  await context.store.tasks.change({ id: task.id, from: [task.state], set: { details } }, nowMs)
}

async function sendResults(
  context: PipelineContext,
  { settings }: BatchService,
  { sink, requestId, principal, dialect }: InlineBatchRequest,
  task: TaskRecord,
): Promise<void> {
  assertEnded(task)
  const fileIds = fileIdsOf(task)
  if (fileIds.length === 0) throw new GatewayError('file_not_found')
  for (const id of fileIds) await findFile(context, settings, principal.accountId, id)
  const headers = ['content-type', dialect.resultsType, 'x-request-id', requestId]
  // The text comes from callers and vendors, so no browser should treat it as a page.
  headers.push('x-content-type-options', 'nosniff', 'content-disposition', 'attachment')
  await sendPieces(sink, { headers }, inlineResults(settings, dialect, fileIds))
}

function fileIdsOf(task: TaskRecord): readonly string[] {
  const { outputFileId, errorFileId } = factsOf(task)
  return [outputFileId, errorFileId].filter((id) => id !== null)
}

function assertEnded({ state }: TaskRecord): void {
  if (OPEN_TASK_STATES.includes(state)) throw new GatewayError('batch_not_ended')
}

/** Maximum number of bytes of a submission outside of its requests. */
const REST_BYTES = 64 * 1024

/** Maximum number of faults in a message; its details list all of them. */
const MAX_TOLD = 20

const INVALID = 'invalid_batch_request'

/** Codes of faults that do not concern the body of a request. */
const REQUEST_LEVEL_CODES: ReadonlySet<string> = new Set([INVALID, 'duplicate_custom_id'])

/** Request about batches of an endpoint. */
interface InlineBatchRequest extends BatchRequest {
  readonly endpoint: Endpoint
  readonly dialect: InlineBatches
}

/**
 * Submits the batch of a request: its body is split into the requests while it arrives.
 * @throws GatewayError as {@link submitBatch} does, `account_frozen`, `unsupported_media_type`, `body_too_large`, `invalid_json`,
 *   and `invalid_request` that lists every fault by the index of its request.
 */
async function submitInline(
  context: PipelineContext,
  settings: BatchSettings,
  { request, requestId, principal, endpoint, dialect }: InlineBatchRequest,
): ReturnType<typeof submitBatch> {
  requireJson(request, principal)
  const claim = streamedClaimOf(context, request, { accountId: principal.accountId, requestId })
  const maxItemBytes = context.bodyLimitBytes
  const { listMember: member } = dialect
  const splitter = new ListSplitter({ member, maxItemBytes, maxRestBytes: REST_BYTES })
  let webhookUrl: unknown
  async function* requests(): BatchSubmission['requests'] {
    let line = 0
    for await (const piece of bodyPieces(request, settings.maxFileBytes)) {
      claim?.add(piece)
      for (const item of splitter.push(piece)) {
        yield { line, request: readItem(dialect, item, { line, maxBytes: maxItemBytes }) }
        line++
      }
    }
    webhookUrl = readRest(dialect, splitter.rest())
  }
  return await submitBatch(context, settings, {
    endpoint,
    principal,
    requestId,
    idPrefix: dialect.idPrefix,
    inputFileId: null,
    metadata: null,
    requests: requests(),
    rest: async () => ({
      claim: claim?.end(),
      webhookUrl: await webhookUrlOf(context, principal.accountId, webhookUrl),
    }),
    refusal: (faults) => refusalOf(dialect, faults),
  })
}

/** @throws GatewayError `invalid_json`: one malformed item makes the whole text malformed. */
function readItem(
  dialect: InlineBatches,
  item: Uint8Array | typeof TOO_LONG,
  { line, maxBytes }: { readonly line: number; readonly maxBytes: number },
): WrittenRequest | LineFault {
  const fault = (code: string, param: string | null, message: string): LineFault => ({ code, line, message, param })
  if (item === TOO_LONG) return fault('request_too_large', null, `has more than ${maxBytes} bytes`)
  let value: unknown
  try {
    value = readExactCallerJson(item, new Map([[dialect.bodyMember, 'text']])).value
  } catch (cause) {
    const error = GatewayError.from(cause)
    if (error.code === 'invalid_json') throw error
    return fault(error.publicCode, null, error.message)
  }
  const read = dialect.readRequest(value)
  return 'customId' in read ? read : fault(INVALID, read.param, read.reason)
}

/**
 * Returns the webhook address for the end of the batch.
 * @throws GatewayError `invalid_json`, and `invalid_request` for a body that has no list of requests or an unknown member.
 */
function readRest({ listMember }: InlineBatches, rest: Uint8Array): unknown {
  const body = parseCallerJson(rest)
  if (!isJsonObject(body)) throw new GatewayError('invalid_request', { message: 'The request body: expected object' })
  const { [listMember]: list, webhook_url: webhookUrl, ...others } = body
  if (!Array.isArray(list)) throw invalidField(listMember, 'expected a list')
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw invalidField(unknown.slice(0, 64), 'is not known here')
  return webhookUrl
}

/** One error for all faults, each by the index of its request, counted from 0. */
function refusalOf({ listMember, bodyMember }: InlineBatches, faults: readonly LineFault[]): GatewayError {
  const errors = faults.map(({ line, code, message, param }) => {
    const own = param === null ? message : message.replace(`${param}: `, '')
    const inside = param === null ? '' : REQUEST_LEVEL_CODES.has(code) ? `.${param}` : `.${bodyMember}.${param}`
    const place = line === null ? listMember : `${listMember}.${line}${inside}`
    return { index: line, code, param: place, message: own }
  })
  const told = errors.slice(0, MAX_TOLD).map(({ param, message }) => `${param}: ${message}`)
  if (errors.length > MAX_TOLD) told.push(`and ${errors.length - MAX_TOLD} more`)
  return new DetailedError('invalid_request', { message: told.join('; '), param: errors[0]!.param }, { errors })
}

const SPACE = 0x20
const MAX_NAME = 128

/** List of a JSON object to split, and the size limits. */
export interface ListSplit {
  readonly member: string
  /** Maximum size of an item. A larger item becomes {@link TOO_LONG}, without its bytes. */
  readonly maxItemBytes: number
  /** Maximum number of bytes outside of the list. */
  readonly maxRestBytes: number
}

/**
 * Splits a JSON object at one of its lists while its bytes arrive: yields the items one by one, and keeps the rest of the text,
 * with an empty list. The whole text is valid JSON exactly if each item and the rest are; the reader parses both.
 */
export class ListSplitter {
  readonly #split: ListSplit
  #rest: Uint8Array[] = []
  #restBytes = 0
  #item: Uint8Array[] = []
  #itemBytes = 0
  #isBlank = true
  #items = 0
  #depth = 0
  #isInString = false
  #isEscaped = false
  #isInList = false
  #hadList = false
  /** Text of the last string directly inside the object, one character per byte. */
  #name = ''
  /** Whether the value of the member comes next. */
  #isValue = false

  constructor(split: ListSplit) {
    this.#split = split
  }

  /**
   * Yields the items that end in a chunk.
   * @throws GatewayError `invalid_request` for a second list of the name, and for too many bytes outside of the list.
   */
  *push(piece: Uint8Array): Iterable<Uint8Array | typeof TOO_LONG> {
    let start = 0
    for (let at = 0; at < piece.length; at++) {
      if (this.#isInString) {
        // Names are read byte by byte; an overlong string is never a name.
        if (this.#depth !== 1 && !this.#isEscaped) at = endOfPlainText(piece, at)
        if (at < piece.length) this.#inString(piece[at]!)
        continue
      }
      const byte = piece[at]!
      if (byte <= SPACE) continue
      const isItem = this.#isInList && this.#depth === 2
      if (isItem && (byte === COMMA || byte === CLOSE_BRACKET)) {
        this.#keepItem(piece, start, at)
        // An empty list has no item, and `[1,]` has an empty one.
        if (byte === COMMA || this.#items > 0 || !this.#isBlank) yield this.#takeItem()
        start = byte === COMMA ? at + 1 : at
        if (byte === CLOSE_BRACKET) this.#isInList = false
        else continue
      }
      if (this.#isInList) this.#isBlank = false
      if (this.#opensList(byte)) {
        this.#keepRest(piece, start, at + 1)
        start = at + 1
      }
      this.#walk(byte)
    }
    if (this.#isInList) this.#keepItem(piece, start, piece.length)
    else this.#keepRest(piece, start, piece.length)
  }

  /** Returns the text without its items. */
  rest(): Uint8Array {
    return joinChunks(this.#rest)
  }

  #inString(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (byte === BACKSLASH) this.#isEscaped = true
    else if (byte === QUOTE) {
      this.#isInString = false
      return
    }
    if (this.#depth === 1 && this.#name.length < MAX_NAME) this.#name += String.fromCharCode(byte)
  }

  #opensList(byte: number): boolean {
    if (!this.#isValue || byte !== OPEN_BRACKET || this.#depth !== 1) return false
    const { member } = this.#split
    if (this.#hadList) throw invalidField(member, 'is given twice')
    this.#hadList = true
    this.#isInList = true
    return true
  }

  #walk(byte: number): void {
    this.#isValue = false
    switch (byte) {
      case QUOTE:
        this.#isInString = true
        if (this.#depth === 1) this.#name = ''
        break
      case COLON:
        this.#isValue = this.#depth === 1 && nameOf(this.#name) === this.#split.member
        break
      case OPEN_BRACE:
      case OPEN_BRACKET:
        this.#depth++
        break
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        this.#depth--
    }
  }

  #keepItem(piece: Uint8Array, start: number, end: number): void {
    this.#itemBytes += end - start
    // The bytes of an oversized item are not kept.
    if (this.#itemBytes <= this.#split.maxItemBytes) this.#item.push(piece.subarray(start, end))
    else this.#item = []
  }

  #takeItem(): Uint8Array | typeof TOO_LONG {
    const item = this.#itemBytes > this.#split.maxItemBytes ? TOO_LONG : joinChunks(this.#item)
    this.#item = []
    this.#itemBytes = 0
    this.#isBlank = true
    this.#items++
    return item
  }

  #keepRest(piece: Uint8Array, start: number, end: number): void {
    this.#restBytes += end - start
    const { member, maxRestBytes } = this.#split
    if (this.#restBytes > maxRestBytes)
      throw new GatewayError('invalid_request', {
        message: `The body may have at most ${maxRestBytes} bytes outside of ${member}`,
      })
    this.#rest.push(piece.subarray(start, end))
  }
}

/** Position of the next quote or backslash, or the length of the chunk if there is none. */
function endOfPlainText(piece: Uint8Array, start: number): number {
  let at = start
  while (at < piece.length && piece[at] !== QUOTE && piece[at] !== BACKSLASH) at++
  return at
}

/** Decodes the escapes of a member's name. */
function nameOf(written: string): string {
  if (!written.includes('\\')) return written
  try {
    return String(JSON.parse(`"${Buffer.from(written, 'latin1').toString()}"`))
  } catch {
    return written
  }
}

/**
 * Returns the URL of a path of the gateway as the caller reaches it. Host and mount come from the request, and the scheme from
 * `x-forwarded-proto` if a proxy sets it. Returns only the path if the host is not known.
 */
function publicUrl(request: GatewayRequest, path: string): string {
  const { originalPath = request.path } = request
  const mount = originalPath.endsWith(request.path) ? originalPath.slice(0, -request.path.length) : ''
  return `${originOf(request)}${mount}${path}`
}

const SCHEME = /^\s*(https?)\s*(?:,|$)/i

function originOf(request: GatewayRequest): string {
  const { origin = '' } = request
  if (!URL.canParse(origin)) return ''
  const url = new URL(origin)
  const scheme = SCHEME.exec(request.header('x-forwarded-proto') ?? '')?.[1]
  if (scheme !== undefined) url.protocol = scheme.toLowerCase()
  return url.origin
}

/** Yields the results of a batch in its dialect, read from the batch's output files. Answers are passed on byte for byte. */
async function* inlineResults(
  { blobs }: BatchSettings,
  dialect: InlineBatches,
  fileIds: readonly string[],
): AsyncIterable<string> {
  for (const id of fileIds) {
    const blob = await blobs.get(id)
    if (blob === undefined) throw new Error(`the bytes of the file ${id} are gone`)
    for await (const bytes of linesOf(blob.content, Number.MAX_SAFE_INTEGER)) {
      if (bytes !== TOO_LONG && bytes.byteLength > 0) yield `${resultLine(dialect, asBuffer(bytes))}\n`
    }
  }
}

function resultLine(dialect: InlineBatches, line: Buffer): string {
  const { custom_id: id, response, error } = findMembers(line, ['custom_id', 'response', 'error'])
  const textOf = (span: { readonly start: number; readonly end: number } | undefined): string =>
    span === undefined ? 'null' : line.toString('utf8', span.start, span.end)
  const customId = JSON.parse(textOf(id)) as string
  const answer = response && line.subarray(response.start, response.end)
  const { status_code: status, body } = answer ? findMembers(answer, ['status_code', 'body']) : {}
  if (answer === undefined || status === undefined || body === undefined)
    return dialect.resultLine(customId, notAnswered(dialect, JSON.parse(textOf(error))))
  const isAnswered = Number(answer.toString('latin1', status.start, status.end)) < 300
  const text = answer.toString('utf8', body.start, body.end)
  return dialect.resultLine(customId, { kind: isAnswered ? 'answered' : 'failed', body: text })
}

/** Formats a request without an answer: it was never executed, or its vendor returned only an error. */
function notAnswered(dialect: InlineBatches, error: unknown): InlineResult {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown }
  if (code === CANCELLED) return { kind: 'cancelled' }
  if (code === EXPIRED) return { kind: 'expired' }
  const told = new GatewayError('upstream_unavailable', typeof message === 'string' ? { message } : {})
  return { kind: 'failed', body: dialect.errorText(told, '') }
}
