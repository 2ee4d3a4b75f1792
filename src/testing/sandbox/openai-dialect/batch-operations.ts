import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { parseVendorJson } from '../../../core/json.ts'
import {
  type BatchItem,
  type BatchRun,
  type BatchTimes,
  batchedCall,
  itemOperations,
  jsonLines,
  type UploadedFile,
  UploadedFiles,
  type VendorBatch,
  VendorBatches,
} from '../batches/vendor-batches.ts'
import { asObject, asText, type Fields } from '../request-fields.ts'
import {
  credentialOf,
  fileReply,
  type OperationMaker,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type VendorErrors,
} from '../sandbox-operation.ts'
import type { RefuseField } from './chat.ts'
import { formParts, formText } from './form-parts.ts'

/** A vendor's paths of OpenAI's files and batches, and its differences. */
interface BatchDialect {
  readonly operation: OperationMaker
  /** Path before `/files` and `/batches`: `/v1`. */
  readonly basePath: string
  /** Path before a request's `url`: empty, or `/compatible-mode`. */
  readonly urlPrefix: string
  readonly errors: VendorErrors
  readonly headers: readonly string[]
  readonly refuse: RefuseField
  readonly fileIdPrefix: string
  readonly endpoints: readonly string[]
  /** Returns the milliseconds of a `completion_window`, or `undefined` for an invalid value. */
  windowMs(window: unknown): number | undefined
  readonly maxFileBytes: number
}

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

const MAX_REQUESTS = 50_000

/**
 * Files and batches of OpenAI's dialect, with those of one sandbox (OpenAI API reference, "Batch"): each request is answered like a
 * single call, and the lines of output files are in another order than those of the input.
 */
export function batchOperations(dialect: BatchDialect, run: BatchRun, times: BatchTimes): SandboxOperation[] {
  const { operation, basePath, errors } = dialect
  const files = new UploadedFiles()
  const batches = new VendorBatches<BatchFacts>(run, times)
  const found = (call: SandboxCall, id: string, nowMs: number): Batch => {
    const batch = batches.find(id, credentialOf(call), nowMs)
    if (batch === undefined) throw new RefusedCall(errors.status(404, `No batch found with id '${id}'.`))
    return batch
  }
  const shown = (batch: Batch, call: SandboxCall) => batchObject(batch, writtenFiles(files, batch, call, dialect))
  const submit = operation({
    operation: 'batches',
    post: `${basePath}/batches`,
    json(call, { nowMs }) {
      const batch = checkedBatch(call, dialect, files, nowMs)
      const id = `batch_${randomUUID().replaceAll('-', '')}`
      return shown(batches.add({ id, apiKey: credentialOf(call), ...batch }, nowMs), call)
    },
  })
  const others = itemOperations<Batch>({
    operation,
    name: 'batch',
    one: new RegExp(`^${basePath}/batches/([^/]+)$`),
    found,
    shown,
    list: {
      path: `${basePath}/batches`,
      query: ['after', 'limit', 20],
      items: (call, nowMs) => batches.list(credentialOf(call), nowMs),
      shown: (page, hasMore, call) =>
        listObject(
          page.map((batch) => shown(batch, call)),
          hasMore,
        ),
    },
    cancel: {
      path: new RegExp(`^${basePath}/batches/([^/]+)/cancel$`),
      cancel({ id, state, endedMs }, call, nowMs) {
        const message = `Cannot cancel a batch with status '${STATUSES[state]}'.`
        if (endedMs !== undefined) throw new RefusedCall(errors.status(409, message))
        batches.cancel(id, nowMs)
        return shown(found(call, id, nowMs), call)
      },
    },
  })
  return [...fileOperations(dialect, files), submit, ...others]
}

function checkedBatch(call: SandboxCall, dialect: BatchDialect, files: UploadedFiles, nowMs: number) {
  const { refuse, endpoints, windowMs } = dialect
  const { input_file_id: fileId, endpoint, completion_window: window, metadata = null } = asObject(call.body)
  if (typeof endpoint !== 'string' || !endpoints.includes(endpoint)) {
    const supported = endpoints.map((one) => `'${one}'`).join(', ')
    return refuse(`Invalid value: '${String(endpoint)}'. Supported values are: ${supported}.`, 'endpoint')
  }
  const lifeMs = windowMs(window)
  if (lifeMs === undefined)
    return refuse(`Invalid value: '${String(window)}'. Supported values are: '24h'.`, 'completion_window')
  const file = files.find(asText(fileId), credentialOf(call), nowMs)
  if (file === undefined) return refuse(`Invalid file id '${asText(fileId)}'.`, 'input_file_id')
  const { items, faults } = itemsOf(file.bytes, endpoint, call, dialect)
  const facts = { inputFileId: file.id, endpoint, window: String(window), metadata, faults }
  return { facts, items, lifeMs, isFaulty: faults.length > 0 }
}

function itemsOf(
  bytes: Uint8Array,
  endpoint: string,
  call: SandboxCall,
  { urlPrefix }: BatchDialect,
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
    else if (keys.has(key)) {
      const message = `The custom_id '${key}' for this request is a duplicate of another request. The custom_id parameter must be unique for each request in a batch.`
      fault('duplicate_custom_id', 'custom_id', message)
    }
    if (method !== 'POST') fault('invalid_method', 'method', 'The method must be POST.')
    if (url !== endpoint)
      fault('mismatched_url', 'url', 'The URL provided for this request does not match the batch endpoint.')
    const mismatch = `The provided model '${asked}' does not match the expected model '${model}'.`
    if (asked !== model) fault('mismatched_model', 'body.model', mismatch)
    keys.add(key)
    const path = `${urlPrefix}${endpoint}`
    items.push({ key, call: batchedCall(path, body, call) })
  }
  if (items.length === 0 && faults.length === 0)
    faults.push({ code: 'empty_file', line: null, message: 'The input file has no requests.', param: null })
  const tooMany = `The batch has more than ${MAX_REQUESTS} requests.`
  if (items.length > MAX_REQUESTS) faults.push({ code: 'too_many_requests', line: null, message: tooMany, param: null })
  return { items, faults }
}

/** Ids of the files of a batch that has ended. A batch without a line for one does not have it. */
interface WrittenFiles {
  readonly output?: string
  readonly error?: string
}

function writtenFiles(files: UploadedFiles, batch: Batch, call: SandboxCall, dialect: BatchDialect): WrittenFiles {
  const { endedMs } = batch
  if (endedMs === undefined || batch.state === 'failed') return {}
  const texts = { output: '', error: '' }
  for (const [index, { key }] of batch.items.entries()) {
    const outcome = batch.outcomes[index]
    const isAnswer = outcome?.kind === 'answered'
    const response = isAnswer ? { status_code: outcome.status, request_id: `req_${index}`, body: outcome.body } : null
    const id = `batch_req_${batch.id.slice('batch_'.length)}${index}`
    const line = { id, custom_id: key, response, error: isAnswer ? null : LOST[outcome?.kind ?? 'expired'] }
    const kind = response?.status_code === 200 ? 'output' : 'error'
    texts[kind] = `${JSON.stringify(line)}\n${texts[kind]}`
  }
  const written = Object.entries(texts).filter(([, text]) => text !== '')
  return Object.fromEntries(
    written.map(([kind, text]) => {
      const id = `${dialect.fileIdPrefix}${kind}-${batch.id.slice('batch_'.length)}`
      const filename = `${batch.id}_${kind}.jsonl`
      const times = { createdMs: endedMs, expiresMs: endedMs + FILE_LIFE_MS }
      files.add({
        id,
        apiKey: credentialOf(call),
        filename,
        purpose: 'batch_output',
        bytes: Buffer.from(text),
        ...times,
      })
      return [kind, id]
    }),
  )
}

/** Errors of requests that were not executed. */
const LOST = {
  canceled: {
    code: 'batch_cancelled',
    message: 'This request could not be executed before the batch was cancelled.',
  },
  expired: {
    code: 'batch_expired',
    message: 'This request could not be executed before the completion window expired.',
  },
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

const OUT_OF_TOKENS: LineFault = {
  code: 'token_limit_exceeded',
  line: null,
  message:
    'Enqueued token limit reached for this model. Please try again once some in_progress batches have been completed.',
  param: null,
}

function batchObject(batch: Batch, written: WrittenFiles): Fields & { readonly id: string } {
  const { id, facts, items, outcomes, state, createdMs, expiresMs, canceledMs, endedMs } = batch
  const isOk = outcomes.map((outcome) => outcome?.kind === 'answered' && outcome.status === 200)
  const completed = isOk.filter(Boolean).length
  const endedAt = (ending: Batch['state']): number | null => (state === ending ? seconds(endedMs) : null)
  const isFailed = state === 'failed'
  const faults = facts.faults.length === 0 ? [OUT_OF_TOKENS] : facts.faults
  return {
    id,
    object: 'batch',
    endpoint: facts.endpoint,
    errors: isFailed ? { object: 'list', data: faults } : null,
    input_file_id: facts.inputFileId,
    completion_window: facts.window,
    status: STATUSES[state],
    output_file_id: written.output ?? null,
    error_file_id: written.error ?? null,
    created_at: seconds(createdMs),
    in_progress_at: state === 'pending' || isFailed ? null : seconds(createdMs),
    expires_at: seconds(expiresMs),
    finalizing_at: isFailed ? null : seconds(endedMs),
    completed_at: endedAt('completed'),
    failed_at: endedAt('failed'),
    expired_at: endedAt('expired'),
    cancelling_at: seconds(canceledMs),
    cancelled_at: endedAt('canceled'),
    request_counts: {
      total: isFailed ? 0 : items.length,
      completed,
      failed: outcomes.filter((outcome) => outcome !== undefined).length - completed,
    },
    metadata: facts.metadata,
  }
}

function seconds(timeMs: number | undefined): number | null {
  return timeMs === undefined ? null : Math.floor(timeMs / 1000)
}

/** How long files are stored, unless the caller sets another time. */
const FILE_LIFE_MS = 30 * 24 * 60 * 60 * 1000

/** `/files` of OpenAI's dialect: upload, list, read, download, delete (OpenAI API reference, "Files"). */
function fileOperations(dialect: BatchDialect, files: UploadedFiles): SandboxOperation[] {
  const { operation, basePath, errors, headers } = dialect
  const root = `${basePath}/files`
  const when = (call: Pick<SandboxCall, 'headers'>): boolean => call.headers['anthropic-version'] === undefined
  const found = (call: SandboxCall, id: string, nowMs: number): UploadedFile => {
    const file = files.find(id, credentialOf(call), nowMs)
    if (file === undefined) throw new RefusedCall(errors.status(404, `No such File object: ${id}`))
    return file
  }
  return [
    operation({
      operation: 'files',
      post: root,
      when,
      needsJson: false,
      json: (call, { nowMs }) => fileObject(files.add(uploaded(call, dialect, nowMs))),
    }),
    operation({
      operation: 'file-content',
      get: new RegExp(`^${root}/([^/]+)/content$`),
      when,
      answer: (call, { nowMs }, _request, [id = '']) =>
        fileReply('application/jsonl', found(call, id, nowMs).bytes, headers),
    }),
    ...itemOperations<UploadedFile>({
      operation,
      name: 'file',
      one: new RegExp(`^${root}/([^/]+)$`),
      when,
      found,
      shown: fileObject,
      list: {
        path: root,
        query: ['after', 'limit', 10_000],
        items(call, nowMs) {
          const purpose = new URLSearchParams(call.query).get('purpose')
          return files.list(credentialOf(call), nowMs).filter((file) => [null, file.purpose].includes(purpose))
        },
        shown: (page, hasMore) => listObject(page.map(fileObject), hasMore),
      },
      delete({ id }) {
        files.delete(id)
        return { id, object: 'file', deleted: true }
      },
    }),
  ]
}

function uploaded(call: SandboxCall, { refuse, errors, ...dialect }: BatchDialect, nowMs: number): UploadedFile {
  const parts = formParts(call)
  const file = parts?.find(({ name, filename }) => name === 'file' && filename !== undefined)
  if (file?.filename === undefined) return refuse("Missing required parameter: 'file'.", 'file')
  if (formText(parts, 'purpose') !== 'batch') return refuse("'purpose' must be one of 'batch'.", 'purpose')
  if (file.bytes.byteLength === 0) return refuse('The file must not be empty.', 'file')
  if (file.bytes.byteLength > dialect.maxFileBytes) throw new RefusedCall(errors.status(413, 'The file is too large.'))
  const lifeSeconds = formText(parts, 'expires_after[seconds]')
  return {
    id: `${dialect.fileIdPrefix}${randomUUID().replaceAll('-', '').slice(0, 22)}`,
    apiKey: credentialOf(call),
    filename: file.filename,
    purpose: 'batch',
    bytes: new Uint8Array(file.bytes),
    createdMs: nowMs,
    expiresMs: nowMs + (lifeSeconds === '' ? FILE_LIFE_MS : Number(lifeSeconds) * 1000),
  }
}

function fileObject({ id, bytes, filename, purpose, createdMs, expiresMs }: UploadedFile) {
  return {
    id,
    object: 'file',
    bytes: bytes.byteLength,
    created_at: seconds(createdMs),
    expires_at: seconds(expiresMs),
    filename,
    purpose,
    status: 'processed',
  }
}

/** Returns a page of a list. */
function listObject(data: readonly { readonly id: string }[], hasMore: boolean): object {
  return { object: 'list', data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more: hasMore }
}
