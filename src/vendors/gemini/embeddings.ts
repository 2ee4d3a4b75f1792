import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { EmbeddingsRequest, EmbeddingsResult } from '../../endpoints/embeddings/embeddings-request.ts'
import { unsupportedParameter } from '../shared/invalid-response.ts'
import type { VendorCall, WireAnswer, WireRequest } from '../vendor.ts'
import { apiRequestHead, modelId, modelResource } from './api-request.ts'
import { usageFrom } from './usage-from.ts'

/** Maximum texts per `batchEmbedContents`. More are answered with 400 (Gemini API, "Embeddings"). */
export const MAX_EMBEDDING_INPUTS = 100

const MAPPED_FIELDS: ReadonlySet<string> = new Set(['model', 'input', 'dimensions', 'encoding_format'])

// A model whose vectors have length 1 only at full size (Gemini API, "Embeddings", quality of smaller sizes).
const UNNORMALISED = { model: 'gemini-embedding-001', fullSize: 3072 }

/**
 * Writes texts as `batchEmbedContents`, one request per text, because several parts of one content would become one vector.
 * @param basePath Path up to and including the version: `/v1beta`.
 * @throws GatewayError `unsupported_parameter` naming `input` for token ids.
 */
export function embeddingsToWire(call: VendorCall<EmbeddingsRequest>, basePath: string): WireRequest {
  const { request, model } = call
  const dimensions = request.dimensions ?? undefined
  const requests = textsOf(request.input).map((text) => ({
    model: modelResource(model.upstream),
    content: { parts: [{ text }] },
    ...(dimensions === undefined ? {} : { outputDimensionality: dimensions }),
  }))
  return {
    ...apiRequestHead({ basePath, model: model.upstream, method: 'batchEmbedContents', apiKey: call.apiKey }),
    body: JSON.stringify({ requests }),
    dropped: droppedFields(request),
  }
}

/** Reads vectors in the order of the texts. Returns `undefined` unless each text has a vector of numbers. */
export function embeddingsFromWire(
  answer: WireAnswer,
  call: VendorCall<EmbeddingsRequest>,
): EmbeddingsResult | undefined {
  const body = parseVendorJson(new TextDecoder().decode(answer.body))
  const embeddings = isJsonObject(body) ? body['embeddings'] : undefined
  if (!isJsonObject(body) || !Array.isArray(embeddings)) return undefined
  if (embeddings.length !== textsOf(call.request.input).length) return undefined
  const vectors: (readonly number[])[] = []
  for (const embedding of embeddings) {
    const values: unknown = isJsonObject(embedding) ? embedding['values'] : undefined
    if (!isVector(values)) return undefined
    vectors.push(unitVector(call, values))
  }
  const inputTokens = usageFrom(body['usageMetadata'])?.inputTokens
  return { vectors, usage: inputTokens === undefined ? undefined : { inputTokens } }
}

/** Returns the fields that the API does not support. */
export function droppedFields(request: EmbeddingsRequest): string[] {
  return Object.keys(request).filter((field) => !MAPPED_FIELDS.has(field) && (request[field] ?? null) !== null)
}

/** @throws GatewayError `unsupported_parameter` naming `input` for token ids. */
export function textsOf(input: EmbeddingsRequest['input']): string[] {
  const texts: unknown[] = Array.isArray(input) ? input : [input]
  if (texts.every((text) => typeof text === 'string')) return texts
  throw unsupportedParameter('input', 'input: this model accepts text, not token ids.')
}

/** Whether the value is a non-empty list of numbers. */
export function isVector(values: unknown): values is number[] {
  return Array.isArray(values) && values.length > 0 && values.every((value) => typeof value === 'number')
}

/** Scales the vector to length 1, which one model leaves to its callers. */
export function unitVector(
  { model }: Pick<VendorCall<EmbeddingsRequest>, 'model'>,
  values: readonly number[],
): readonly number[] {
  const isRaw = modelId(model.upstream) === UNNORMALISED.model && values.length < UNNORMALISED.fullSize
  return isRaw ? normalised(values) : values
}

function normalised(values: readonly number[]): readonly number[] {
  let squares = 0
  for (const value of values) squares += value * value
  const length = Math.sqrt(squares)
  return length === 0 ? values : values.map((value) => value / length)
}
