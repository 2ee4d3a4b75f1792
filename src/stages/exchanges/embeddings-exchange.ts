import { GatewayError } from '../../core/errors.ts'
import type { Usage } from '../../core/usage.ts'
import type { EmbeddingsRequest, EmbeddingsResult } from '../../endpoints/embeddings/embeddings-request.ts'
import { shapeVector } from '../../endpoints/embeddings/vector-encoding.ts'
import { estimateTokens } from '../../endpoints/token-estimate.ts'
import type { EmbeddingsOperation, RelayedBody, Vendor, VendorCall } from '../../vendors/vendor.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import { planDimensions } from './embedding-dimensions.ts'
import type { ChunkedAnswer, VendorExchange } from './vendor-exchange.ts'

/**
 * Embeddings at a vendor. A batch above the vendor's limit is split and put together again; sizes and encodings that the
 * vendor does not make are made here; everything else passes as bytes.
 * @throws GatewayError `invalid_request` for a size the model cannot give, or token ids at a vendor that takes only text.
 */
export function embeddingsExchange(vendor: Vendor, call: VendorCall<EmbeddingsRequest>): VendorExchange | undefined {
  const operation = vendor.embeddings
  if (operation === undefined) return undefined
  const { request } = call
  if (!operation.takesTokens && holdsTokens(request.input)) {
    throw new GatewayError('invalid_request', {
      message: 'input: this model takes text, not token ids',
      param: 'input',
    })
  }
  const plan = planDimensions(call.model, request.dimensions ?? undefined)
  const batches = splitInput(request.input, operation.maxInputs)
  const isWhole =
    batches.length === 1 && plan.truncateTo === undefined && plan.ask === (request.dimensions ?? undefined)
  if (isWhole && operation.relay?.applies(call) === true) return relayed(operation, call)

  const { dimensions: _given, ...rest } = request
  const calls = batches.map((input) => {
    const part: EmbeddingsRequest = { ...rest, input, ...(plan.ask === undefined ? {} : { dimensions: plan.ask }) }
    return { ...call, request: part, bytes: undefined }
  })
  return {
    requests: calls.map((part) => operation.toWire(part)),
    whole: (answers) => combine(operation, calls, answers, call, plan.truncateTo),
    stream: neverStreams,
  }
}

function relayed(operation: EmbeddingsOperation, call: VendorCall<EmbeddingsRequest>): VendorExchange {
  return {
    requests: [operation.toWire(call)],
    whole: ([answer]) => (answer === undefined ? undefined : operation.relay?.body(answer.chunks, call)),
    stream: neverStreams,
  }
}

function neverStreams(): never {
  throw new GatewayError('internal_error', { cause: new Error('embeddings are never streamed') })
}

function holdsTokens(input: EmbeddingsRequest['input']): boolean {
  return Array.isArray(input) && typeof input[0] !== 'string'
}

/** Cuts the inputs into batches that the vendor takes; one list of token ids is one input. */
function splitInput(input: EmbeddingsRequest['input'], maxInputs: number): EmbeddingsRequest['input'][] {
  if (!Array.isArray(input) || typeof input[0] === 'number' || input.length <= maxInputs) return [input]
  const batches: EmbeddingsRequest['input'][] = []
  for (let start = 0; start < input.length; start += maxInputs) {
    batches.push(input.slice(start, start + maxInputs) as EmbeddingsRequest['input'])
  }
  return batches
}

function inputCount(input: EmbeddingsRequest['input']): number {
  return Array.isArray(input) && typeof input[0] !== 'number' ? input.length : 1
}

function combine(
  operation: EmbeddingsOperation,
  parts: readonly VendorCall<EmbeddingsRequest>[],
  answers: readonly ChunkedAnswer[],
  call: VendorCall<EmbeddingsRequest>,
  truncateTo: number | undefined,
): RelayedBody | undefined {
  const results: EmbeddingsResult[] = []
  for (const [index, part] of parts.entries()) {
    const answer = answers[index]
    const result =
      answer === undefined ? undefined : operation.fromWire({ ...answer, body: joinChunks(answer.chunks) }, part)
    if (result === undefined || result.vectors.length !== inputCount(part.request.input)) return undefined
    results.push(result)
  }
  const encoding = call.request.encoding_format ?? 'float'
  const usage = sumUsage(results)
  const tokens = usage?.inputTokens ?? estimatedTokens(call.request.input)
  const body = {
    object: 'list',
    model: call.publicModel,
    data: results
      .flatMap((result) => result.vectors)
      .map((vector, index) => ({
        object: 'embedding',
        index,
        embedding: shapeVector(vector, { dimensions: truncateTo, encoding }),
      })),
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  }
  return { chunks: [Buffer.from(JSON.stringify(body))], usage }
}

/** Callers read a count even where the vendor gave none: an estimate from the text. */
function estimatedTokens(input: EmbeddingsRequest['input']): number {
  return estimateTokens(Buffer.byteLength(JSON.stringify(input)))
}

/** Adds up the batches' usage; undefined when any of them reported none. */
function sumUsage(results: readonly EmbeddingsResult[]): Usage | undefined {
  let inputTokens = 0
  for (const { usage } of results) {
    if (usage?.inputTokens === undefined) return undefined
    inputTokens += usage.inputTokens
  }
  return { inputTokens }
}
