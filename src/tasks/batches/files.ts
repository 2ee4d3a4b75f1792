import { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import { type ByteSink, bodyPieces, type GatewayRequest, unreadableBody } from '../../core/exchange.ts'
import { invalidField } from '../../endpoints/field-errors.ts'
import { DEFAULT_FILE_TYPE, type FileDialect, pageSizeOf } from '../../endpoints/file-dialect.ts'
import { checkEndpointScope } from '../../pipeline/authenticate.ts'
import { type StreamedClaim, streamedClaimOf } from '../../pipeline/parse.ts'
import type { BatchSettings, PipelineContext } from '../../pipeline/pipeline-context.ts'
import { countReading, respondJson } from '../../pipeline/respond.ts'
import { answerOnce } from '../../pipeline/stored-objects.ts'
import type { FileRecord } from '../../stores/file-store.ts'
import type { IdempotencyClaim } from '../../stores/idempotency-store.ts'
import type { Principal } from '../../stores/principal.ts'
import { PieceQueue } from '../../wire/chunks.ts'
import { type FileSink, streamForm } from '../../wire/form.ts'
import { mediaType } from '../../wire/headers.ts'
import type { Form } from '../../wire/write-form.ts'
import { sendPieces } from '../download.ts'
import { listObject } from '../task-requests.ts'

/** Id of files and batches in the scopes of keys. */
export const BATCHES_ID = 'batches'

/** A request about files or batches, from an authenticated caller. */
export interface BatchRequest {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly requestId: string
  readonly principal: Principal
  /** Segments after the first part of the path. */
  readonly segments: readonly string[]
}

/**
 * Answers a request about files. An account sees only its own files; foreign, unknown, expired and malformed ids get identical
 * responses.
 * @throws GatewayError `permission_denied` for a key that may not use batches, `file_not_found`, `rate_limited`, the errors of
 *   {@link receiveFile}, `idempotency_in_flight` and `idempotency_mismatch`, and `store_unavailable`.
 */
export async function serveFileRequest(
  context: PipelineContext,
  settings: BatchSettings,
  asked: BatchRequest,
): Promise<void> {
  const { request, sink, requestId, principal, segments } = asked
  const dialect = context.endpoints.filesFor(request) ?? openaiFiles
  await checkCaller(context, principal)
  try {
    const [id, action] = segments
    if (id === undefined && request.method === 'POST') return await uploadFile(context, settings, asked, dialect)
    if (id === undefined) return respondJson(sink, requestId, await listFiles(context, settings, asked, dialect))
    const file = await findFile(context, settings, principal.accountId, id)
    if (action === 'content') return await sendFile(settings, asked, file)
    if (request.method !== 'DELETE') return respondJson(sink, requestId, dialect.record(file))
    if (!(await settings.files.delete(principal.accountId, file.id))) throw new GatewayError('file_not_found')
    context.storedBounds.freed(principal.accountId, 'files')
    await settings.blobs.delete(file.id)
    respondJson(sink, requestId, dialect.deleted(file.id))
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? cause : new GatewayError('store_unavailable', { cause })
  }
}

/** Stores one file for all requests with the same Idempotency-Key. */
async function uploadFile(
  context: PipelineContext,
  settings: BatchSettings,
  asked: BatchRequest,
  dialect: FileDialect,
): Promise<void> {
  const { sink, requestId } = asked
  const { file, claim } = await receiveFile(context, settings, asked, dialect)
  let isKept = false
  try {
    await answerOnce(context, { sink, requestId, claim }, async () => {
      const { accountId, byteLength } = file
      await context.storedBounds.add(accountId, [{ kind: 'files', byteLength }], () => settings.files.save(file))
      isKept = true
      return dialect.record(file)
    })
  } finally {
    if (!isKept) await settings.blobs.delete(file.id)
  }
}

/**
 * Checks the caller's right to use batches, and its rate limit.
 * @throws GatewayError
 */
export async function checkCaller(context: PipelineContext, principal: Principal): Promise<void> {
  checkEndpointScope(principal, BATCHES_ID)
  await countReading(context, principal)
}

/** Format of the gateway's own ids. Any other id is unknown without a look-up in the store. */
const OWN_ID = /^[A-Za-z0-9_-]{1,128}$/

/**
 * Returns a file of the account.
 * @throws GatewayError `file_not_found`
 */
export async function findFile(
  { clock }: PipelineContext,
  { files }: BatchSettings,
  accountId: string,
  id: string,
): Promise<FileRecord> {
  const file = OWN_ID.test(id) ? await files.find(accountId, id, clock.now()) : undefined
  if (file === undefined) throw new GatewayError('file_not_found')
  return file
}

async function listFiles(
  { clock }: PipelineContext,
  { files }: BatchSettings,
  { request, principal: { accountId } }: BatchRequest,
  dialect: FileDialect,
): Promise<object> {
  const { ids, before, order, ...query } = dialect.readList(new URLSearchParams(request.query))
  const nowMs = clock.now()
  if (ids !== undefined) {
    const found = await Promise.all(ids.map((id) => (OWN_ID.test(id) ? files.find(accountId, id, nowMs) : undefined)))
    return dialect.list({ files: found.filter((file) => file !== undefined), hasMore: false })
  }
  if (before === undefined) return dialect.list(await files.list(accountId, { ...query, order }, nowMs))
  // The page before a file is the page after it in the opposite order.
  const opposite = order === 'asc' ? 'desc' : 'asc'
  const page = await files.list(accountId, { ...query, order: opposite, after: before }, nowMs)
  return dialect.list({ ...page, files: page.files.toReversed() })
}

async function sendFile(
  { blobs }: BatchSettings,
  { sink, requestId }: BatchRequest,
  { id, mimeType = DEFAULT_FILE_TYPE }: FileRecord,
): Promise<void> {
  const blob = await blobs.get(id)
  if (blob === undefined) throw new GatewayError('file_not_found')
  const headers = ['content-type', mimeType, 'content-length', String(blob.byteLength), 'x-request-id', requestId]
  // Text of callers and vendors, which no browser should take for a page.
  headers.push('x-content-type-options', 'nosniff', 'content-disposition', 'attachment')
  await sendPieces(sink, { headers }, blob.content)
}

/** Room for the other fields of a form, and for the text between them. */
const FORM_BYTES = 64 * 1024

/** State of an upload in progress. */
interface Upload {
  readonly id: string
  readonly queue: PieceQueue
  filename: string | undefined
  stored: Promise<number> | undefined
}

/** File whose bytes are stored, and which no account owns yet. */
export interface ReceivedFile {
  readonly file: FileRecord
  /** Claim of its Idempotency-Key; `undefined` if the request has none. */
  readonly claim: IdempotencyClaim | undefined
}

/**
 * Stores the bytes of the file of a form while they arrive. Its caller then keeps the file, or deletes its bytes.
 * @throws GatewayError `unsupported_media_type`, `body_too_large`, `client_closed_request`, and `invalid_request` for a form that
 *   cannot be read and fields that the dialect rejects, and `storage_limit_reached`. Nothing is stored then.
 */
async function receiveFile(
  context: PipelineContext,
  settings: BatchSettings,
  { request, requestId, principal: { accountId } }: BatchRequest,
  dialect: FileDialect,
): Promise<ReceivedFile> {
  const contentType = request.header('content-type') ?? ''
  if (mediaType(contentType) !== 'multipart/form-data')
    throw new GatewayError('unsupported_media_type', { message: 'Send the body as Content-Type: multipart/form-data.' })
  const { blobs, maxFileBytes, retentionMs } = settings
  const claim = streamedClaimOf(context, request, { accountId, requestId })
  const nowMs = context.clock.now()
  // Checked before the bytes are stored, and again when the file is.
  const announced = Number(request.header('content-length') ?? 0) - FORM_BYTES
  const byteLength = Math.min(Math.max(0, announced), maxFileBytes)
  await context.storedBounds.add(accountId, [{ kind: 'files', byteLength }], () => undefined)
  const upload: Upload = {
    id: context.ids.next('file'),
    queue: new PieceQueue(),
    filename: undefined,
    stored: undefined,
  }
  const body = bodyPieces(request, maxFileBytes + FORM_BYTES)
  let form: Form
  let fileBytes: number
  try {
    form = await streamForm(contentType, body, {
      sinkOf({ name, filename }) {
        if (name !== 'file' || upload.stored !== undefined)
          throw new GatewayError('invalid_request', {
            message: `${name}: the form accepts one file, in the field file`,
            param: name,
          })
        upload.filename = filename
        upload.stored = blobs.put({ id: upload.id, expiresAtMs: nowMs + retentionMs }, upload.queue)
        // Awaited below, perhaps after the form has failed.
        upload.stored.catch(() => undefined)
        return claim === undefined ? upload.queue : hashedSink(upload.queue, claim)
      },
      drained: () =>
        upload.stored === undefined
          ? Promise.resolve()
          : Promise.race([upload.queue.drained(), failureOf(upload.stored)]),
    })
    if (upload.stored === undefined)
      throw new GatewayError('invalid_request', { message: 'file: the form contains no file', param: 'file' })
    fileBytes = await upload.stored
  } catch (error) {
    upload.queue.fail(error)
    await upload.stored?.catch(() => undefined)
    const isNoForm = upload.stored === undefined && GatewayError.isInstance(error) && error.code === 'invalid_request'
    throw isNoForm ? unreadableBody(request, error) : error
  }
  try {
    if (fileBytes > maxFileBytes)
      throw new GatewayError('body_too_large', {
        message: `The file is larger than ${maxFileBytes} bytes.`,
        param: 'file',
      })
    const { purpose, lifetimeMs = retentionMs } = dialect.readUpload((name) => fieldOf(form, name))
    const filename = upload.filename === '' ? 'upload' : upload.filename!
    const file: FileRecord = {
      id: upload.id,
      accountId,
      purpose,
      filename,
      mimeType: typeOf(form, filename),
      byteLength: fileBytes,
      createdAtMs: nowMs,
      expiresAtMs: nowMs + Math.min(lifetimeMs, retentionMs),
    }
    return { file, claim: claim && claimOfForm(claim, form, fileBytes) }
  } catch (error) {
    await blobs.delete(upload.id)
    throw error
  }
}

function hashedSink(queue: PieceQueue, claim: StreamedClaim): FileSink {
  return {
    push(bytes) {
      claim.add(bytes)
      queue.push(bytes)
    },
    end: () => queue.end(),
  }
}

/**
 * Each upload has a different boundary, so the parts of the form are compared instead of its bytes. The bytes of the file were
 * hashed on arrival.
 */
function claimOfForm(claim: StreamedClaim, form: Form, byteLength: number): IdempotencyClaim {
  const parts = form.map((part) =>
    part.kind === 'field' ? [part.name, part.value] : [part.name, part.filename, part.contentType, byteLength],
  )
  claim.add(Buffer.from(JSON.stringify(parts)))
  return claim.end()
}

/** Rejects when the store fails; never resolves. */
function failureOf(stored: Promise<number>): Promise<never> {
  return new Promise((_resolve, reject) => {
    stored.catch(reject)
  })
}

/** Type and subtype (RFC 6838, section 4.2). */
const MEDIA_TYPE = /^[a-z0-9][\w!#$&^.+-]{0,126}\/[a-z0-9][\w!#$&^.+-]{0,126}$/
const BYTES = 'application/octet-stream'

/** Returns the media type that the caller sent. Clients send no type for files whose type they do not know. */
function typeOf(form: Form, filename: string): string {
  const part = form.find(({ kind }) => kind === 'file')
  const type = part?.kind === 'file' ? mediaType(part.contentType) : ''
  if (MEDIA_TYPE.test(type) && type !== BYTES) return type
  return filename.endsWith('.jsonl') ? DEFAULT_FILE_TYPE : BYTES
}

function fieldOf(form: Form, name: string): string | undefined {
  const part = form.find((candidate) => candidate.name === name)
  return part?.kind === 'field' ? part.value : undefined
}

const MAX_PAGE = 10_000

/** OpenAI's files (OpenAI API reference, "Files"). Callers get this shape unless their client has another one. */
const openaiFiles: FileDialect = {
  readUpload(field) {
    const purpose = field('purpose')
    if (purpose !== 'batch') throw invalidField('purpose', 'must be batch')
    const text = field('expires_after[seconds]')
    const anchor = field('expires_after[anchor]')
    if (text === undefined && anchor === undefined) return { purpose }
    const seconds = /^\d{1,9}$/.test(text ?? '') ? Number(text) : undefined
    return { purpose, lifetimeMs: askedLifetimeMs({ anchor, seconds }, (member) => `expires_after[${member}]`) }
  },
  readList(parameters) {
    const order = parameters.get('order') ?? 'desc'
    if (order !== 'asc' && order !== 'desc') throw invalidField('order', 'must be asc or desc')
    return {
      limit: pageSizeOf(parameters, MAX_PAGE, MAX_PAGE),
      order,
      after: parameters.get('after') ?? undefined,
      purpose: parameters.get('purpose') ?? undefined,
    }
  },
  record,
  list: ({ files, hasMore }) => listObject(files.map(record), hasMore, files),
  deleted: (id) => ({ id, object: 'file', deleted: true }),
}

/** A file as callers read it (OpenAI API reference, "The File object"). */
function record({ id, purpose, filename, byteLength, createdAtMs, expiresAtMs }: FileRecord): object {
  return {
    id,
    object: 'file',
    bytes: byteLength,
    created_at: Math.floor(createdAtMs / 1_000),
    expires_at: Math.floor(expiresAtMs / 1_000),
    filename,
    purpose,
    status: 'processed',
  }
}

const MIN_LIFETIME_SECONDS = 3_600
const MAX_LIFETIME_SECONDS = 30 * 24 * 3_600

/**
 * Returns the requested lifetime of a file, in milliseconds (OpenAI API reference, `expires_after`).
 * @param nameOf Name of a member in errors: `expires_after[seconds]`.
 * @throws GatewayError `invalid_request`.
 */
export function askedLifetimeMs(
  { anchor, seconds }: Readonly<Record<'anchor' | 'seconds', unknown>>,
  nameOf: (member: string) => string,
): number {
  if (anchor !== 'created_at') throw invalidField(nameOf('anchor'), 'must be created_at')
  if (Number.isSafeInteger(seconds)) {
    const given = seconds as number
    if (given >= MIN_LIFETIME_SECONDS && given <= MAX_LIFETIME_SECONDS) return given * 1_000
  }
  throw invalidField(
    nameOf('seconds'),
    `must be a whole number from ${MIN_LIFETIME_SECONDS} to ${MAX_LIFETIME_SECONDS}`,
  )
}
