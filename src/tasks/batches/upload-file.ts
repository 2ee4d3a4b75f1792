import { GatewayError } from '../../core/errors.ts'
import { bodyPieces, type GatewayRequest } from '../../core/exchange.ts'
import type { BatchSettings, PipelineContext } from '../../pipeline/pipeline-context.ts'
import type { FileRecord } from '../../stores/file-store.ts'
import { mediaType } from '../../wire/headers.ts'
import type { Form } from '../../wire/multipart.ts'
import { PieceQueue } from '../../wire/piece-queue.ts'
import { streamForm } from '../../wire/read-form.ts'

/** Room for the other fields of a form, and for what stands between them. */
const FORM_BYTES = 64 * 1024

const SHORTEST_SECONDS = 3_600
const LONGEST_SECONDS = 30 * 24 * 3_600

/** What is being written of an upload. */
interface Upload {
  readonly id: string
  readonly queue: PieceQueue
  filename: string | undefined
  stored: Promise<number> | undefined
}

/**
 * Keeps the file of a form (OpenAI API reference, "Upload file"): its bytes go to the store while they arrive.
 * @throws GatewayError `unsupported_media_type`, `body_too_large`, `client_closed_request`, and `invalid_request` for a form that
 *   cannot be read, another purpose than `batch`, and an account whose files are full. Nothing is kept then.
 */
export async function uploadFile(
  context: PipelineContext,
  settings: BatchSettings,
  { request, accountId }: { readonly request: GatewayRequest; readonly accountId: string },
): Promise<FileRecord> {
  const contentType = request.header('content-type') ?? ''
  if (mediaType(contentType) !== 'multipart/form-data')
    throw new GatewayError('unsupported_media_type', { message: 'Send the body as Content-Type: multipart/form-data.' })
  const { files, blobs, maxFileBytes, retentionMs } = settings
  const nowMs = context.clock.now()
  await checkRoom(settings, accountId, nowMs, 0)
  const upload: Upload = {
    id: context.ids.next('file'),
    queue: new PieceQueue(),
    filename: undefined,
    stored: undefined,
  }
  const body = bodyPieces(request, maxFileBytes + FORM_BYTES)
  let form: Form
  let byteLength: number
  try {
    form = await streamForm(contentType, body, {
      sinkOf({ name, filename }) {
        if (name !== 'file' || upload.stored !== undefined)
          throw new GatewayError('invalid_request', {
            message: `${name}: the form takes one file, as file`,
            param: name,
          })
        upload.filename = filename
        upload.stored = blobs.put({ id: upload.id, expiresAtMs: nowMs + retentionMs }, upload.queue)
        // It is awaited below, perhaps after the form has failed.
        upload.stored.catch(() => undefined)
        return upload.queue
      },
      drained: () =>
        upload.stored === undefined
          ? Promise.resolve()
          : Promise.race([upload.queue.drained(), failureOf(upload.stored)]),
    })
    byteLength = await storedBytes(upload)
  } catch (error) {
    upload.queue.fail(error)
    await upload.stored?.catch(() => undefined)
    throw error
  }
  try {
    if (byteLength > maxFileBytes)
      throw new GatewayError('body_too_large', {
        message: `The file is larger than ${maxFileBytes} bytes.`,
        param: 'file',
      })
    const expiresAtMs = nowMs + lifetimeOf(form, retentionMs)
    const filename = upload.filename === '' ? 'upload' : upload.filename!
    const file: FileRecord = {
      id: upload.id,
      accountId,
      purpose: purposeOf(form),
      filename,
      byteLength,
      createdAtMs: nowMs,
      expiresAtMs,
    }
    await checkRoom(settings, accountId, nowMs, byteLength)
    await files.save(file)
    return file
  } catch (error) {
    await blobs.delete(upload.id)
    throw error
  }
}

/** Rejects when the store fails; never resolves. */
function failureOf(stored: Promise<number>): Promise<never> {
  return new Promise((_resolve, reject) => {
    stored.catch(reject)
  })
}

async function storedBytes({ stored }: Upload): Promise<number> {
  if (stored === undefined)
    throw new GatewayError('invalid_request', { message: 'file: the form has none', param: 'file' })
  return await stored
}

async function checkRoom(
  { files, maxAccountBytes }: BatchSettings,
  accountId: string,
  nowMs: number,
  byteLength: number,
): Promise<void> {
  const kept = await files.byteLength(accountId, nowMs)
  if (kept + byteLength < maxAccountBytes) return
  throw new GatewayError('invalid_request', {
    message: `The files of this account may have ${maxAccountBytes} bytes together. Delete some of them.`,
    param: 'file',
  })
}

function purposeOf(form: Form): string {
  const purpose = fieldOf(form, 'purpose')
  if (purpose === 'batch') return purpose
  throw new GatewayError('invalid_request', { message: 'purpose: must be batch', param: 'purpose' })
}

function lifetimeOf(form: Form, retentionMs: number): number {
  const text = fieldOf(form, 'expires_after[seconds]')
  const anchor = fieldOf(form, 'expires_after[anchor]')
  if (text === undefined && anchor === undefined) return retentionMs
  if (anchor !== 'created_at')
    throw new GatewayError('invalid_request', {
      message: 'expires_after[anchor]: must be created_at',
      param: 'expires_after[anchor]',
    })
  const seconds = /^\d{1,9}$/.test(text ?? '') ? Number(text) : 0
  if (seconds < SHORTEST_SECONDS || seconds > LONGEST_SECONDS)
    throw new GatewayError('invalid_request', {
      message: `expires_after[seconds]: must be a whole number from ${SHORTEST_SECONDS} to ${LONGEST_SECONDS}`,
      param: 'expires_after[seconds]',
    })
  return Math.min(seconds * 1_000, retentionMs)
}

function fieldOf(form: Form, name: string): string | undefined {
  const part = form.find((candidate) => candidate.name === name)
  return part?.kind === 'field' ? part.value : undefined
}
