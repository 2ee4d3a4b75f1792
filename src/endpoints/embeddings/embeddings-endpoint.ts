import type { CatalogModel } from '../../catalog/model.ts'
import { GatewayError } from '../../core/errors.ts'
import type { Usage } from '../../core/usage.ts'
import { joinChunks } from '../../wire/chunks.ts'
import { DETERMINISTIC_ANSWERS } from '../answer-json.ts'
import { defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { invalidField } from '../field-errors.ts'
import {
  type AnswerBody,
  type ChunkedAnswer,
  jsonBody,
  neverStreams,
  type Operation,
  type PassThrough,
  passThrough,
  type VendorCall,
  type WireAnswer,
  type WireRequest,
} from '../operation.ts'
import { checkRequest, jsonSchemaOf } from '../schema.ts'
import type { VendorFailure } from '../stream-transform.ts'
import { promptTexts } from '../texts.ts'
import { estimateTokens, partStarts } from '../token-estimate.ts'
import {
  type EmbeddingsRequest,
  type EmbeddingsResult,
  type EmbeddingVector,
  embeddingsSchema,
} from './embeddings-request.ts'

/** `POST /v1/embeddings` (API specification, "Embedding request and response"). */
export const embeddingsEndpoint = defineEndpoint<EmbeddingsRequest, EmbeddingsOffer>({
  id: 'embeddings',
  path: '/v1/embeddings',
  isBatchable: true,
  kind: 'embedding',
  servesUnlisted: ({ embeddings }) => embeddings !== undefined,
  errors: openaiErrors,
  parse: (body) => checkRequest<EmbeddingsRequest>(embeddingsSchema(), body),
  requestSchema: () => jsonSchemaOf(embeddingsSchema(), 'input'),
  isStream: () => false,
  estimate: (_request, inputTokens) => ({ inputTokens, outputTokens: 0 }),
  texts: promptTexts({ kinds: { input: 'text' }, last: ['input'] }),
  createOperation: ({ embeddings }, call) => embeddings && createEmbeddingsOperation(embeddings, call),
  cached: { ...DETERMINISTIC_ANSWERS, leftOut: new Set(['user']) },
})

/** Embeddings at one vendor. All functions are pure. */
export interface EmbeddingsOperation {
  /** Maximum inputs per call, for all models or by the vendor's model id. Longer lists are split. */
  readonly maxInputs: number | ((upstream: string) => number)
  /** Maximum tokens per call, by the vendor's model id. Longer lists are split by an estimate. Unlimited by default. */
  readonly maxTokens?: ((upstream: string) => number) | undefined
  /** Whether inputs may be token ids. */
  readonly takesTokens: boolean
  toWire(call: VendorCall<EmbeddingsRequest>): WireRequest
  /** Reads a complete 2xx answer. Returns `undefined` if it is malformed. */
  fromWire(answer: WireAnswer, call: VendorCall<EmbeddingsRequest>): EmbeddingsResult | undefined
  /** Present if the vendor accepts the dialect itself. */
  readonly passThrough?: PassThrough<EmbeddingsRequest>
}

/** Part of a vendor that handles embeddings. */
export interface EmbeddingsOffer {
  readonly embeddings?: EmbeddingsOperation
}

/**
 * Creates the embeddings operation of a vendor. Splits and rejoins batches above the vendor's limit. Resizes vectors and encodes
 * base64 if the vendor cannot. Everything else passes as bytes.
 * @throws GatewayError `invalid_request` for a size that the model does not support, token ids at a vendor that accepts only text,
 *   or a list that would need more than {@link MAX_CALLS} calls.
 */
export function createEmbeddingsOperation(
  operation: EmbeddingsOperation,
  call: VendorCall<EmbeddingsRequest>,
): Operation {
  const { request } = call
  if (!operation.takesTokens && holdsTokens(request.input)) {
    throw invalidField('input', 'this model accepts text, not token ids')
  }
  const plan = planDimensions(call.model, request.dimensions ?? undefined)
  const { maxInputs, maxTokens } = operation
  const { upstream } = call.model
  const batches = splitInput(
    request.input,
    typeof maxInputs === 'number' ? maxInputs : maxInputs(upstream),
    maxTokens?.(upstream),
  )
  if (batches.length > MAX_CALLS)
    throw invalidField(
      'input',
      `its ${request.input.length} entries would become ${batches.length} calls to the vendor of this model; ` +
        `at most ${MAX_CALLS} are allowed. Send fewer entries per request.`,
    )
  const isWhole =
    batches.length === 1 && plan.truncateTo === undefined && plan.ask === (request.dimensions ?? undefined)
  if (isWhole && operation.passThrough?.applies(call) === true)
    return passThrough(operation.toWire(call), operation.passThrough, call)

  const { dimensions: _given, ...rest } = request
  const calls = batches.map((input) => {
    const part: EmbeddingsRequest = { ...rest, input, ...(plan.ask === undefined ? {} : { dimensions: plan.ask }) }
    return { ...call, request: part, bytes: undefined }
  })
  return {
    requests: calls.map((part) => operation.toWire(part)),
    whole: (answers) => combine(operation, calls, answers, call),
    partialUsage: (answers) => partialUsage(operation, calls, answers),
    stream: neverStreams,
  }
}

/** Maximum number of vendor calls per request. Some models embed one input per call. */
const MAX_CALLS = 512

function holdsTokens(input: EmbeddingsRequest['input']): boolean {
  return Array.isArray(input) && typeof input[0] !== 'string'
}

/**
 * Splits the inputs into batches that the vendor accepts. One list of token ids is one input. An input above the token
 * limit is a batch of its own, so that the vendor decides.
 */
function splitInput(
  input: EmbeddingsRequest['input'],
  maxInputs: number,
  maxTokens: number | undefined,
): EmbeddingsRequest['input'][] {
  if (!Array.isArray(input) || typeof input[0] === 'number') return [input]
  if (maxTokens === undefined && input.length <= maxInputs) return [input]
  const tokens = input.map((item) => (maxTokens === undefined ? 0 : tokensOf(item)))
  const starts = partStarts(tokens, { maxItems: maxInputs, maxTokens: maxTokens ?? 0 })
  return starts.map((start, index) => input.slice(start, starts[index + 1]) as EmbeddingsRequest['input'])
}

function tokensOf(item: string | number | readonly number[]): number {
  if (typeof item === 'string') return estimateTokens(Buffer.byteLength(item))
  return typeof item === 'number' ? 1 : item.length
}

function inputCount(input: EmbeddingsRequest['input']): number {
  return Array.isArray(input) && typeof input[0] !== 'number' ? input.length : 1
}

function combine(
  operation: EmbeddingsOperation,
  parts: readonly VendorCall<EmbeddingsRequest>[],
  answers: readonly ChunkedAnswer[],
  call: VendorCall<EmbeddingsRequest>,
): AnswerBody | undefined {
  const results: EmbeddingsResult[] = []
  for (const [index, part] of parts.entries()) {
    const answer = answers[index]
    const result =
      answer === undefined ? undefined : operation.fromWire({ ...answer, body: joinChunks(answer.chunks) }, part)
    if (result === undefined || result.vectors.length !== inputCount(part.request.input)) return undefined
    results.push(result)
  }
  const shape = vectorShape(call)
  const usage = sumUsage(results)
  const vectors = results.flatMap((result) => result.vectors)
  const failure = sizeFailure(vectors, shape)
  if (failure !== undefined) return { chunks: [], usage, failure }
  const tokens = (call.billedUsage?.(usage, 0) ?? usage)?.inputTokens ?? estimatedTokens(call.request.input)
  const body = {
    object: 'list',
    model: call.publicModel,
    data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: shapeVector(vector, shape) })),
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  }
  return jsonBody(body, usage)
}

/** Adds up the usage of answered batches, estimated if not reported. `undefined` without answers. */
function partialUsage(
  operation: EmbeddingsOperation,
  parts: readonly VendorCall<EmbeddingsRequest>[],
  answers: readonly (ChunkedAnswer | undefined)[],
): Usage | undefined {
  let inputTokens: number | undefined
  for (const [index, part] of parts.entries()) {
    const answer = answers[index]
    if (answer === undefined) continue
    const result = operation.fromWire({ ...answer, body: joinChunks(answer.chunks) }, part)
    inputTokens = (inputTokens ?? 0) + (result?.usage?.inputTokens ?? estimatedTokens(part.request.input))
  }
  return inputTokens === undefined ? undefined : { inputTokens }
}

/** Estimates the tokens from the text, because callers expect a count even if the vendor reports none. */
function estimatedTokens(input: EmbeddingsRequest['input']): number {
  return estimateTokens(Buffer.byteLength(JSON.stringify(input)))
}

/** Adds up the usage of the batches. Returns `undefined` if any of them reported none. */
function sumUsage(results: readonly EmbeddingsResult[]): Usage | undefined {
  let inputTokens = 0
  for (const { usage } of results) {
    if (usage?.inputTokens === undefined) return undefined
    inputTokens += usage.inputTokens
  }
  return { inputTokens }
}

/** How a requested vector size is reached. */
export interface DimensionPlan {
  /** Size to request from the vendor, or `undefined` for its default. */
  readonly ask: number | undefined
  /** Size to truncate the vendor's vectors to, or `undefined` for no truncation. */
  readonly truncateTo: number | undefined
}

/**
 * Decides who resizes vectors: the vendor if it offers that size, else the gateway by truncating a larger one. The
 * vendor decides for models that the catalog does not describe.
 * @throws GatewayError `invalid_request` for a size above the model's own, or one that its specification does not list.
 */
function planDimensions(model: CatalogModel, wished: number | undefined): DimensionPlan {
  const { dimensions: own, nativeDimensions: native, truncatesDimensions } = model.limits
  if (wished === undefined || (own === undefined && native === undefined)) return { ask: wished, truncateTo: undefined }
  if (native !== undefined && isOffered(native, wished)) return { ask: wished, truncateTo: undefined }
  const largest = Math.max(own ?? 0, native === undefined ? 0 : largestOf(native))
  if (truncatesDimensions === false || wished > largest) {
    const offered = native === undefined ? `at most ${largest}` : describe(native)
    throw invalidField('dimensions', `this model offers ${offered}`)
  }
  if (own === wished) return { ask: undefined, truncateTo: undefined }
  const source = native === undefined ? undefined : smallestAbove(native, wished)
  return { ask: source, truncateTo: wished }
}

type NativeDimensions = NonNullable<CatalogModel['limits']['nativeDimensions']>

function isRange(native: NativeDimensions): native is { readonly min: number; readonly max: number } {
  return !Array.isArray(native)
}

function isOffered(native: NativeDimensions, wished: number): boolean {
  return isRange(native) ? wished >= native.min && wished <= native.max : native.includes(wished)
}

function largestOf(native: NativeDimensions): number {
  return isRange(native) ? native.max : Math.max(...native)
}

function smallestAbove(native: NativeDimensions, wished: number): number {
  return isRange(native) ? native.min : Math.min(...native.filter((size) => size > wished))
}

function describe(native: NativeDimensions): string {
  return isRange(native) ? `${native.min} to ${native.max}` : native.join(', ')
}

/** Writes numbers as base64 of little-endian float32, the default encoding of OpenAI's SDKs. */
export function encodeVector(numbers: readonly number[]): string {
  const bytes = new DataView(new ArrayBuffer(numbers.length * 4))
  for (let index = 0; index < numbers.length; index++) bytes.setFloat32(index * 4, numbers[index] ?? 0, true)
  return Buffer.from(bytes.buffer).toString('base64')
}

/** Reads base64 of little-endian float32. */
export function decodeVector(base64: string): number[] {
  const bytes = Buffer.from(base64, 'base64')
  if (bytes.byteLength === 0 || bytes.byteLength % 4 !== 0) throw new GatewayError('upstream_invalid_response')
  const numbers = new Array<number>(bytes.byteLength / 4)
  for (let index = 0; index < numbers.length; index++) numbers[index] = bytes.readFloatLE(index * 4)
  if (!numbers.every(Number.isFinite)) throw new GatewayError('upstream_invalid_response')
  return numbers
}

/** Whether base64 of little-endian float32 has no NaN and no infinity: their exponent is all ones (IEEE 754). */
export function isFiniteVector(base64: string): boolean {
  const bytes = Buffer.from(base64, 'base64')
  for (let end = bytes.length - 1; end >= 3; end -= 4)
    if ((bytes[end]! & 0x7f) === 0x7f && bytes[end - 1]! >= 0x80) return false
  return true
}

/** Whether base64 holds float32: a request names no other type of numbers, such as `output_dtype: 'int8'`. */
export function asksForFloats(request: EmbeddingsRequest): boolean {
  return Object.entries(request).every(
    ([name, value]) => !name.endsWith('dtype') || (value ?? 'float') === 'float' || value === 'float32',
  )
}

/** Truncates a vector to its first `dimensions` numbers and normalises it again. */
export function truncateVector(numbers: readonly number[], dimensions: number): number[] {
  const cut = numbers.slice(0, dimensions)
  let squares = 0
  for (const value of cut) squares += value * value
  const length = Math.sqrt(squares)
  return length === 0 ? cut : cut.map((value) => value / length)
}

/** Size and encoding of the vectors that a caller requested. */
export interface VectorShape {
  /** Number of dimensions. `undefined` leaves vectors as the vendor sends them. */
  readonly dimensions: number | undefined
  readonly encoding: 'float' | 'base64'
  /** Whether vectors of the model lose their meaning when they are truncated. */
  readonly isFixed: boolean
}

/** Returns the requested size and encoding. */
export function vectorShape({ request, model }: VendorCall<EmbeddingsRequest>): VectorShape {
  return {
    dimensions: request.dimensions ?? undefined,
    encoding: request.encoding_format ?? 'float',
    isFixed: model.limits.truncatesDimensions === false,
  }
}

/** Number of float32 values in a base64 text of this length. */
export function base64Dimensions(length: number): number {
  return Math.floor((length * 3) / 16)
}

const BITS_PER_BYTE = 8

/** Returns why vectors cannot get the requested size, if one has fewer numbers. A vector of bits has them packed in bytes. */
export function sizeFailure(
  vectors: readonly EmbeddingVector[],
  { dimensions, isFixed }: VectorShape,
): VendorFailure | undefined {
  if (dimensions === undefined) return undefined
  for (const vector of vectors) {
    const size = typeof vector === 'string' ? base64Dimensions(vector.length) : vector.length
    if (size === dimensions || (size > dimensions && !isFixed) || size * BITS_PER_BYTE === dimensions) continue
    const message = `dimensions: the vendor of this model ignored ${dimensions} and sent vectors of ${size} numbers`
    return { kind: 'caller', status: 502, message, param: 'dimensions' }
  }
  return undefined
}

/** Converts a vendor's vector to the size and encoding that the caller requested. */
export function shapeVector(vector: EmbeddingVector, options: VectorShape): number[] | string {
  const isBase64 = typeof vector === 'string'
  const isOfSize =
    options.dimensions === undefined || (isBase64 && base64Dimensions(vector.length) === options.dimensions)
  if (isOfSize && isBase64 && options.encoding === 'base64') return vector
  let numbers: readonly number[] = isBase64 ? decodeVector(vector) : vector
  if (options.dimensions !== undefined && options.dimensions < numbers.length)
    numbers = truncateVector(numbers, options.dimensions)
  return options.encoding === 'base64' ? encodeVector(numbers) : (numbers as number[])
}
