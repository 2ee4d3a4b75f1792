import { type ExactMembers, exactJsonText, parseExactJson } from '../../core/exact-json.ts'
import { isJsonObject, nonEmptyText, objectOf, parseVendorJson } from '../../core/json.ts'
import { asBuffer } from '../../wire/chunks.ts'
import type { LinesBody, NativeBatches, NativeCall, NativeReport, NativeResult, WireAnswer } from '../vendor.ts'
import { bearerHeaders, redactCredentials } from './vendor-options.ts'

/** The differences between servers with OpenAI's batches. */
export interface OpenAIBatchesDialect {
  /** Path of the API below the vendor's origin: `/v1`. */
  readonly prefix: string
  /** Paths below `prefix` whose requests can be in a batch: `/chat/completions`. */
  readonly paths: readonly string[]
  readonly limits: NativeBatches['limits']
  /** Member of `metadata` that holds the gateway's name of a batch. */
  readonly nameMember: string
  /** Seconds after which the vendor deletes an input file, or `undefined` if that cannot be set. */
  readonly fileLifetimeSeconds: number | undefined
  readonly apiKeys: readonly string[]
}

/** Maximum batches per page of their list (OpenAI API reference, "List batch"). */
const PAGE = 100

/** Creates OpenAI's batches: requests in one file, answers in another and errors in a third. */
export function openaiBatches(dialect: OpenAIBatchesDialect): NativeBatches {
  const { prefix, paths, limits, nameMember, apiKeys } = dialect
  const call = (method: NativeCall['method'], path: string, apiKey: string): NativeCall => ({
    method,
    path: `${prefix}${path}`,
    headers: bearerHeaders(apiKey, 'application/json'),
    body: null,
  })
  // Servers name request paths as OpenAI does, wherever their own API is.
  const publicPath = (path: string): string => `/v1${path.slice(prefix.length)}`
  return {
    limits,
    takes: ({ path }) => path.startsWith(prefix) && paths.includes(path.slice(prefix.length)),
    line: ({ customId, path, body }) =>
      `{"custom_id":${JSON.stringify(customId)},"method":"POST","url":"${publicPath(path)}","body":${unstreamed(body)}}`,
    upload: {
      call: (name, apiKey) => ({
        ...call('POST', '/files', apiKey),
        headers: formHeaders(bearerHeaders(apiKey, 'application/json'), boundaryOf(name)),
        body: fileForm(name, dialect.fileLifetimeSeconds),
      }),
      uploaded: idOf,
    },
    create: ({ fileId, path, name }, apiKey) => ({
      ...call('POST', '/batches', apiKey),
      body: JSON.stringify({
        input_file_id: fileId,
        endpoint: publicPath(path),
        completion_window: '24h',
        metadata: { [nameMember]: name },
      }),
    }),
    created: idOf,
    search: {
      call: (after, apiKey) =>
        call(
          'GET',
          `/batches?limit=${PAGE}${after === undefined ? '' : `&after=${encodeURIComponent(after)}`}`,
          apiKey,
        ),
      read: (answer, sought) => readPage(answer, nameMember, sought),
    },
    read: (batchId, apiKey) => call('GET', `/batches/${encodeURIComponent(batchId)}`, apiKey),
    report: (answer) => readReport(answer, apiKeys),
    results: (fileId, apiKey) => ({
      ...call('GET', `/files/${encodeURIComponent(fileId)}/content`, apiKey),
      headers: bearerHeaders(apiKey, '*/*'),
    }),
    result: readResult,
    cancel: (batchId, apiKey) => call('POST', `/batches/${encodeURIComponent(batchId)}/cancel`, apiKey),
    remove: ({ fileId, results }, apiKey) =>
      [...(fileId === undefined ? [] : [fileId]), ...results].map((id) =>
        call('DELETE', `/files/${encodeURIComponent(id)}`, apiKey),
      ),
  }
}

/** A batch has only whole answers, even for models that only stream in single calls. */
function unstreamed(body: string): string {
  if (!body.includes('"stream":true')) return body
  const request = parseExactJson(body)
  if (!isJsonObject(request) || request['stream'] !== true) return body
  const { stream: _stream, stream_options: _options, ...whole } = request
  return exactJsonText(whole)
}

/** No line contains the boundary, because callers cannot guess names. */
function boundaryOf(name: string): string {
  return `signalbox-${name}`
}

function formHeaders(headers: readonly string[], boundary: string): readonly string[] {
  return headers.map((text, place) =>
    headers[place - 1] === 'content-type' ? `multipart/form-data; boundary=${boundary}` : text,
  )
}

/** Creates a form with the lines as its file (OpenAI API reference, "Upload file"). */
function fileForm(name: string, lifetimeSeconds: number | undefined): LinesBody {
  const boundary = boundaryOf(name)
  const field = (field: string, value: string): string =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${field}"\r\n\r\n${value}\r\n`
  const lifetime =
    lifetimeSeconds === undefined
      ? ''
      : field('expires_after[anchor]', 'created_at') + field('expires_after[seconds]', String(lifetimeSeconds))
  const file = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${name}.jsonl"\r\ncontent-type: application/jsonl\r\n\r\n`
  return {
    before: `${field('purpose', 'batch')}${lifetime}${file}`,
    between: '\n',
    after: `\n\r\n--${boundary}--\r\n`,
  }
}

function bodyOf({ body }: WireAnswer): Record<string, unknown> | undefined {
  return objectIn(asBuffer(body).toString('utf8'))
}

function objectIn(text: string): Record<string, unknown> | undefined {
  const value = parseVendorJson(text)
  return isJsonObject(value) ? value : undefined
}

function idOf(answer: WireAnswer): string | undefined {
  return nonEmptyText(bodyOf(answer)?.['id'])
}

function readPage(
  answer: WireAnswer,
  nameMember: string,
  { name, sinceMs }: { readonly name: string; readonly sinceMs: number },
): { readonly batchId?: string | undefined; readonly after?: string | undefined } | undefined {
  const page = bodyOf(answer)
  const data = page?.['data']
  if (page === undefined || !Array.isArray(data)) return undefined
  let last: string | undefined
  for (const batch of data) {
    if (!isJsonObject(batch)) return undefined
    const { id, metadata, created_at: createdAt } = batch
    if (isJsonObject(metadata) && metadata[nameMember] === name) return { batchId: nonEmptyText(id) }
    if (typeof createdAt === 'number' && createdAt * 1_000 < sinceMs) return {}
    last = nonEmptyText(id)
  }
  return page['has_more'] === true ? { after: nonEmptyText(page['last_id']) ?? last } : {}
}

/** "The batch object" of OpenAI's API reference. */
function readReport(answer: WireAnswer, apiKeys: readonly string[]): NativeReport | undefined {
  const batch = bodyOf(answer)
  const state = stateOf(batch?.['status'])
  if (batch === undefined || state === undefined) return undefined
  const files = [nonEmptyText(batch['output_file_id']), nonEmptyText(batch['error_file_id'])]
  return {
    state,
    isExpired: batch['status'] === 'expired',
    isCancelled: batch['status'] === 'cancelled',
    results: files.filter((id) => id !== undefined),
    failure: state === 'failed' ? failureOf(batch['errors'], apiKeys) : undefined,
  }
}

function stateOf(status: unknown): NativeReport['state'] | undefined {
  switch (status) {
    case 'validating':
    case 'in_progress':
    case 'finalizing':
    case 'cancelling':
      return 'running'
    case 'completed':
    case 'expired':
    case 'cancelled':
      return 'ended'
    case 'failed':
      return 'failed'
    default:
      return undefined
  }
}

function failureOf(errors: unknown, apiKeys: readonly string[]): NonNullable<NativeReport['failure']> {
  const data = isJsonObject(errors) ? errors['data'] : undefined
  const first: unknown = Array.isArray(data) ? data[0] : undefined
  const { code, message } = objectOf(first)
  return {
    code: nonEmptyText(code) ?? 'failed',
    message: redactCredentials(nonEmptyText(message) ?? 'the vendor does not say why', apiKeys),
  }
}

/** Some servers send the arguments of a tool call as an object. Its numbers keep their digits. */
const EXACT: ExactMembers = new Map([['arguments', 'text']])

/** Reads "The request output object" (OpenAI API reference). Its errors are in `response` or, without one, in `error`. */
function readResult(line: string): NativeResult | undefined {
  // Vectors have many numbers and no arguments, so they are parsed without exact numbers.
  const value = line.includes('"arguments"') ? parseExactJson(line, EXACT) : parseVendorJson(line)
  const result = isJsonObject(value) ? value : undefined
  const customId = nonEmptyText(result?.['custom_id'])
  if (result === undefined || customId === undefined) return undefined
  const { response, error } = result
  if (isJsonObject(response) && typeof response['status_code'] === 'number') {
    const { status_code: status, body } = response
    // Without a body, the reason is next to the response.
    const told = isJsonObject(body) || !isJsonObject(error) ? (body ?? null) : { error }
    return { customId, kind: 'answered', status, body: exactJsonText(told) }
  }
  if (!isJsonObject(error)) return undefined
  if (error['code'] === 'batch_expired') return { customId, kind: 'expired' }
  if (error['code'] === 'batch_cancelled') return { customId, kind: 'cancelled' }
  return { customId, kind: 'answered', status: 500, body: JSON.stringify({ error }) }
}
