import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { EmbeddingsRequest, EmbeddingsResult } from '../../endpoints/embeddings/embeddings-request.ts'
import type { EmbeddingsOperation, VendorCall, WireAnswer, WireRequest } from '../vendor.ts'
import { apiRequestHead, modelId } from './api-request.ts'
import { droppedFields, isVector, textsOf, unitVector } from './embeddings.ts'
import { usageFrom } from './usage-from.ts'

/** Models with `embedContent`, which accepts one text, and without `predict` (Vertex AI, "Gemini Embedding 2"). */
const BY_CONTENT = /^gemini-embedding-(?:[2-9]|[1-9]\d)/

/**
 * Maximum texts per call in every region. `embedContent` has no lists, and `gemini-embedding-001` accepts one text (Vertex AI, "Get
 * text embeddings").
 */
const MAX_TEXTS = 5

/** Embeddings at Vertex AI, by the method that the model has. */
export function vertexEmbeddings(basePath: string): EmbeddingsOperation {
  return {
    maxInputs: (upstream) => (modelId(upstream).startsWith('gemini-') ? 1 : MAX_TEXTS),
    takesTokens: false,
    toWire: (call) =>
      isByContent(call.model.upstream) ? contentToWire(call, basePath) : instancesToWire(call, basePath),
    fromWire: (answer, call) =>
      isByContent(call.model.upstream) ? embeddingFromWire(answer) : predictionsFromWire(answer, call),
  }
}

function isByContent(upstream: string): boolean {
  return BY_CONTENT.test(modelId(upstream))
}

function contentToWire(call: VendorCall<EmbeddingsRequest>, basePath: string): WireRequest {
  const { request, model, apiKey } = call
  const dimensions = request.dimensions ?? undefined
  const parts = textsOf(request.input).map((text) => ({ text }))
  return {
    ...apiRequestHead({ basePath, model: model.upstream, method: 'embedContent', apiKey }),
    body: JSON.stringify({
      content: { role: 'user', parts },
      ...(dimensions === undefined ? {} : { outputDimensionality: dimensions }),
    }),
    dropped: droppedFields(request),
  }
}

function embeddingFromWire({ body }: WireAnswer): EmbeddingsResult | undefined {
  const answer = parseVendorJson(new TextDecoder().decode(body))
  const embedding = isJsonObject(answer) ? answer['embedding'] : undefined
  const values: unknown = isJsonObject(embedding) ? embedding['values'] : undefined
  if (!isJsonObject(answer) || !isVector(values)) return undefined
  const inputTokens = usageFrom(answer['usageMetadata'])?.inputTokens
  return { vectors: [values], usage: inputTokens === undefined ? undefined : { inputTokens } }
}

function instancesToWire(call: VendorCall<EmbeddingsRequest>, basePath: string): WireRequest {
  const { request, model, apiKey } = call
  const dimensions = request.dimensions ?? undefined
  // A text that is too long is rejected. By default, it would be truncated silently.
  const parameters = {
    autoTruncate: false,
    ...(dimensions === undefined ? {} : { outputDimensionality: dimensions }),
  }
  return {
    ...apiRequestHead({ basePath, model: model.upstream, method: 'predict', apiKey }),
    body: JSON.stringify({ instances: textsOf(request.input).map((content) => ({ content })), parameters }),
    dropped: droppedFields(request),
  }
}

/** Undefined unless there is a vector for each text. Tokens are counted text by text. */
function predictionsFromWire({ body }: WireAnswer, call: VendorCall<EmbeddingsRequest>): EmbeddingsResult | undefined {
  const answer = parseVendorJson(new TextDecoder().decode(body))
  const predictions = isJsonObject(answer) ? answer['predictions'] : undefined
  if (!Array.isArray(predictions) || predictions.length !== textsOf(call.request.input).length) return undefined
  const vectors: (readonly number[])[] = []
  let inputTokens: number | undefined = 0
  for (const prediction of predictions) {
    const embeddings = isJsonObject(prediction) ? prediction['embeddings'] : undefined
    const { values, statistics } = isJsonObject(embeddings) ? embeddings : {}
    if (!isVector(values)) return undefined
    vectors.push(unitVector(call, values))
    const tokens: unknown = isJsonObject(statistics) ? statistics['token_count'] : undefined
    inputTokens = inputTokens === undefined || typeof tokens !== 'number' ? undefined : inputTokens + tokens
  }
  return { vectors, usage: inputTokens === undefined ? undefined : { inputTokens } }
}
