import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { parseVendorJson } from '../../../core/json.ts'
import {
  type BatchItem,
  type BatchRun,
  type BatchTimes,
  jsonLines,
  pageAfter,
  type UploadedFile,
  type UploadedFiles,
  uploadedFiles,
  type VendorBatch,
  vendorBatches,
} from '../batches/vendor-batches.ts'
import { asObject, asText } from '../request-fields.ts'
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

/** A fault that the vendor finds in a file of requests. */
interface LineFault {
  readonly code: string
  readonly line: number | null
  readonly message: string
  readonly param: string | null
}

interface BatchFacts {
  readonly inputFileId: string
  readonly endpoint: string
  readonly window: string
  readonly metadata: unknown
  readonly faults: readonly LineFault[]
}

type Batch = VendorBatch<BatchFacts>

/**
 * Files and batches of OpenAI's dialect, with those of one sandbox (OpenAI API reference, "Batch"): each request is answered like a
 * single call, and the lines of output files are in another order than those of the input.
 */
export function batchOperations(dialect: BatchDialect, run: BatchRun, times: BatchTimes): SandboxOperation[] {
  const { vendor, basePath, errors, headers } = dialect
  const files = uploadedFiles()
  const batches = vendorBatches<BatchFacts>(run, times)
  const root = `${basePath}/batches`
  const pattern = new RegExp(`^${root}/([^/]+)(/cancel)?$`)

  const found = (call: SandboxCall, nowMs: number): Batch => {
    checkBearer(call, errors)
    const id = pattern.exec(call.path)?.[1] ?? ''
    const batch = batches.find(id, credentialOf(call), nowMs)
    if (batch === undefined) throw new RefusedCall(errors.status(404, `No batch found with id '${id}'.`))
    return batch
  }
  const shown = (batch: Batch, call: SandboxCall) => batchObject(batch, writtenFiles(files, batch, call, dialect))
  const base = { vendor, errors, needsJson: false, promptText: () => '' } as const
  return [
    ...fileOperations(dialect, files),
    {
      ...base,
      needsJson: true,
      operation: 'batches',
      matches: ({ method, path }) => method === 'POST' && path === root,
      answer(call, { nowMs }) {
        checkBearer(call, errors)
        const apiKey = credentialOf(call)
        const { facts, items, lifeMs } = checkedBatch(call, dialect, files, nowMs)
        const id = `batch_${randomUUID().replaceAll('-', '')}`
        const batch = batches.add({ id, apiKey, facts, items, lifeMs, isFaulty: facts.faults.length > 0 }, nowMs)
        return jsonReply(200, headers, shown(batch, call))
      },
    },
    {
      ...base,
      operation: 'batch-list',
      matches: ({ method, path }) => method === 'GET' && path === root,
      answer(call, { nowMs }) {
        checkBearer(call, errors)
        const query = new URLSearchParams(call.query)
        const all = batches.list(credentialOf(call), nowMs)
        const { page, hasMore } = pageAfter(all, query.get('after'), Number(query.get('limit') ?? 20))
        return jsonReply(
          200,
          headers,
          listObject(
            page.map((batch) => shown(batch, call)),
            hasMore,
          ),
        )
      },
    },
    {
      ...base,
      operation: 'batch',
      matches: ({ method, path }) => method === 'GET' && pattern.exec(path)?.[2] === undefined && pattern.test(path),
      answer: (call, { nowMs }) => jsonReply(200, headers, shown(found(call, nowMs), call)),
    },
    {
      ...base,
      operation: 'batch-cancel',
      matches: ({ method, path }) => method === 'POST' && pattern.exec(path)?.[2] !== undefined,
      answer(call, { nowMs }) {
        const { id, state, endedMs } = found(call, nowMs)
        if (endedMs !== undefined) {
          const message = `Cannot cancel a batch with status '${statusOf(state)}'.`
          throw new RefusedCall(errors.status(409, message))
        }
        batches.cancel(id, nowMs)
        return jsonReply(200, headers, shown(found(call, nowMs), call))
      },
    },
  ]
}

interface CheckedBatch {
  readonly facts: BatchFacts
  readonly items: readonly BatchItem[]
  readonly lifeMs: number
}

function checkedBatch(call: SandboxCall, dialect: BatchDialect, files: UploadedFiles, nowMs: number): CheckedBatch {
  const refuse = (message: string, param: string): never => {
    throw new RefusedCall(dialect.invalid(message, param))
  }
  const { input_file_id: fileId, endpoint, completion_window: window, metadata = null } = asObject(call.body)
  if (typeof endpoint !== 'string' || !dialect.endpoints.includes(endpoint))
    return refuse(
      `Invalid value: '${String(endpoint)}'. Supported values are: ${dialect.endpoints.map((one) => `'${one}'`).join(', ')}.`,
      'endpoint',
    )
  const lifeMs = dialect.windowMs(window)
  if (lifeMs === undefined)
    return refuse(`Invalid value: '${String(window)}'. Supported values are: '24h'.`, 'completion_window')
  const file = files.find(asText(fileId), credentialOf(call), nowMs)
  if (file === undefined) return refuse(`Invalid file id '${asText(fileId)}'.`, 'input_file_id')
  const { items, faults } = itemsOf(file.bytes, endpoint, call, dialect)
  return { facts: { inputFileId: file.id, endpoint, window: String(window), metadata, faults }, items, lifeMs }
}

function itemsOf(
  bytes: Uint8Array,
  endpoint: string,
  { headers, query }: SandboxCall,
  { urlPrefix, maxRequests }: BatchDialect,
): { items: BatchItem[]; faults: LineFault[] } {
  const faults: LineFault[] = []
  const items: BatchItem[] = []
  const keys = new Set<string>()
  let model: string | undefined
  for (const [index, text] of jsonLines(bytes).entries()) {
    const fault = (code: string, param: string | null, message: string): void => {
      faults.push({ code, line: index + 1, message, param })
    }
    const line = parseVendorJson(text)
    if (line === undefined) {
      fault('invalid_json_line', null, 'This line is not parseable as valid JSON.')
      continue
    }
    const { custom_id: customId, method, url, body } = asObject(line)
    const key = asText(customId)
    const asked = asText(asObject(body)['model'])
    model ??= asked
    if (key === '') fault('missing_required_parameter', 'custom_id', "Missing required parameter: 'custom_id'.")
    else if (keys.has(key))
      fault(
        'duplicate_custom_id',
        'custom_id',
        `The custom_id '${key}' for this request is a duplicate of another request. The custom_id parameter must be unique for each request in a batch.`,
      )
    if (method !== 'POST') fault('invalid_method', 'method', 'The method must be POST.')
    if (url !== endpoint)
      fault('mismatched_url', 'url', 'The URL provided for this request does not match the batch endpoint.')
    if (asked !== model)
      fault(
        'mismatched_model',
        'body.model',
        `The provided model '${asked}' does not match the expected model '${model}'.`,
      )
    keys.add(key)
    items.push({
      key,
      call: {
        method: 'POST',
        path: `${urlPrefix}${endpoint}`,
        query,
        headers: { ...headers, 'content-type': 'application/json' },
        bytes: Buffer.from(JSON.stringify(body ?? null)),
      },
    })
  }
  if (items.length === 0 && faults.length === 0)
    faults.push({ code: 'empty_file', line: null, message: 'The input file has no requests.', param: null })
  if (items.length > maxRequests)
    faults.push({
      code: 'too_many_requests',
      line: null,
      message: `The batch has more than ${maxRequests} requests.`,
      param: null,
    })
  return { items, faults }
}

interface WrittenFiles {
  readonly outputFileId: string | null
  readonly errorFileId: string | null
}

/** Writes the files of a batch that has ended; a batch without a line for one does not have it. */
function writtenFiles(files: UploadedFiles, batch: Batch, call: SandboxCall, dialect: BatchDialect): WrittenFiles {
  if (batch.endedMs === undefined || batch.state === 'failed') return { outputFileId: null, errorFileId: null }
  const lines = batch.items.map(({ key }, index) => outputLine(batch, key, index))
  const written = (kind: 'output' | 'error', isOfKind: (line: OutputLine) => boolean): string | null => {
    const texts = lines.filter(isOfKind).map((line) => `${JSON.stringify(line)}\n`)
    if (texts.length === 0) return null
    const id = `${dialect.fileIdPrefix}${kind}-${batch.id.slice('batch_'.length)}`
    files.add({
      id,
      apiKey: credentialOf(call),
      filename: `${batch.id}_${kind}.jsonl`,
      purpose: 'batch_output',
      bytes: Buffer.from(texts.reverse().join('')),
      createdMs: batch.endedMs!,
      expiresMs: batch.endedMs! + FILE_LIFE_MS,
    })
    return id
  }
  const isAnswer = ({ response }: OutputLine): boolean => response?.status_code === 200
  return {
    outputFileId: written('output', isAnswer),
    errorFileId: written('error', (line) => !isAnswer(line)),
  }
}

interface OutputLine {
  readonly id: string
  readonly custom_id: string
  readonly response: { readonly status_code: number; readonly request_id: string; readonly body: unknown } | null
  readonly error: { readonly code: string; readonly message: string } | null
}

function outputLine({ id: batchId, outcomes }: Batch, key: string, index: number): OutputLine {
  const id = `batch_req_${batchId.slice('batch_'.length)}${index}`
  const outcome = outcomes[index]
  if (outcome?.kind === 'answered') {
    const response = { status_code: outcome.status, request_id: `req_${index}`, body: outcome.body }
    return { id, custom_id: key, response, error: null }
  }
  const error =
    outcome?.kind === 'canceled'
      ? { code: 'batch_cancelled', message: 'This request could not be executed before the batch was cancelled.' }
      : {
          code: 'batch_expired',
          message: 'This request could not be executed before the completion window expired.',
        }
  return { id, custom_id: key, response: null, error }
}

const STATUSES = {
  pending: 'validating',
  running: 'in_progress',
  canceling: 'cancelling',
  completed: 'completed',
  canceled: 'cancelled',
  expired: 'expired',
  failed: 'failed',
} as const satisfies Record<Batch['state'], string>

function statusOf(state: Batch['state']): string {
  return STATUSES[state]
}

const OUT_OF_TOKENS: LineFault = {
  code: 'token_limit_exceeded',
  line: null,
  message:
    'Enqueued token limit reached for this model. Please try again once some in_progress batches have been completed.',
  param: null,
}

function batchObject(
  batch: Batch,
  { outputFileId, errorFileId }: WrittenFiles,
): Readonly<Record<string, unknown>> & { readonly id: string } {
  const { id, facts, items, outcomes, state, createdMs, expiresMs, canceledMs, endedMs } = batch
  const isOk = outcomes.map((outcome) => outcome?.kind === 'answered' && outcome.status === 200)
  const completed = isOk.filter(Boolean).length
  const endedAt = (ending: Batch['state']): number | null => (state === ending ? seconds(endedMs) : null)
  const hasBegun = state !== 'pending' && state !== 'failed'
  const faults = facts.faults.length === 0 ? [OUT_OF_TOKENS] : facts.faults
  return {
    id,
    object: 'batch',
    endpoint: facts.endpoint,
    errors: state === 'failed' ? { object: 'list', data: faults } : null,
    input_file_id: facts.inputFileId,
    completion_window: facts.window,
    status: statusOf(state),
    output_file_id: outputFileId,
    error_file_id: errorFileId,
    created_at: seconds(createdMs),
    in_progress_at: hasBegun ? seconds(createdMs) : null,
    expires_at: seconds(expiresMs),
    finalizing_at: endedMs === undefined || state === 'failed' ? null : seconds(endedMs),
    completed_at: endedAt('completed'),
    failed_at: endedAt('failed'),
    expired_at: endedAt('expired'),
    cancelling_at: seconds(canceledMs),
    cancelled_at: endedAt('canceled'),
    request_counts: {
      total: state === 'failed' ? 0 : items.length,
      completed,
      failed: outcomes.filter((outcome) => outcome !== undefined).length - completed,
    },
    metadata: facts.metadata,
  }
}

function seconds(timeMs: number | undefined): number | null {
  return timeMs === undefined ? null : Math.floor(timeMs / 1000)
}

/** A vendor's paths of OpenAI's files and batches, and its differences. */
interface BatchDialect {
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
const FILE_LIFE_MS = 30 * 24 * 60 * 60 * 1000

const JSONL = 'application/jsonl'

/** `/files` of OpenAI's dialect: upload, list, read, download, delete (OpenAI API reference, "Files"). */
function fileOperations(dialect: BatchDialect, files: UploadedFiles): SandboxOperation[] {
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
function listObject(data: readonly (object & { readonly id: string })[], hasMore: boolean): object {
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: hasMore,
  }
}
