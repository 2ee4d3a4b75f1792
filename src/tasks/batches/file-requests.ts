import { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../../core/exchange.ts'
import { answerOnce } from '../../pipeline/answer-once.ts'
import { checkEndpointScope } from '../../pipeline/caller-rights.ts'
import { countReading } from '../../pipeline/count-reading.ts'
import type { BatchSettings, PipelineContext } from '../../pipeline/pipeline-context.ts'
import { respondJson } from '../../pipeline/respond.ts'
import type { FileRecord } from '../../stores/file-store.ts'
import type { Principal } from '../../stores/principal.ts'
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
  await checkCaller(context, principal)
  try {
    const [id, action] = segments
    if (id === undefined && request.method === 'POST') return await uploadFile(context, settings, asked)
    if (id === undefined) return respondJson(sink, requestId, await listFiles(context, settings, asked))
    const file = await findFile(context, settings, principal.accountId, id)
    if (action === 'content') return await sendFile(settings, asked, file)
    if (request.method !== 'DELETE') return respondJson(sink, requestId, fileObject(file))
    if (!(await settings.files.delete(principal.accountId, file.id))) throw new GatewayError('file_not_found')
    context.storedBounds.freed(principal.accountId, 'files')
    await settings.blobs.delete(file.id)
    respondJson(sink, requestId, { id: file.id, object: 'file', deleted: true })
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? cause : new GatewayError('store_unavailable', { cause })
  }
}

/** Stores one file for all requests with the same Idempotency-Key. */
async function uploadFile(
  context: PipelineContext,
  settings: BatchSettings,
  { request, sink, requestId, principal: { accountId } }: BatchRequest,
): Promise<void> {
  const { file, claim } = await receiveFile(context, settings, { request, accountId, requestId })
  let isKept = false
  try {
    await answerOnce(context, { sink, requestId, claim }, async () => {
      await keepFile(context, settings, file)
      isKept = true
      return fileObject(file)
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

/** Formats a file for callers (OpenAI API reference, "The File object"). */
function fileObject({ id, purpose, filename, byteLength, createdAtMs, expiresAtMs }: FileRecord): object {
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

const MAX_LIMIT = 10_000

async function listFiles(
  { clock }: PipelineContext,
  { files }: BatchSettings,
  { request, principal }: BatchRequest,
): Promise<object> {
  const parameters = new URLSearchParams(request.query)
  const order = parameters.get('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc')
    throw new GatewayError('invalid_request', { message: 'order: must be asc or desc', param: 'order' })
  const query = {
    limit: limitOf(parameters, MAX_LIMIT, MAX_LIMIT),
    order,
    after: parameters.get('after') ?? undefined,
    purpose: parameters.get('purpose') ?? undefined,
  } as const
  const page = await files.list(principal.accountId, query, clock.now())
  return listObject(page.files.map(fileObject), page.hasMore, page.files)
}

/**
 * Number of objects per page.
 * @throws GatewayError `invalid_request`
 */
export function limitOf(parameters: URLSearchParams, usual: number, most: number): number {
  const text = parameters.get('limit')
  if (text === null) return usual
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= most) return limit
  throw new GatewayError('invalid_request', { message: `limit: must be from 1 to ${most}`, param: 'limit' })
}

/** Page of objects (OpenAI API reference, lists). */
export function listObject(
  data: readonly object[],
  hasMore: boolean,
  owners: readonly { readonly id: string }[],
): object {
  return {
    object: 'list',
    data,
    has_more: hasMore,
    first_id: owners[0]?.id ?? null,
    last_id: owners.at(-1)?.id ?? null,
  }
}

async function sendFile(
  { blobs }: BatchSettings,
  { sink, requestId }: BatchRequest,
  { id }: FileRecord,
): Promise<void> {
  const blob = await blobs.get(id)
  if (blob === undefined) throw new GatewayError('file_not_found')
  const headers = [
    'content-type',
    'application/jsonl',
    'content-length',
    String(blob.byteLength),
    'x-request-id',
    requestId,
  ]
  // The text comes from callers and vendors, so no browser should treat it as a page.
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
