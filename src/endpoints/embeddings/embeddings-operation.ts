import { GatewayError } from '../../core/errors.ts'
import type { Usage } from '../../core/usage.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
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
import { estimateTokens } from '../token-estimate.ts'
import { planDimensions } from './embedding-dimensions.ts'
import type { EmbeddingsRequest, EmbeddingsResult } from './embeddings-request.ts'
import { shapeVector, sizeFailure, vectorShape } from './vector-encoding.ts'

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
    throw new GatewayError('invalid_request', {
      message: 'input: this model accepts text, not token ids',
      param: 'input',
    })
  }
  const plan = planDimensions(call.model, request.dimensions ?? undefined)
  const { maxInputs, maxTokens } = operation
  const { upstream } = call.model
  const batches = splitInput(
    request.input,
    typeof maxInputs === 'number' ? maxInputs : maxInputs(upstream),
    maxTokens?.(upstream),
  )
  if (batches.length > MAX_CALLS) throw tooManyCalls(request.input, batches.length)
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

function tooManyCalls(input: EmbeddingsRequest['input'], calls: number): GatewayError {
  return new GatewayError('invalid_request', {
    message:
      `input: its ${input.length} entries would become ${calls} calls to the vendor of this model; ` +
      `at most ${MAX_CALLS} are allowed. Send fewer entries per request.`,
    param: 'input',
  })
}

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
  const batches: EmbeddingsRequest['input'][] = []
  let start = 0
  let tokens = 0
  for (const [index, item] of input.entries()) {
    const itemTokens = maxTokens === undefined ? 0 : tokensOf(item)
    if (index > start && (index - start === maxInputs || tokens + itemTokens > (maxTokens ?? 0))) {
      batches.push(input.slice(start, index) as EmbeddingsRequest['input'])
      start = index
      tokens = 0
    }
    tokens += itemTokens
  }
  batches.push(input.slice(start) as EmbeddingsRequest['input'])
  return batches
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
