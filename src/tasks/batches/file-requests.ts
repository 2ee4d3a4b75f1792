import { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../../core/exchange.ts'
import { DEFAULT_FILE_TYPE, type FileDialect } from '../../endpoints/file-dialect.ts'
import { answerOnce } from '../../pipeline/answer-once.ts'
import { checkEndpointScope } from '../../pipeline/caller-rights.ts'
import { countReading } from '../../pipeline/count-reading.ts'
import type { BatchSettings, PipelineContext } from '../../pipeline/pipeline-context.ts'
import { respondJson } from '../../pipeline/respond.ts'
import type { FileRecord } from '../../stores/file-store.ts'
import type { Principal } from '../../stores/principal.ts'
import { openaiFiles } from './openai-files.ts'
import { keepFile, receiveFile } from './upload-file.ts'

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
  { request, sink, requestId, principal: { accountId } }: BatchRequest,
  dialect: FileDialect,
): Promise<void> {
  const { file, claim } = await receiveFile(context, settings, { request, accountId, requestId, dialect })
  let isKept = false
  try {
    await answerOnce(context, { sink, requestId, claim }, async () => {
      await keepFile(context, settings, file)
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
  await sendPieces(sink, headers, blob.content)
}

/** Sends bytes at the caller's speed. An answer that breaks off does not look complete. */
export async function sendPieces(
  sink: ByteSink,
  headers: readonly string[],
  content: AsyncIterable<Uint8Array | string>,
): Promise<void> {
  let resume: (() => void) | undefined
  sink.onDrain(() => resume?.())
  sink.onClose(() => resume?.())
  sink.head(200, headers)
  try {
    for await (const piece of content) {
      if (sink.closed) return
      const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
      if (sink.write(bytes)) continue
      await new Promise<void>((resolve) => {
        resume = resolve
        if (sink.closed) resolve()
      })
    }
    sink.end()
  } catch (error) {
    sink.destroy()
    throw error
  }
}
