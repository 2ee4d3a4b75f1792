import { randomUUID } from 'node:crypto'
import type { UploadedFile, UploadedFiles } from '../batches/uploaded-files.ts'
import { pageAfter } from '../batches/vendor-batches.ts'
import {
  checkBearer,
  credentialOf,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  type VendorErrors,
} from '../sandbox-operation.ts'
import { formParts } from './form-parts.ts'

/** A vendor's paths of OpenAI's files and batches, and its differences. */
export interface BatchDialect {
  readonly vendor: string
  /** Path before `/files` and `/batches`: `/v1`. */
  readonly basePath: string
  /** Path before a request's `url`: empty, or `/compatible-mode`. */
  readonly urlPrefix: string
  readonly errors: VendorErrors
  readonly headers: readonly string[]
  invalid(message: string, param: string | null): SandboxReply
  readonly fileIdPrefix: string
  readonly endpoints: readonly string[]
  /** Returns the milliseconds of a `completion_window`, or `undefined` for an invalid value. */
  windowMs(window: unknown): number | undefined
  readonly maxRequests: number
  readonly maxFileBytes: number
}

/** How long files are stored, unless the caller sets another time. */
export const FILE_LIFE_MS = 30 * 24 * 60 * 60 * 1000

const JSONL = 'application/jsonl'

/** `/files` of OpenAI's dialect: upload, list, read, download, delete (OpenAI API reference, "Files"). */
export function fileOperations(dialect: BatchDialect, files: UploadedFiles): SandboxOperation[] {
  const { vendor, basePath, errors, headers } = dialect
  const root = `${basePath}/files`
  const idOf = (path: string, suffix = ''): string | undefined =>
    path.startsWith(`${root}/`) && path.endsWith(suffix)
      ? /^[^/]+$/.exec(path.slice(root.length + 1, path.length - suffix.length))?.[0]
      : undefined
  const isMine = (call: Pick<SandboxCall, 'headers'>): boolean => call.headers['anthropic-version'] === undefined
  const found = (call: SandboxCall, nowMs: number, suffix = ''): UploadedFile => {
    checkBearer(call, errors)
    const id = idOf(call.path, suffix) ?? ''
    const file = files.find(id, credentialOf(call), nowMs)
    if (file === undefined) throw new RefusedCall(errors.status(404, `No such File object: ${id}`))
    return file
  }
  const base = { vendor, errors, needsJson: false, promptText: () => '' } as const
  return [
    {
      ...base,
      operation: 'files',
      matches: (call) => call.method === 'POST' && call.path === root && isMine(call),
      answer(call, { nowMs }) {
        checkBearer(call, errors)
        return jsonReply(200, headers, fileObject(files.add(uploaded(call, dialect, nowMs))))
      },
    },
    {
      ...base,
      operation: 'file-list',
      matches: (call) => call.method === 'GET' && call.path === root && isMine(call),
      answer(call, { nowMs }) {
        checkBearer(call, errors)
        const query = new URLSearchParams(call.query)
        const purpose = query.get('purpose')
        const all = files.list(credentialOf(call), nowMs).filter((file) => purpose === null || file.purpose === purpose)
        const { page, hasMore } = pageAfter(all, query.get('after'), Number(query.get('limit') ?? 10_000))
        return jsonReply(200, headers, listObject(page.map(fileObject), hasMore))
      },
    },
    {
      ...base,
      operation: 'file-content',
      matches: (call) => call.method === 'GET' && idOf(call.path, '/content') !== undefined && isMine(call),
      answer(call, { nowMs }) {
        const { bytes } = found(call, nowMs, '/content')
        return { status: 200, headers: ['content-type', JSONL, ...headers], pieces: [bytes], streamed: false }
      },
    },
    {
      ...base,
      operation: 'file',
      matches: (call) => call.method === 'GET' && idOf(call.path) !== undefined && isMine(call),
      answer: (call, { nowMs }) => jsonReply(200, headers, fileObject(found(call, nowMs))),
    },
    {
      ...base,
      operation: 'file-delete',
      matches: (call) => call.method === 'DELETE' && idOf(call.path) !== undefined && isMine(call),
      answer(call, { nowMs }) {
        const { id } = found(call, nowMs)
        files.delete(id, credentialOf(call), nowMs)
        return jsonReply(200, headers, { id, object: 'file', deleted: true })
      },
    },
  ]
}

function uploaded(call: SandboxCall, dialect: BatchDialect, nowMs: number): UploadedFile {
  const refuse = (message: string, param: string): never => {
    throw new RefusedCall(dialect.invalid(message, param))
  }
  const parts = formParts(call) ?? []
  const text = (name: string): string | undefined => parts.find((part) => part.name === name)?.bytes.toString('utf8')
  const file = parts.find(({ name, filename }) => name === 'file' && filename !== undefined)
  if (file?.filename === undefined) return refuse("Missing required parameter: 'file'.", 'file')
  if (text('purpose') !== 'batch') return refuse("'purpose' must be one of 'batch'.", 'purpose')
  if (file.bytes.byteLength === 0) return refuse('The file must not be empty.', 'file')
  if (file.bytes.byteLength > dialect.maxFileBytes)
    throw new RefusedCall(dialect.errors.status(413, 'The file is too large.'))
  const seconds = text('expires_after[seconds]')
  return {
    id: `${dialect.fileIdPrefix}${randomUUID().replaceAll('-', '').slice(0, 22)}`,
    apiKey: credentialOf(call),
    filename: file.filename,
    purpose: 'batch',
    bytes: new Uint8Array(file.bytes),
    createdMs: nowMs,
    expiresMs: nowMs + (seconds === undefined ? FILE_LIFE_MS : Number(seconds) * 1000),
  }
}

function fileObject({
  id,
  bytes,
  filename,
  purpose,
  createdMs,
  expiresMs,
}: UploadedFile): Readonly<Record<string, unknown>> & { readonly id: string } {
  return {
    id,
    object: 'file',
    bytes: bytes.byteLength,
    created_at: Math.floor(createdMs / 1000),
    expires_at: Math.floor(expiresMs / 1000),
    filename,
    purpose,
    status: 'processed',
  }
}

/** Returns a page of a list. */
export function listObject(data: readonly (object & { readonly id: string })[], hasMore: boolean): object {
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: hasMore,
  }
}
