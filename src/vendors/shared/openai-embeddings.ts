import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import {
  asksForFloats,
  base64Dimensions,
  isFiniteVector,
  shapeVector,
  sizeFailure,
  vectorShape,
} from '../../endpoints/embeddings/embeddings-endpoint.ts'
import type {
  EmbeddingsRequest,
  EmbeddingsResult,
  EmbeddingVector,
} from '../../endpoints/embeddings/embeddings-request.ts'
import { asBuffer, joinChunks } from '../../wire/chunks.ts'
import {
  bytesBetween,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  JsonCursor,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  textBetween,
} from '../../wire/json-cursor.ts'
import { replaceString } from '../../wire/json-edits.ts'
import type { AnswerBody, EmbeddingsOperation, VendorCall, WireRequest } from '../vendor.ts'
import { applyFieldRules, type FieldRules, type OperationPath, pathFor } from './openai-chat-dialect.ts'
import { tellsPurchasePrice } from './vendor-cost.ts'
import { bearerHeaders, type KeyHeaders } from './vendor-options.ts'

/** The differences between servers of OpenAI's embeddings dialect. */
export interface OpenAIEmbeddingsDialect {
  /** Path below the vendor's origin. */
  readonly path: OperationPath
  /** Headers of a call. Default: a bearer key. */
  readonly headers?: KeyHeaders | undefined
  readonly maxInputs: number
  readonly maxTokens?: EmbeddingsOperation['maxTokens']
  readonly takesTokens: boolean
  readonly rules: FieldRules<EmbeddingsRequest>
  /** Whether the vendor can encode base64. If not, the gateway encodes for callers who request it. */
  readonly givesBase64: boolean
  /**
   * Whether to request base64 for translated answers: reading it costs an eighth of reading numbers. False for servers that may not
   * support it, and for requests whose vectors are not floats in base64.
   */
  readonly prefersBase64: boolean | ((request: EmbeddingsRequest) => boolean)
  /**
   * Whether vectors are always base64 of signed bytes. Then no encoding is requested, and callers get the bytes as numbers. Their
   * length is not 1.
   */
  readonly givesSignedBytes?: boolean | undefined
}

/** Creates embeddings for a server of OpenAI's dialect. Answers to a caller's own bytes pass through, all others are translated. */
export function openaiEmbeddings(dialect: OpenAIEmbeddingsDialect): EmbeddingsOperation {
  const passes = (call: VendorCall<EmbeddingsRequest>): boolean =>
    call.bytes !== undefined &&
    dialect.givesSignedBytes !== true &&
    (dialect.givesBase64 || call.request.encoding_format !== 'base64')
  return {
    maxInputs: dialect.maxInputs,
    maxTokens: dialect.maxTokens,
    takesTokens: dialect.takesTokens,
    toWire: (call) => toWire(call, dialect, passes(call)),
    fromWire(answer, call) {
      const text = asBuffer(answer.body).toString('utf8')
      if (dialect.givesSignedBytes !== true) return readEmbeddings(text, call)
      const result = readEmbeddings(text, call, false)
      return result && { ...result, vectors: result.vectors.map(signedBytes) }
    },
    passThrough: { applies: passes, fromWire: passEmbeddings },
  }
}

function toWire(call: VendorCall<EmbeddingsRequest>, dialect: OpenAIEmbeddingsDialect, passes: boolean): WireRequest {
  const asked = passes ? call.request : encodedRequest(call.request, dialect)
  const { body: ruled, dropped } = applyFieldRules(asked, dialect.rules)
  const { upstream } = call.model
  const edited =
    ruled === undefined && passes && call.bytes !== undefined
      ? replaceString(asBuffer(call.bytes), 'model', call.request.model, upstream)
      : undefined
  return {
    path: pathFor(dialect.path, upstream),
    headers: (dialect.headers ?? bearerHeaders)(call.apiKey, 'application/json'),
    body: edited ?? JSON.stringify({ ...(ruled ?? asked), model: upstream }),
    dropped,
  }
}

/** Returns the request for an answer that will be translated. */
function encodedRequest(
  request: EmbeddingsRequest,
  { givesSignedBytes, prefersBase64 }: OpenAIEmbeddingsDialect,
): EmbeddingsRequest {
  if (typeof prefersBase64 === 'boolean' ? prefersBase64 : prefersBase64(request))
    return { ...request, encoding_format: 'base64' }
  if (givesSignedBytes !== true) return request
  const { encoding_format: _own, ...rest } = request
  return rest as EmbeddingsRequest
}

function signedBytes(vector: EmbeddingVector): EmbeddingVector {
  return typeof vector === 'string' ? Array.from(Int8Array.from(Buffer.from(vector, 'base64'))) : vector
}

/**
 * Reads the text of a whole embedding answer, vectors in the order of the inputs. Undefined when it is not an embedding
 * list, or does not hold one vector of finite numbers for each input.
 * @param hasFloats Whether base64 holds float32.
 */
function readEmbeddings(
  text: string,
  call: VendorCall<EmbeddingsRequest>,
  hasFloats = asksForFloats(call.request),
): EmbeddingsResult | undefined {
  const body = parseVendorJson(text)
  if (!isJsonObject(body) || !Array.isArray(body['data'])) return undefined
  const items: unknown[] = body['data']
  if (items.length !== inputCount(call.request.input)) return undefined
  const vectors: EmbeddingVector[] = []
  for (const [position, item] of items.entries()) {
    if (!isJsonObject(item) || !isVector(item['embedding'], hasFloats)) return undefined
    const index = item['index'] ?? position
    if (typeof index !== 'number' || !(index in items) || vectors[index] !== undefined) return undefined
    vectors[index] = item['embedding']
  }
  return { vectors, usage: embeddingsUsage(body['usage']) }
}

/** Reads usage of an embedding answer. If a server reports only a total, it is the input. */
function embeddingsUsage(value: unknown): Usage | undefined {
  if (!isJsonObject(value)) return undefined
  const tokens = typeof value['prompt_tokens'] === 'number' ? value['prompt_tokens'] : value['total_tokens']
  return typeof tokens === 'number' ? { inputTokens: tokens } : {}
}

function isVector(value: unknown, hasFloats: boolean): value is EmbeddingVector {
  if (typeof value === 'string') return !hasFloats || isFiniteVector(value)
  return Array.isArray(value) && value.every((part) => typeof part === 'number' && Number.isFinite(part))
}

/**
 * Passes an embedding answer through: numbers are not parsed, base64 is checked for NaN and infinity, and the rest is written
 * again with the caller's model id and full usage. An answer with another layout, or with another encoding or size than requested,
 * is parsed completely.
 * Undefined if it is not an embedding list.
 */
function passEmbeddings(chunks: readonly Uint8Array[], call: VendorCall<EmbeddingsRequest>): AnswerBody | undefined {
  const encoding = call.request.encoding_format === 'base64' ? 'base64' : 'float'
  const shell = embeddingsShell(chunks, call.request)
  if (shell === undefined || shell.encoding !== encoding || shell.count !== inputCount(call.request.input)) {
    return rebuilt(chunks, call)
  }
  const usage = embeddingsUsage(shell.members['usage'])
  const billed = call.billedUsage?.(usage, 0).inputTokens
  const isAsBilled = billed === undefined || billed === usage?.inputTokens
  if (isAsBilled && isReady(shell, call)) return { chunks, usage }
  const { object: _object, model: _model, usage: wireUsage, ...others } = shell.members
  const tail = JSON.stringify({
    model: call.publicModel,
    ...(isAsBilled ? usageMember(wireUsage) : tokenUsage(billed)),
    ...others,
  })
  return {
    chunks: [Buffer.from('{"object":"list","data":['), ...shell.vectors, Buffer.from(`,${tail.slice(1)}`)],
    usage,
  }
}

function rebuilt(chunks: readonly Uint8Array[], call: VendorCall<EmbeddingsRequest>): AnswerBody | undefined {
  const result = readEmbeddings(joinChunks(chunks).toString('utf8'), call)
  if (result === undefined) return undefined
  const shape = vectorShape(call)
  const failure = sizeFailure(result.vectors, shape)
  if (failure !== undefined) return { chunks: [], usage: result.usage, failure }
  const { inputTokens } = call.billedUsage?.(result.usage, 0) ?? result.usage ?? {}
  const body = {
    object: 'list',
    data: result.vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: shapeVector(vector, shape),
    })),
    model: call.publicModel,
    ...(inputTokens === undefined ? {} : tokenUsage(inputTokens)),
  }
  return { chunks: [Buffer.from(JSON.stringify(body))], usage: result.usage }
}

/** Whether the answer already has the form for the caller. */
function isReady({ members }: EmbeddingsShell, call: VendorCall<EmbeddingsRequest>): boolean {
  const usage = members['usage']
  if (members['model'] !== call.publicModel || members['object'] !== 'list') return false
  if (call.isBilled === true && tellsPurchasePrice(usage)) return false
  return isJsonObject(usage) && usage['prompt_tokens'] !== undefined && usage['total_tokens'] !== undefined
}

function tokenUsage(tokens: number): { usage: Record<string, unknown> } {
  return { usage: { prompt_tokens: tokens, total_tokens: tokens } }
}

/** Returns usage with the field that some vendors omit. Without a total, none is invented. */
function usageMember(wire: unknown): { usage?: Record<string, unknown> } {
  if (!isJsonObject(wire)) return {}
  const total = wire['total_tokens'] ?? wire['prompt_tokens']
  return { usage: { prompt_tokens: wire['prompt_tokens'] ?? total, total_tokens: total } }
}

// The text around the vectors is short; a longer one is parsed completely.
const MAX_EDGE_BYTES = 16_384

/** An embedding answer split without parsing its vectors. */
interface EmbeddingsShell {
  /** Every member of the answer except `data`. */
  readonly members: Readonly<Record<string, unknown>>
  /** The bytes of `data` after its opening bracket, with the closing one. */
  readonly vectors: readonly Uint8Array[]
  /** How many vectors there are. */
  readonly count: number
  /** How the first vector is written. */
  readonly encoding: 'float' | 'base64'
}

/**
 * Splits an embedding answer. The list of vectors is scanned item by item, from the start of each vector to its end; the
 * text before and after the list is parsed. Undefined for any unexpected layout (nested lists, vectors in two encodings or of
 * another size): the answer is then parsed completely.
 */
function embeddingsShell(chunks: readonly Uint8Array[], request: EmbeddingsRequest): EmbeddingsShell | undefined {
  const cursor = new JsonCursor(chunks)
  if (!cursor.seek('data') || !cursor.enter(OPEN_BRACKET)) return undefined
  const start = cursor.position
  const areFinite = asksForFloats(request)
    ? (from: number, to: number) => isFiniteVector(textBetween(chunks, from, to))
    : undefined
  const walked = walkVectors(cursor, request.dimensions ?? undefined, areFinite)
  if (walked === undefined) return undefined
  const end = cursor.position
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  if (start + length - end > MAX_EDGE_BYTES) return undefined
  const shell = parseVendorJson(`${textBetween(chunks, 0, start)}]${textBetween(chunks, end, length)}`)
  if (!isJsonObject(shell)) return undefined
  const { data, ...members } = shell
  // A second member called `data` would have replaced the empty list.
  if (!Array.isArray(data) || data.length > 0) return undefined
  return { members, vectors: bytesBetween(chunks, start, end), ...walked }
}

/**
 * Scans to after the bracket that closes the list. Undefined also for vectors out of order, which reading sorts, without an index,
 * and with `null` in them.
 * @param areFinite Checks base64 between two positions. If omitted, it is not checked.
 */
function walkVectors(
  cursor: JsonCursor,
  dimensions: number | undefined,
  areFinite: ((start: number, end: number) => boolean) | undefined,
): Pick<EmbeddingsShell, 'count' | 'encoding'> | undefined {
  let count = 0
  let encoding: EmbeddingsShell['encoding'] | undefined
  while (!cursor.enter(CLOSE_BRACKET)) {
    cursor.enter(COMMA)
    if (!cursor.enter(OPEN_BRACE)) return undefined
    let found: EmbeddingsShell['encoding'] | undefined
    let isNumbered = false
    while (cursor.nextMember()) {
      if (found === undefined && cursor.isNamed('embedding')) {
        found = cursor.peek() === QUOTE ? 'base64' : 'float'
        // A vector of numbers contains no bracket. In a malformed one the leftover bracket ends the scan.
        const size = found === 'base64' ? skipBase64(cursor) : skipFloats(cursor, dimensions !== undefined)
        if (size === -1 || (dimensions !== undefined && size !== dimensions)) return undefined
        if (found === 'base64' && areFinite?.(cursor.valueStart, cursor.position) === false) return undefined
      } else if (cursor.isNamed('index')) {
        if (!passNumber(cursor, count)) return undefined
        isNumbered = true
      } else if (!cursor.skipValue()) return undefined
    }
    if (cursor.isBroken || !isNumbered || found === undefined || found !== (encoding ?? found)) return undefined
    encoding = found
    count += 1
  }
  return encoding && { count, encoding }
}

/** Returns how many numbers the vector has, or -1 if it does not end. */
function skipBase64(cursor: JsonCursor): number {
  const start = cursor.position
  return cursor.skipValue() ? base64Dimensions(cursor.position - start - 2) : -1
}

function skipFloats(cursor: JsonCursor, isCounted: boolean): number {
  const commas = cursor.enter(OPEN_BRACKET) ? cursor.skipNumbers(isCounted) : -1
  return commas === -1 ? -1 : commas + 1
}

/** Skips a member's value if it is this number. */
function passNumber(cursor: JsonCursor, value: number): boolean {
  const digits = String(value)
  for (let at = 0; at < digits.length; at++) if (!cursor.enter(digits.charCodeAt(at))) return false
  const next = cursor.peek()
  return next === COMMA || next === CLOSE_BRACE
}

/** Returns the number of requested vectors. */
function inputCount(input: EmbeddingsRequest['input']): number {
  // A bare list of numbers is one text as token ids.
  return Array.isArray(input) && typeof input[0] !== 'number' ? input.length : 1
}
