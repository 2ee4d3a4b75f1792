import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { parseVendorJson } from '../../../core/json.ts'
import {
  type BatchItem,
  type BatchOutcome,
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
import { asList, asNumber, asObject, asText, isGiven } from '../request-fields.ts'
import { credentialOf, jsonReply, RefusedCall, type SandboxCall, type SandboxOperation } from '../sandbox-operation.ts'
import { checkGeminiKey, field, GEMINI_ERRORS, GEMINI_HEADERS, modelMethod, refuseGemini } from './gemini-errors.ts'

interface BatchFacts {
  readonly model: string
  readonly displayName: string
  /** Undefined if the submission contained the requests. The batch then contains the answers. */
  readonly inputFile: string | undefined
  readonly isEmbedding: boolean
}

type Batch = VendorBatch<BatchFacts>

/** Method of a submission, and of each of its requests as a single call. */
const METHODS: Readonly<Record<string, string>> = {
  batchGenerateContent: 'generateContent',
  asyncBatchEmbedContent: 'embedContent',
}
const LIST_PATH = '/v1beta/batches'
const PATH = /^\/v1beta\/batches\/([^/:]+)(:cancel)?$/
const MAX_INLINE_BYTES = 20 * 1024 * 1024
const LIFE_MS = 48 * 60 * 60 * 1000
const RPC_TYPE = 'type.googleapis.com/google.ai.generativelanguage.v1main'

/**
 * Gemini's files and batches, with those of one sandbox (Gemini API, "Batch API"): each request is answered like a single call.
 * Requests are inline, with the answers in the batch, or in a file of JSON lines, with the answers in another file.
 */
export function geminiBatches(run: BatchRun, times: BatchTimes): SandboxOperation[] {
  const files = uploadedFiles()
  const batches = vendorBatches<BatchFacts>(run, times)
  const found = (call: SandboxCall, nowMs: number): Batch => {
    checkGeminiKey(call)
    const batch = batches.find(PATH.exec(call.path)?.[1] ?? '', credentialOf(call), nowMs)
    if (batch === undefined) throw new RefusedCall(GEMINI_ERRORS.status(404, 'Requested entity was not found.'))
    return batch
  }
  const base = { vendor: 'gemini', errors: GEMINI_ERRORS, needsJson: false, promptText: () => '' } as const
  return [
    ...geminiFiles(files),
    {
      ...base,
      needsJson: true,
      operation: 'batches',
      matches: ({ method, path }) => method === 'POST' && METHODS[modelMethod(path)?.method ?? ''] !== undefined,
      answer(call, { nowMs }) {
        checkGeminiKey(call)
        const id = randomUUID().replaceAll('-', '').padEnd(36, '0')
        const apiKey = credentialOf(call)
        const { facts, items } = checkedBatch(call, files, nowMs)
        const batch = batches.add({ id, apiKey, facts, items, lifeMs: LIFE_MS, isFaulty: items.length === 0 }, nowMs)
        return jsonReply(200, GEMINI_HEADERS, operationObject(batch, files, call), 2)
      },
    },
    {
      ...base,
      operation: 'batch-list',
      matches: ({ method, path }) => method === 'GET' && path === LIST_PATH,
      answer(call, { nowMs }) {
        checkGeminiKey(call)
        const query = new URLSearchParams(call.query)
        const all = batches.list(credentialOf(call), nowMs)
        const { page, hasMore } = pageAfter(all, query.get('pageToken'), Number(query.get('pageSize') ?? 10))
        const operations = page.map((batch) => operationObject(batch, files, call))
        const next = hasMore ? { nextPageToken: page.at(-1)?.id } : {}
        return jsonReply(200, GEMINI_HEADERS, { ...(operations.length > 0 ? { operations } : {}), ...next }, 2)
      },
    },
    {
      ...base,
      operation: 'batch',
      matches: ({ method, path }) => method === 'GET' && PATH.test(path) && !path.endsWith(':cancel'),
      answer: (call, { nowMs }) => jsonReply(200, GEMINI_HEADERS, operationObject(found(call, nowMs), files, call), 2),
    },
    {
      ...base,
      operation: 'batch-cancel',
      matches: ({ method, path }) => method === 'POST' && PATH.test(path) && path.endsWith(':cancel'),
      answer(call, { nowMs }) {
        batches.cancel(found(call, nowMs).id, nowMs)
        return jsonReply(200, GEMINI_HEADERS, {}, 2)
      },
    },
    {
      ...base,
      operation: 'batch-delete',
      matches: ({ method, path }) => method === 'DELETE' && PATH.test(path) && !path.endsWith(':cancel'),
      answer(call, { nowMs }) {
        batches.delete(found(call, nowMs).id)
        return jsonReply(200, GEMINI_HEADERS, {}, 2)
      },
    },
  ]
}

function checkedBatch(
  call: SandboxCall,
  files: UploadedFiles,
  nowMs: number,
): { facts: BatchFacts; items: readonly BatchItem[] } {
  const { model = '', method = '' } = modelMethod(call.path) ?? {}
  const batch = field(call.body, 'batch')
  const displayName = asText(field(batch, 'displayName'))
  if (displayName === '') refuseGemini('* BatchGenerateContentRequest.batch.display_name: display_name is required')
  const input = field(batch, 'inputConfig')
  const inputFile = field(input, 'fileName')
  const isEmbedding = method === 'asyncBatchEmbedContent'
  const itemOf = (request: unknown, key: unknown): BatchItem => ({
    key: asText(key),
    call: {
      method: 'POST',
      path: `/v1beta/models/${encodeURIComponent(model)}:${METHODS[method]}`,
      query: call.query,
      headers: { ...call.headers, 'content-type': 'application/json' },
      bytes: Buffer.from(JSON.stringify(request ?? null)),
    },
  })
  if (isGiven(inputFile)) {
    const file = files.find(asText(inputFile), credentialOf(call), nowMs)
    if (file === undefined) {
      const message = `You do not have permission to access the File ${asText(inputFile)} or it may not exist.`
      throw new RefusedCall(GEMINI_ERRORS.status(403, message))
    }
    const lines = jsonLines(file.bytes).map(parseVendorJson)
    const items = lines.some((line) => !isGiven(field(line, 'request')))
      ? []
      : lines.map((line) => itemOf(field(line, 'request'), field(line, 'key')))
    return { facts: { model, displayName, inputFile: file.id, isEmbedding }, items }
  }
  if (call.bytes.byteLength > MAX_INLINE_BYTES) refuseGemini('Request payload size exceeds the limit: 20971520 bytes.')
  const requests = asList(field(field(input, 'requests'), 'requests'))
  if (requests.length === 0) refuseGemini('* BatchGenerateContentRequest.batch.input_config: requests are required')
  const items = requests.map((entry) => itemOf(field(entry, 'request'), field(field(entry, 'metadata'), 'key')))
  return { facts: { model, displayName, inputFile: undefined, isEmbedding }, items }
}

const STATES = {
  pending: 'BATCH_STATE_PENDING',
  running: 'BATCH_STATE_RUNNING',
  canceling: 'BATCH_STATE_RUNNING',
  completed: 'BATCH_STATE_SUCCEEDED',
  canceled: 'BATCH_STATE_CANCELLED',
  expired: 'BATCH_STATE_EXPIRED',
  failed: 'BATCH_STATE_FAILED',
} as const satisfies Record<Batch['state'], string>

/** Returns a batch as a long-running operation. `done` is omitted until its end. */
function operationObject(batch: Batch, files: UploadedFiles, call: SandboxCall): object {
  const { id, facts, items, outcomes, createdMs, endedMs } = batch
  const name = `batches/${id}`
  const isAnswered = outcomes.some((outcome) => outcome?.kind === 'answered')
  // A batch cancelled while running ends normally and reports each request that was not run as cancelled.
  const state = batch.state === 'canceled' && isAnswered ? 'completed' : batch.state
  const output = state === 'completed' ? outputOf(batch, files, call) : undefined
  const count = (isCounted: (outcome: BatchOutcome | undefined) => boolean): string =>
    String(outcomes.filter(isCounted).length)
  const isOk = (outcome: BatchOutcome | undefined): boolean => outcome?.kind === 'answered' && outcome.status === 200
  const kind = facts.isEmbedding ? 'EmbedContentBatch' : 'GenerateContentBatch'
  const endTime = endedMs === undefined ? {} : { endTime: new Date(endedMs).toISOString() }
  return {
    name,
    metadata: {
      '@type': `${RPC_TYPE}.${kind}`,
      model: `models/${facts.model}`,
      displayName: facts.displayName,
      ...(facts.inputFile === undefined ? {} : { inputConfig: { fileName: facts.inputFile } }),
      ...(output === undefined ? {} : { output }),
      createTime: new Date(createdMs).toISOString(),
      ...endTime,
      updateTime: new Date(endedMs ?? createdMs).toISOString(),
      batchStats: {
        requestCount: String(items.length),
        successfulRequestCount: count(isOk),
        failedRequestCount: count((outcome) => outcome !== undefined && !isOk(outcome)),
        pendingRequestCount: count((outcome) => outcome === undefined),
      },
      state: STATES[state],
      name,
    },
    ...(endedMs === undefined ? {} : { done: true }),
    ...(output === undefined ? {} : { response: { '@type': `${RPC_TYPE}.${kind}Output`, ...output } }),
    ...(endedMs === undefined || output !== undefined ? {} : { error: failureOf(state) }),
  }
}

function failureOf(state: Batch['state']): object {
  switch (state) {
    case 'canceled':
      return { code: 13, message: 'Batch was cancelled.' }
    case 'expired':
      return { code: 4, message: 'The batch has expired.' }
    default:
      return { code: 3, message: 'The input file could not be processed.' }
  }
}

/** Returns the answers: a file of JSON lines with the keys of the input, or a list. */
function outputOf(batch: Batch, files: UploadedFiles, call: SandboxCall): object {
  const { id, facts, items, outcomes, endedMs = 0 } = batch
  if (facts.inputFile === undefined) {
    const inlinedResponses = items.map(({ key }, index) => ({
      ...(key === '' ? {} : { metadata: { key } }),
      ...resultOf(outcomes[index]),
    }))
    return { inlinedResponses: { inlinedResponses } }
  }
  const lines = items.map(({ key }, index) => `${JSON.stringify({ key, ...resultOf(outcomes[index]) })}\n`)
  const file = files.add({
    id: `files/batch-${id}`,
    apiKey: credentialOf(call),
    filename: `batch-${id}`,
    purpose: 'application/jsonl',
    bytes: Buffer.from(lines.join('')),
    createdMs: endedMs,
    expiresMs: endedMs + GEMINI_FILE_LIFE_MS,
  })
  return { responsesFile: file.id }
}

/** Codes of `google.rpc.Code` by the status of an HTTP answer. */
const CODES: Readonly<Record<number, number>> = {
  400: 3,
  401: 16,
  403: 7,
  404: 5,
  409: 10,
  429: 8,
  499: 1,
  501: 12,
  503: 14,
  504: 4,
}

function resultOf(outcome: BatchOutcome | undefined): object {
  if (outcome?.kind !== 'answered') return { error: { code: outcome?.kind === 'expired' ? 4 : 1 } }
  if (outcome.status === 200) return { response: outcome.body }
  const error = asObject(asObject(outcome.body)['error'])
  return { error: { code: CODES[asNumber(error['code']) ?? 0] ?? 13, message: asText(error['message']) } }
}

const UPLOAD_PATH = '/upload/v1beta/files'
const FILE_PATH = /^\/v1beta\/(files\/[^/:]+)$/
const DOWNLOAD_PATH = /^\/download\/v1beta\/(files\/[^/:]+):download$/

/** How long Gemini stores files (Gemini API, "Files API"). */
const GEMINI_FILE_LIFE_MS = 48 * 60 * 60 * 1000

/** The file service rejects longer ids, such as those of batch results. Downloads accept them. */
const LONGEST_ID = 'files/'.length + 40

/** Gemini: upload by `multipart/related`, metadata, download and deletion of files. */
function geminiFiles(files: UploadedFiles): SandboxOperation[] {
  const found = (call: SandboxCall, nowMs: number, pattern: RegExp): UploadedFile => {
    checkGeminiKey(call)
    const name = pattern.exec(call.path)?.[1] ?? ''
    if (pattern === FILE_PATH && name.length > LONGEST_ID)
      refuseGemini("* name: File ID (name excluding 'files/') cannot be more than 40 characters.\n")
    const file = files.find(name, credentialOf(call), nowMs)
    if (file !== undefined) return file
    const message = `You do not have permission to access the File ${name} or it may not exist.`
    throw new RefusedCall(GEMINI_ERRORS.status(403, message))
  }
  const base = { vendor: 'gemini', errors: GEMINI_ERRORS, needsJson: false, promptText: () => '' } as const
  return [
    {
      ...base,
      operation: 'files',
      matches: ({ method, path }) => method === 'POST' && path === UPLOAD_PATH,
      answer(call, { nowMs }) {
        checkGeminiKey(call)
        return jsonReply(200, GEMINI_HEADERS, { file: fileObject(files.add(uploaded(call, nowMs))) }, 2)
      },
    },
    {
      ...base,
      operation: 'file-content',
      matches: ({ method, path }) => method === 'GET' && DOWNLOAD_PATH.test(path),
      answer(call, { nowMs }) {
        const { bytes } = found(call, nowMs, DOWNLOAD_PATH)
        if (new URLSearchParams(call.query).get('alt') !== 'media') refuseGemini('Invalid value for alt: media only.')
        const headers = ['content-type', 'application/octet-stream', ...GEMINI_HEADERS]
        return { status: 200, headers, pieces: [bytes], streamed: false }
      },
    },
    {
      ...base,
      operation: 'file',
      matches: ({ method, path }) => method === 'GET' && FILE_PATH.test(path),
      answer: (call, { nowMs }) => jsonReply(200, GEMINI_HEADERS, fileObject(found(call, nowMs, FILE_PATH)), 2),
    },
    {
      ...base,
      operation: 'file-delete',
      matches: ({ method, path }) => method === 'DELETE' && FILE_PATH.test(path),
      answer(call, { nowMs }) {
        files.delete(found(call, nowMs, FILE_PATH).id, credentialOf(call), nowMs)
        return jsonReply(200, GEMINI_HEADERS, {}, 2)
      },
    },
  ]
}

function uploaded(call: SandboxCall, nowMs: number): UploadedFile {
  if (new URLSearchParams(call.query).get('uploadType') !== 'multipart')
    refuseGemini('The stand-in takes uploads with uploadType=multipart.')
  const parts = relatedParts(call)
  if (parts === undefined) return refuseGemini('Expected multipart/related with metadata and content.')
  const metadata = field(parseVendorJson(parts.metadata), 'file')
  return {
    id: `files/${randomUUID().replaceAll('-', '').slice(0, 12)}`,
    apiKey: credentialOf(call),
    filename: asText(field(metadata, 'displayName')),
    purpose: asText(field(metadata, 'mimeType')),
    bytes: parts.content,
    createdMs: nowMs,
    expiresMs: nowMs + GEMINI_FILE_LIFE_MS,
  }
}

/** The two parts of a `multipart/related` body (RFC 2387); undefined for any other. */
function relatedParts({ headers, bytes }: SandboxCall): { metadata: string; content: Uint8Array } | undefined {
  const boundary = /^multipart\/related;.*?boundary="?([^";]+)"?/i.exec(headers['content-type'] ?? '')?.[1]
  if (boundary === undefined) return undefined
  const body = Buffer.from(bytes)
  const first = body.indexOf(`--${boundary}\r\n`)
  const second = body.indexOf(`\r\n--${boundary}\r\n`, first + 1)
  const end = body.lastIndexOf(`\r\n--${boundary}--`)
  if (first !== 0 || second === -1 || end < second) return undefined
  const contentOf = (start: number, stop: number): Buffer => {
    const headEnd = body.indexOf('\r\n\r\n', start)
    return body.subarray(headEnd === -1 ? stop : headEnd + 4, stop)
  }
  return { metadata: contentOf(first, second).toString('utf8'), content: new Uint8Array(contentOf(second + 2, end)) }
}

function fileObject({ id, filename, purpose, bytes, createdMs, expiresMs }: UploadedFile): object {
  return {
    name: id,
    displayName: filename,
    mimeType: purpose,
    sizeBytes: String(bytes.byteLength),
    createTime: new Date(createdMs).toISOString(),
    updateTime: new Date(createdMs).toISOString(),
    expirationTime: new Date(expiresMs).toISOString(),
    uri: `https://generativelanguage.googleapis.com/v1beta/${id}`,
    state: 'ACTIVE',
    source: 'UPLOADED',
  }
}
