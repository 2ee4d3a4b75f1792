import { type ExactMembers, exactJsonText, parseExactJson } from '../../core/exact-json.ts'
import { isJsonObject, objectOf, parseVendorJson } from '../../core/json.ts'
import { memberNames } from '../../core/known-members.ts'
import type { InteractionRequest } from '../../endpoints/images/interactions/interaction-request.ts'
import { googleErrorFrom, redactGoogleKeys } from '../shared/google.ts'
import { commonParts, vendorAddress } from '../shared/vendor-options.ts'
import type {
  ImageOperation,
  NativeBatches,
  NativeCall,
  NativeReport,
  NativeResult,
  Vendor,
  VendorOptions,
  WireAnswer,
} from '../vendor.ts'
import { errorFrom, type GeminiApi } from './api-request.ts'
import { embeddingsFromWire, embeddingsToWire, MAX_EMBEDDING_INPUTS } from './embeddings.ts'
import { generateContent, generatedImages } from './generate-content.ts'
import { InteractionStream, interactionFromWire } from './interactions/interaction-answer.ts'
import { interactionToWire } from './interactions/interaction-to-wire.ts'
import { transcriptions } from './transcriptions.ts'

export { type VertexOptions, vertex } from './vertex.ts'

/** Options of {@link gemini}. */
export interface GeminiOptions extends VendorOptions {
  /** Origin of the API, with an optional path prefix. Default `https://generativelanguage.googleapis.com`. */
  readonly baseURL?: string | undefined
  /** API version in paths. Default `v1beta`, which has every model. */
  readonly apiVersion?: string | undefined
  /**
   * API for images. Default `interactions`, whose answers can be continued. `generateContent` is the older API with the same
   * requests and answers, but nothing can be continued.
   */
  readonly images?: 'interactions' | 'generateContent' | undefined
}

const GEMINI_OPTIONS = memberNames<Omit<GeminiOptions, keyof VendorOptions>>()('baseURL apiVersion images')

/**
 * Creates the vendor Google Gemini with its native API: chat and transcription through `generateContent`, embeddings through
 * `batchEmbedContents`, images through Interactions.
 * @throws TypeError if `baseURL`, `apiVersion` or `images` is invalid.
 */
export function gemini(options: GeminiOptions = {}): Vendor {
  const common = commonParts('gemini', options, GEMINI_OPTIONS, { id: 'gemini', displayName: 'Google Gemini' })
  const { apiKeys } = common
  const apiVersion = options.apiVersion ?? 'v1beta'
  if (!/^v\d\w*$/.test(apiVersion)) throw new TypeError(`apiVersion is not a version such as v1beta: ${apiVersion}`)
  const imagesBy = options.images ?? 'interactions'
  if (imagesBy !== 'interactions' && imagesBy !== 'generateContent')
    throw new TypeError(`images is neither interactions nor generateContent: ${String(imagesBy)}`)
  const versionPath = `/${apiVersion}`
  const { origin, prefix } = vendorAddress(options.baseURL ?? 'https://generativelanguage.googleapis.com', versionPath)
  const basePath = `${prefix}${versionPath}`
  const api: GeminiApi = { basePath, hasCallIds: true, wrapsCounts: true }
  return {
    ...common,
    telemetryName: 'gcp.gemini',
    origin,
    configuredBy: 'GEMINI_API_KEY or gemini({ apiKey })',
    claims: ['gemini-*', 'gemma-*', 'imagen-*', 'veo-*'],
    ...generateContent(api),
    embeddings: {
      maxInputs: MAX_EMBEDDING_INPUTS,
      takesTokens: false,
      toWire: (call) => embeddingsToWire(call, basePath),
      fromWire: embeddingsFromWire,
    },
    images: {
      interactions: imagesBy === 'generateContent' ? generatedImages(api) : interactions(basePath),
    },
    transcription: transcriptions(basePath),
    batches: generateContentBatches({ prefix, apiVersion }, apiKeys),
    errorFrom: (answer, nowMs) => errorFrom(answer, nowMs, apiKeys),
  }
}

function interactions(basePath: string): ImageOperation<InteractionRequest> {
  return {
    toWire: (call) => interactionToWire(call, basePath),
    fromWire: interactionFromWire,
    stream: (call) => new InteractionStream(call),
  }
}

/** Path prefix of files and batches, and the API version in paths. */
export interface BatchesAddress {
  /** Empty, or a prefix such as `/proxy`. */
  readonly prefix: string
  /** `v1beta`. */
  readonly apiVersion: string
}

const METHOD = ':generateContent'

/** No line of JSON text can contain it, because it follows a line break. */
const BOUNDARY = 'signalbox-batch'

/** Maximum page size of the list of batches. */
const PAGE_SIZE = 100

/** Maximum length of ids to delete. Longer ones, as of results, are rejected; their files expire after two days. */
const MAX_FILE_ID = 40

const BATCH_ID = /^batches\/[\w-]{1,200}$/
const FILE_ID = /^files\/([\w-]{1,200})$/

/**
 * Batches of `generateContent` (Gemini API, "Batch API"): requests are uploaded and answers returned as files of JSON lines with
 * keys. A batch embeds one text per request in another form, so embeddings are single calls.
 * @param apiKeys Removed from the text of a failure.
 */
function generateContentBatches({ prefix, apiVersion }: BatchesAddress, apiKeys: readonly string[]): NativeBatches {
  const root = `${prefix}/${apiVersion}`
  const call = (method: NativeCall['method'], path: string, apiKey: string): NativeCall => ({
    method,
    path,
    headers: headers(apiKey),
    body: null,
  })
  return {
    // A file has up to 2 GB. The number of lines is unlimited.
    limits: { maxRequests: Number.MAX_SAFE_INTEGER, maxBytes: 2_000_000_000, maxLineBytes: 20_000_000 },
    takes: ({ path }) => path.startsWith(`${root}/models/`) && path.endsWith(METHOD),
    line: ({ customId, body }) => `{"key":${JSON.stringify(customId)},"request":${body}}`,
    upload: {
      call: (name, apiKey) => ({
        method: 'POST',
        path: `${prefix}/upload/${apiVersion}/files?uploadType=multipart`,
        headers: [...headers(apiKey), 'content-type', `multipart/related; boundary=${BOUNDARY}`],
        body: uploadBody(name),
      }),
      uploaded(answer) {
        const file = jsonOf(answer)?.['file']
        const id = isJsonObject(file) ? file['name'] : undefined
        return typeof id === 'string' && FILE_ID.test(id) ? id : undefined
      },
    },
    create: ({ fileId, path, name }, apiKey) => ({
      method: 'POST',
      path: `${path.slice(0, -METHOD.length)}:batchGenerateContent`,
      headers: [...headers(apiKey), 'content-type', 'application/json'],
      body: JSON.stringify({ batch: { displayName: name, inputConfig: { fileName: fileId } } }),
    }),
    created: (answer) => batchIdOf(jsonOf(answer)),
    search: {
      call: (after, apiKey) => {
        const page = after === undefined ? '' : `&pageToken=${encodeURIComponent(after)}`
        return call('GET', `${root}/batches?pageSize=${PAGE_SIZE}${page}`, apiKey)
      },
      // The order of the list is not documented, so it is read completely.
      read: (answer, { name }) => foundIn(jsonOf(answer), name),
    },
    read: (batchId, apiKey) => call('GET', `${root}/${batchId}`, apiKey),
    report: (answer) => reportFrom(jsonOf(answer), apiKeys),
    results: (fileId, apiKey) => call('GET', `${prefix}/download/${apiVersion}/${fileId}:download?alt=media`, apiKey),
    result,
    cancel: (batchId, apiKey) => call('POST', `${root}/${batchId}:cancel`, apiKey),
    remove: ({ fileId, batchId, results }, apiKey) =>
      [fileId, ...results.filter(isDeletable), batchId]
        .filter((id) => id !== undefined)
        .map((id) => call('DELETE', `${root}/${id}`, apiKey)),
  }
}

function headers(apiKey: string): string[] {
  return [...(apiKey === '' ? [] : ['x-goog-api-key', apiKey]), 'accept-encoding', 'identity']
}

/** Metadata and content in one body (RFC 2387). */
function uploadBody(name: string): NativeCall['body'] {
  const metadata = JSON.stringify({ file: { displayName: name, mimeType: 'application/jsonl' } })
  return {
    before: `--${BOUNDARY}\r\ncontent-type: application/json; charset=utf-8\r\n\r\n${metadata}\r\n--${BOUNDARY}\r\ncontent-type: application/jsonl\r\n\r\n`,
    between: '\n',
    after: `\r\n--${BOUNDARY}--\r\n`,
  }
}

function isDeletable(fileId: string): boolean {
  return (FILE_ID.exec(fileId)?.[1] ?? '').length <= MAX_FILE_ID
}

type Fields = Readonly<Record<string, unknown>>

function jsonOf({ body }: WireAnswer): Fields | undefined {
  const value = parseVendorJson(new TextDecoder().decode(body))
  return isJsonObject(value) ? value : undefined
}

function batchIdOf(operation: Fields | undefined): string | undefined {
  const name = operation?.['name']
  return typeof name === 'string' && BATCH_ID.test(name) ? name : undefined
}

/** The metadata of the operation contains the batch. */
function batchOf(operation: Fields): Fields {
  return isJsonObject(operation['metadata']) ? operation['metadata'] : operation
}

function foundIn(
  list: Fields | undefined,
  name: string,
): { readonly batchId?: string | undefined; readonly after?: string | undefined } | undefined {
  // A list without entries has no member for them.
  const operations = list?.['operations'] ?? []
  if (list === undefined || !Array.isArray(operations)) return undefined
  const found = operations.filter(isJsonObject).find((operation) => batchOf(operation)['displayName'] === name)
  const next = list['nextPageToken']
  if (found !== undefined) {
    const batchId = batchIdOf(found)
    return batchId === undefined ? undefined : { batchId }
  }
  return typeof next === 'string' && next !== '' ? { after: next } : {}
}

function reportFrom(operation: Fields | undefined, apiKeys: readonly string[]): NativeReport | undefined {
  if (operation === undefined) return undefined
  const state = batchOf(operation)['state']
  if (typeof state !== 'string') return undefined
  // The reference and SDKs use BATCH_STATE_…, the guide JOB_STATE_….
  const name = state.replace(/^(?:BATCH|JOB)_STATE_/, '')
  const isOver = operation['done'] === true
  const report = { isExpired: false, isCancelled: false, results: resultsOf(operation), failure: undefined } as const
  switch (name) {
    case 'SUCCEEDED':
    case 'PARTIALLY_SUCCEEDED':
      return { ...report, state: 'ended' }
    case 'EXPIRED':
      return { ...report, state: 'ended', isExpired: true }
    case 'CANCELLED':
      return { ...report, state: 'ended', isCancelled: true }
    case 'FAILED':
      return { ...report, state: 'failed', results: [], failure: failureOf(operation, apiKeys) }
    default:
      // Unknown states count as ended or running, depending on whether they are final.
      return { ...report, state: isOver ? 'ended' : 'running' }
  }
}

/** Returns the file of the answers, which the operation's response and the batch both name. */
function resultsOf(operation: Fields): string[] {
  for (const output of [operation['response'], batchOf(operation)['output']]) {
    const fileId = isJsonObject(output) ? output['responsesFile'] : undefined
    if (typeof fileId === 'string' && FILE_ID.test(fileId)) return [fileId]
  }
  return []
}

function failureOf(operation: Fields, apiKeys: readonly string[]): NonNullable<NativeReport['failure']> {
  const error = isJsonObject(operation['error']) ? operation['error'] : batchOf(operation)['error']
  const { code, message } = objectOf(error)
  const [, name] = typeof code === 'number' ? httpErrorOf(code) : [0, 'UNKNOWN']
  return { code: name, message: redactGoogleKeys(typeof message === 'string' ? message : '', apiKeys) }
}

/** HTTP statuses and names of `google.rpc.Code`. Errors of single requests have only its number. */
const HTTP_ERRORS: ReadonlyMap<number, readonly [status: number, name: string]> = new Map([
  [1, [499, 'CANCELLED']],
  [2, [500, 'UNKNOWN']],
  [3, [400, 'INVALID_ARGUMENT']],
  [4, [504, 'DEADLINE_EXCEEDED']],
  [5, [404, 'NOT_FOUND']],
  [6, [409, 'ALREADY_EXISTS']],
  [7, [403, 'PERMISSION_DENIED']],
  [8, [429, 'RESOURCE_EXHAUSTED']],
  [9, [400, 'FAILED_PRECONDITION']],
  [10, [409, 'ABORTED']],
  [11, [400, 'OUT_OF_RANGE']],
  [12, [501, 'UNIMPLEMENTED']],
  [13, [500, 'INTERNAL']],
  [14, [503, 'UNAVAILABLE']],
  [15, [500, 'DATA_LOSS']],
  [16, [401, 'UNAUTHENTICATED']],
] as const)

const CANCELLED = 1

/** A code may already be an HTTP status. */
function httpErrorOf(code: number): readonly [status: number, name: string] {
  return HTTP_ERRORS.get(code) ?? [code >= 400 && code <= 599 ? code : 500, 'UNKNOWN']
}

/** Arguments of tools keep the vendor's digits. */
const EXACT: ExactMembers = new Map([['args', 'text']])

function result(line: string): NativeResult | undefined {
  const entry = parseExactJson(line, EXACT)
  const { key: customId, response, error } = objectOf(entry)
  if (typeof customId !== 'string') return undefined
  if (isJsonObject(response)) return { customId, kind: 'answered', status: 200, body: exactJsonText(response) }
  if (!isJsonObject(error)) return undefined
  const { code, message, details } = error
  if (code === CANCELLED) return { customId, kind: 'cancelled' }
  const [status, name] = httpErrorOf(typeof code === 'number' ? code : 0)
  const given = googleErrorFrom({ error })
  const body = {
    error: {
      code: status,
      message: typeof message === 'string' ? message : '',
      status: given?.token ?? name,
      ...(Array.isArray(details) ? { details } : {}),
    },
  }
  return { customId, kind: 'answered', status, body: JSON.stringify(body) }
}
