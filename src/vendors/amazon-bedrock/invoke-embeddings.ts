import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { EmbeddingsRequest, EmbeddingsResult } from '../../endpoints/embeddings/embeddings-request.ts'
import { firstHeader } from '../../wire/headers.ts'
import { baseModelId } from '../shared/aws-model-ids.ts'
import { bearerHeaders } from '../shared/bearer-headers.ts'
import { unsupportedParameter } from '../shared/parameter-errors.ts'
import type { EmbeddingsOperation, VendorCall, WireAnswer } from '../vendor.ts'

type Members = Readonly<Record<string, unknown>>

/** A family of models with its own request body (Bedrock, "Inference request parameters"). */
interface Family {
  readonly pattern: RegExp
  readonly maxInputs: number
  /** Fields that the body supports in addition to `model`, `input`, `dimensions` and `encoding_format`. */
  readonly fields: readonly string[]
  body(texts: readonly string[], request: EmbeddingsRequest): Members
  /** Returns the vectors of an answer in the order of the texts, or `undefined` if it has none. */
  vectors(answer: Members): unknown
}

const TITAN_TEXT: Family = {
  pattern: /^amazon\.titan-embed-(?:text|g1)/,
  maxInputs: 1,
  fields: [],
  body: ([inputText], { dimensions }) => ({ inputText, ...(isSet(dimensions) ? { dimensions } : {}) }),
  vectors: ({ embedding }) => [embedding],
}

const TITAN_IMAGE: Family = {
  ...TITAN_TEXT,
  pattern: /^amazon\.titan-embed-image/,
  body: ([inputText], { dimensions }) => ({
    inputText,
    ...(isSet(dimensions) ? { embeddingConfig: { outputEmbeddingLength: dimensions } } : {}),
  }),
}

const NOVA: Family = {
  pattern: /^amazon\.nova-.*embed/,
  maxInputs: 1,
  fields: ['input_type', 'truncate'],
  body: ([value], { dimensions, input_type: type, truncate }) => ({
    taskType: 'SINGLE_EMBEDDING',
    singleEmbeddingParams: {
      embeddingPurpose: NOVA_PURPOSES.get(type) ?? 'GENERIC_INDEX',
      ...(isSet(dimensions) ? { embeddingDimension: dimensions } : {}),
      // A text that is too long is rejected, unless the caller has it truncated.
      text: { truncationMode: isSet(truncate) ? truncate : 'NONE', value },
    },
  }),
  vectors: ({ embeddings }) =>
    Array.isArray(embeddings)
      ? embeddings.map((one: unknown) => (isJsonObject(one) ? one['embedding'] : one))
      : undefined,
}

/** Purposes by their Cohere names, which other servers use too. */
const NOVA_PURPOSES: ReadonlyMap<unknown, string> = new Map([
  ['search_document', 'GENERIC_INDEX'],
  ['search_query', 'TEXT_RETRIEVAL'],
  ['classification', 'CLASSIFICATION'],
  ['clustering', 'CLUSTERING'],
])

const COHERE: Family = {
  pattern: /^cohere\.embed-/,
  maxInputs: 96,
  fields: ['input_type', 'truncate'],
  // The service requires a type. Stored texts are embedded more often than queries.
  body: (texts, { dimensions, input_type: type, truncate }) => ({
    texts,
    input_type: isSet(type) ? type : 'search_document',
    ...(isSet(truncate) ? { truncate } : {}),
    ...(isSet(dimensions) ? { output_dimension: dimensions } : {}),
  }),
  vectors: ({ embeddings }) => (isJsonObject(embeddings) ? embeddings['float'] : embeddings),
}

const FAMILIES = [TITAN_TEXT, TITAN_IMAGE, NOVA, COHERE]

const MAPPED_FIELDS: ReadonlySet<string> = new Set(['model', 'input', 'dimensions', 'encoding_format'])

/** Creates embeddings through InvokeModel, with the layout of each family. @param prefix Path before the API's own path. */
export function invokeEmbeddings(prefix: string): EmbeddingsOperation {
  return {
    maxInputs: (upstream) => familyOf(upstream)?.maxInputs ?? 1,
    takesTokens: false,
    toWire: (call) => {
      const { request, model, apiKey } = call
      const family = knownFamily(call)
      const isTaken = (field: string): boolean => MAPPED_FIELDS.has(field) || family.fields.includes(field)
      return {
        path: `${prefix}/model/${encodeURIComponent(model.upstream)}/invoke`,
        headers: bearerHeaders(apiKey, 'application/json'),
        body: JSON.stringify(family.body(textsOf(request.input), request)),
        dropped: Object.keys(request).filter((field) => !isTaken(field) && isSet(request[field])),
      }
    },
    fromWire,
  }
}

/** Reads vectors in the order of the texts. Returns `undefined` unless each text has a vector of numbers. */
function fromWire(answer: WireAnswer, call: VendorCall<EmbeddingsRequest>): EmbeddingsResult | undefined {
  const body = parseVendorJson(new TextDecoder().decode(answer.body))
  const vectors = isJsonObject(body) ? knownFamily(call).vectors(body) : undefined
  if (!isJsonObject(body) || !Array.isArray(vectors) || !vectors.every(isVector)) return undefined
  if (vectors.length !== textsOf(call.request.input).length) return undefined
  const inputTokens = body['inputTextTokenCount'] ?? countIn(answer)
  return { vectors, usage: typeof inputTokens === 'number' ? { inputTokens } : undefined }
}

/** If the body has no count, a header has one. */
function countIn({ headers }: WireAnswer): number | undefined {
  const text = firstHeader(headers, 'x-amzn-bedrock-input-token-count')
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
}

function familyOf(upstream: string): Family | undefined {
  const base = baseModelId(upstream)
  return FAMILIES.find(({ pattern }) => pattern.test(base))
}

function knownFamily({ model: { upstream } }: VendorCall<EmbeddingsRequest>): Family {
  const family = familyOf(upstream)
  if (family !== undefined) return family
  throw unsupportedParameter(
    'model',
    'model: embeddings of Titan, Nova and Cohere are served here, by the ids of the models.',
  )
}

function textsOf(input: EmbeddingsRequest['input']): string[] {
  const texts: unknown[] = Array.isArray(input) ? input : [input]
  if (texts.every((text) => typeof text === 'string')) return texts
  throw unsupportedParameter('input', 'input: this model accepts text, not token ids.')
}

function isVector(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 0 && value.every((part) => typeof part === 'number')
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null
}
