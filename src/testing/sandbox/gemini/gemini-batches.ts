import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { parseVendorJson } from '../../../core/json.ts'
import {
  type BatchItem,
  type BatchOutcome,
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
import { asList, asNumber, asObject, asText, isGiven } from '../request-fields.ts'
import { credentialOf, fileReply, type SandboxCall, type SandboxOperation } from '../sandbox-operation.ts'
import { field, GEMINI_HEADERS, geminiOperation, methodPath, refuseGemini } from './gemini-request.ts'

interface BatchFacts {
  readonly model: string
  readonly displayName: string
  /** Undefined if the submission contained the requests. The batch then contains the answers. */
  readonly inputFile: string | undefined
  readonly isEmbedding: boolean
}

type Batch = VendorBatch<BatchFacts>

const MAX_INLINE_BYTES = 20 * 1024 * 1024
/** How long Gemini stores batches and files (Gemini API, "Files API"). */
const LIFE_MS = 48 * 60 * 60 * 1000
const RPC_TYPE = 'type.googleapis.com/google.ai.generativelanguage.v1main'

/**
 * Gemini's files and batches, with those of one sandbox (Gemini API, "Batch API"): each request is answered like a single call.
 * Requests are inline, with the answers in the batch, or in a file of JSON lines, with the answers in another file.
 */
export function geminiBatches(run: BatchRun, times: BatchTimes): SandboxOperation[] {
  const files = new UploadedFiles()
  const batches = new VendorBatches<BatchFacts>(run, times)
  const shown = (batch: Batch, call: SandboxCall): object => operationObject(batch, files, call)
  const submit = geminiOperation({
    operation: 'batches',
    post: methodPath('batchGenerateContent|asyncBatchEmbedContent'),
    json(call, { nowMs }, _request, [model = '', method]) {
      const id = randomUUID().replaceAll('-', '').padEnd(36, '0')
      const isEmbedding = method === 'asyncBatchEmbedContent'
      const batch = checkedBatch(call, { model: decodeURIComponent(model), isEmbedding }, files, nowMs)
      return shown(batches.add({ id, apiKey: credentialOf(call), ...batch, lifeMs: LIFE_MS }, nowMs), call)
    },
  })
  const others = itemOperations<Batch>({
    operation: geminiOperation,
    name: 'batch',
    one: /^\/v1beta\/batches\/([^/:]+)$/,
    found: (call, id, nowMs) =>
      batches.find(id, credentialOf(call), nowMs) ?? refuseGemini('Requested entity was not found.', 404),
    shown,
    list: {
      path: '/v1beta/batches',
      query: ['pageToken', 'pageSize', 10],
      items: (call, nowMs) => batches.list(credentialOf(call), nowMs),
      shown: (page, hasMore, call) => ({
        operations: page.length > 0 ? page.map((batch) => shown(batch, call)) : undefined,
        nextPageToken: hasMore ? page.at(-1)?.id : undefined,
      }),
    },
    cancel: {
      path: /^\/v1beta\/batches\/([^/:]+):cancel$/,
      cancel({ id }, _call, nowMs) {
        batches.cancel(id, nowMs)
        return {}
      },
    },
    delete({ id }) {
      batches.delete(id)
      return {}
    },
  })
  return [...geminiFiles(files), submit, ...others]
}

function checkedBatch(
  call: SandboxCall,
  { model, isEmbedding }: Pick<BatchFacts, 'model' | 'isEmbedding'>,
  files: UploadedFiles,
  nowMs: number,
): { facts: BatchFacts; items: BatchItem[]; isFaulty: boolean } {
  const batch = field(call.body, 'batch')
  const displayName = asText(field(batch, 'displayName'))
  if (displayName === '') refuseGemini('* BatchGenerateContentRequest.batch.display_name: display_name is required')
  const input = field(batch, 'inputConfig')
  const fileName = field(input, 'fileName')
  const path = `/v1beta/models/${encodeURIComponent(model)}:${isEmbedding ? 'embedContent' : 'generateContent'}`
  const itemOf = (entry: unknown, key: unknown): BatchItem => {
    return { key: asText(key), call: batchedCall(path, field(entry, 'request'), call) }
  }
  if (isGiven(fileName)) {
    const file = files.find(asText(fileName), credentialOf(call), nowMs) ?? refuseFile(asText(fileName))
    const lines = jsonLines(file.bytes).map(parseVendorJson)
    const isFaulty = lines.length === 0 || lines.some((line) => !isGiven(field(line, 'request')))
    const items = isFaulty ? [] : lines.map((line) => itemOf(line, field(line, 'key')))
    return { facts: { model, displayName, inputFile: file.id, isEmbedding }, items, isFaulty }
  }
  if (call.bytes.byteLength > MAX_INLINE_BYTES) refuseGemini('Request payload size exceeds the limit: 20971520 bytes.')
  const requests = asList(field(field(input, 'requests'), 'requests'))
  if (requests.length === 0) refuseGemini('* BatchGenerateContentRequest.batch.input_config: requests are required')
  const items = requests.map((entry) => itemOf(entry, field(field(entry, 'metadata'), 'key')))
  return { facts: { model, displayName, inputFile: undefined, isEmbedding }, items, isFaulty: false }
}

function refuseFile(name: string): never {
  return refuseGemini(`You do not have permission to access the File ${name} or it may not exist.`, 403)
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
  const pending = outcomes.filter((outcome) => outcome === undefined).length
  const isOk = outcomes.filter((outcome) => outcome?.kind === 'answered' && outcome.status === 200).length
  const type = `${RPC_TYPE}.${facts.isEmbedding ? 'EmbedContentBatch' : 'GenerateContentBatch'}`
  const endTime = endedMs === undefined ? undefined : new Date(endedMs).toISOString()
  const createTime = new Date(createdMs).toISOString()
  return {
    name,
    metadata: {
      '@type': type,
      model: `models/${facts.model}`,
      displayName: facts.displayName,
      inputConfig: facts.inputFile === undefined ? undefined : { fileName: facts.inputFile },
      output,
      createTime,
      endTime,
      updateTime: endTime ?? createTime,
      batchStats: {
        requestCount: String(items.length),
        successfulRequestCount: String(isOk),
        failedRequestCount: String(outcomes.length - pending - isOk),
        pendingRequestCount: String(pending),
      },
      state: STATES[state],
      name,
    },
    done: endedMs === undefined ? undefined : true,
    response: output && { '@type': `${type}Output`, ...output },
    error: endedMs === undefined || output !== undefined ? undefined : failureOf(state),
  }
}

function failureOf(state: Batch['state']): object {
  if (state === 'canceled') return { code: 13, message: 'Batch was cancelled.' }
  if (state === 'expired') return { code: 4, message: 'The batch has expired.' }
  return { code: 3, message: 'The input file could not be processed.' }
}

/** Returns the answers: a file of JSON lines with the keys of the input, or a list. */
function outputOf({ id, facts, items, outcomes, endedMs = 0 }: Batch, files: UploadedFiles, call: SandboxCall): object {
  const results = items.map(({ key }, index) => ({ key, result: resultOf(outcomes[index]) }))
  if (facts.inputFile === undefined) {
    const responses = results.map(({ key, result }) => ({ metadata: key === '' ? undefined : { key }, ...result }))
    return { inlinedResponses: { inlinedResponses: responses } }
  }
  const file = files.add({
    id: `files/batch-${id}`,
    apiKey: credentialOf(call),
    filename: `batch-${id}`,
    purpose: 'application/jsonl',
    bytes: Buffer.from(results.map(({ key, result }) => `${JSON.stringify({ key, ...result })}\n`).join('')),
    createdMs: endedMs,
    expiresMs: endedMs + LIFE_MS,
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

/** The file service rejects longer ids, such as those of batch results. Downloads accept them. */
const MAX_ID_LENGTH = 'files/'.length + 40

/** Gemini: upload by `multipart/related`, metadata, download and deletion of files. */
function geminiFiles(files: UploadedFiles): SandboxOperation[] {
  const found = (call: SandboxCall, id: string, nowMs: number): UploadedFile =>
    files.find(id, credentialOf(call), nowMs) ?? refuseFile(id)
  return [
    geminiOperation({
      operation: 'files',
      post: '/upload/v1beta/files',
      needsJson: false,
      json: (call, { nowMs }) => ({ file: fileObject(files.add(uploaded(call, nowMs))) }),
    }),
    geminiOperation({
      operation: 'file-content',
      get: /^\/download\/v1beta\/(files\/[^/:]+):download$/,
      answer(call, { nowMs }, _request, [id = '']) {
        const { bytes } = found(call, id, nowMs)
        if (new URLSearchParams(call.query).get('alt') !== 'media') refuseGemini('Invalid value for alt: media only.')
        return fileReply('application/octet-stream', bytes, GEMINI_HEADERS)
      },
    }),
    ...itemOperations<UploadedFile>({
      operation: geminiOperation,
      name: 'file',
      one: /^\/v1beta\/(files\/[^/:]+)$/,
      found(call, id, nowMs) {
        const message = "* name: File ID (name excluding 'files/') cannot be more than 40 characters.\n"
        return id.length > MAX_ID_LENGTH ? refuseGemini(message) : found(call, id, nowMs)
      },
      shown: fileObject,
      delete({ id }) {
        files.delete(id)
        return {}
      },
    }),
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
    expiresMs: nowMs + LIFE_MS,
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
