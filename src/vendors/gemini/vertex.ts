import type { ModelDefinition } from '../../catalog/model.ts'
import { isJsonObject, objectOf, parseVendorJson } from '../../core/json.ts'
import { memberNames } from '../../core/known-members.ts'
import { chatByCall } from '../../endpoints/chat/chat-operation.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { EmbeddingsRequest, EmbeddingsResult } from '../../endpoints/embeddings/embeddings-request.ts'
import type { TranscriptionOperation } from '../../endpoints/transcriptions/transcription-operation.ts'
import {
  type GoogleCloudOptions,
  googleCloudAddress,
  googleErrorFrom,
  googleFailure,
  withRemedy,
} from '../shared/google.ts'
import { unsupportedParameter } from '../shared/invalid-response.ts'
import { openaiChat } from '../shared/openai-chat.ts'
import { OPENAI_RULES } from '../shared/openai-chat-dialect.ts'
import { errorReader } from '../shared/openai-error.ts'
import { commonParts, keyHeaders } from '../shared/vendor-options.ts'
import type {
  ApiKeys,
  ChatOperation,
  EmbeddingsOperation,
  NamedVendorOptions,
  Vendor,
  VendorCall,
  VendorOptions,
  WireAnswer,
  WireRequest,
} from '../vendor.ts'
import { apiRequestHead, errorFrom, type GeminiApi, modelId } from './api-request.ts'
import { droppedFields, isVector, textsOf, unitVector } from './embeddings.ts'
import { generateContent, generatedImages } from './generate-content.ts'
import { transcriptions } from './transcriptions.ts'
import { usageFrom } from './usage-from.ts'

/** Options of {@link vertex}. */
export interface VertexOptions extends GoogleCloudOptions, NamedVendorOptions {
  /**
   * A provider of tokens, such as `googleDefaultCredentials()` of `signalbox/credentials`, or API keys of Google Cloud. A key
   * without `project` and `location` uses express mode. If omitted, the vendor is not configured.
   */
  readonly apiKey?: ApiKeys
  /** API version in paths. Default `v1`; `v1beta1` has previews. */
  readonly apiVersion?: string | undefined
  /**
   * Whether callers may name files of Cloud Storage (`gs://…`). Default false: they are read with the operator's rights, so each
   * caller could read what the project can.
   */
  readonly allowCloudStorage?: boolean | undefined
  /** Models served under other ids. `upstream` is Google's id, or `endpoints/NUMBER` of a tuned model. */
  readonly models?: readonly Omit<ModelDefinition, 'vendor'>[] | undefined
}

const VERTEX_OPTIONS = memberNames<Omit<VertexOptions, keyof VendorOptions>>()(
  'id displayName apiVersion allowCloudStorage models project location baseURL',
)

/**
 * Creates the vendor Vertex AI: chat, embeddings, images and transcription with Gemini in the cloud's variant of its API, and chat
 * with the open models that Google runs (`meta/…`, `openai/gpt-oss-…`). Claude is another vendor: `anthropicVertex`.
 * @throws TypeError for an unknown option, and naming the option and variable if project, location or key is invalid.
 */
export function vertex(options: VertexOptions): Vendor {
  const common = commonParts('vertex', options, VERTEX_OPTIONS, { id: 'vertex', displayName: 'Vertex AI' })
  const { apiKeys } = common
  const version = options.apiVersion ?? 'v1'
  if (!/^v\d\w*$/.test(version)) throw new TypeError(`vertex: apiVersion is not a version such as v1: ${version}`)
  const { origin, path, place } = googleCloudAddress('vertex', options, common, version)
  const api: GeminiApi = { basePath: `${path}/publishers/google`, hasCallIds: false, wrapsCounts: false }
  const ofGoogle = generateContent(api)
  // A tuned model is an endpoint of the project, not a publisher's model.
  const tuned = generateContent({ ...api, basePath: path })
  const open = openModels(path, apiKeys)
  const allowsStorage = options.allowCloudStorage === true
  const chatOf = (upstream: string): ChatOperation =>
    isTuned(upstream) ? tuned.chat : isOpen(upstream) ? open : ofGoogle.chat
  return {
    ...common,
    telemetryName: 'gcp.vertex_ai',
    origin,
    configuredBy:
      'GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, or vertex({ project, location, apiKey: googleDefaultCredentials() })',
    catalogId: 'vertex',
    catalogIds: (upstream) => (upstream.startsWith('claude-') ? [] : [upstream]),
    claims: ['gemini-*'],
    ...ofGoogle,
    chat: chatByModel(chatOf, allowsStorage),
    tokenCount: {
      // Only Google's models support this method.
      applies: ({ upstream }) => isTuned(upstream) || !isOpen(upstream),
      toWire(call) {
        if (!allowsStorage) refuseStorage(call.request)
        return (isTuned(call.model.upstream) ? tuned : ofGoogle).tokenCount.toWire(call)
      },
      fromWire: ofGoogle.tokenCount.fromWire,
    },
    embeddings: byPlace(vertexEmbeddings(api.basePath), vertexEmbeddings(path)),
    images: { interactions: byPlace(generatedImages(api), generatedImages({ ...api, basePath: path })) },
    transcription: transcriptionByModel(transcriptions(api.basePath), transcriptions(path)),
    errorFrom: (answer, nowMs) => withRemedy(errorFrom(answer, nowMs, apiKeys), answer, place),
  }
}

function isTuned(upstream: string): boolean {
  return upstream.startsWith('endpoints/')
}

/** Ids of open models contain their maker. */
function isOpen(upstream: string): boolean {
  return upstream.includes('/') && !upstream.startsWith('models/')
}

/** Chat in the dialect of each model. */
function chatByModel(chatOf: (upstream: string) => ChatOperation, allowsStorage: boolean): ChatOperation {
  const { leavesOut } = chatOf('')
  const chat = chatByCall(({ model }) => chatOf(model.upstream), {
    ...(leavesOut === undefined ? {} : { leavesOut }),
    // Files given by address need their type, which a URL does not state reliably, so the gateway sends bytes.
    takesImageUrls: () => false,
  })
  return {
    ...chat,
    toWire(call) {
      if (!allowsStorage) refuseStorage(call.request)
      return chat.toWire(call)
    },
  }
}

/** Sends an operation of Google's models to the endpoint of a tuned model. Its answers have the same form. */
function byPlace<Op extends { toWire(call: VendorCall<never>): WireRequest }>(ofGoogle: Op, tuned: Op): Op {
  return {
    ...ofGoogle,
    toWire: (call: VendorCall<never>) => (isTuned(call.model.upstream) ? tuned : ofGoogle).toWire(call),
  }
}

/** Transcription by Gemini's models and tuned ones. The open models do not support audio. */
function transcriptionByModel(ofGoogle: TranscriptionOperation, tuned: TranscriptionOperation): TranscriptionOperation {
  return {
    ...ofGoogle,
    toWire(call, asked) {
      const { upstream } = call.model
      if (isTuned(upstream)) return tuned.toWire(call, asked)
      if (isOpen(upstream)) throw unsupportedParameter('model', 'model: open models at Vertex AI take no recordings.')
      return ofGoogle.toWire(call, asked)
    },
  }
}

/** @throws GatewayError `unsupported_parameter` naming the image. */
function refuseStorage({ messages }: ChatRequest): void {
  for (const [index, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue
    for (const [place, part] of content.entries()) {
      if (part.type !== 'image_url' || !/^gs:/i.test(part.image_url.url)) continue
      const param = `messages[${index}].content[${place}].image_url.url`
      throw unsupportedParameter(param, `${param}: files of Cloud Storage cannot be used; send the image as data.`)
    }
  }
}

/** Open models through the OpenAI API of the location (Vertex AI, "Call open models"). */
function openModels(path: string, apiKeys: readonly string[]): ChatOperation {
  const errors = errorReader({}, apiKeys)
  return openaiChat({
    path: `${path}/endpoints/openapi/chat/completions`,
    headers: keyHeaders('x-goog-api-key'),
    // As for Gemini, these fields have a price, and no effect here.
    rulesFor: () => RULES,
    streamFailure(envelope) {
      const error = googleErrorFrom(envelope)
      return error?.token === undefined ? errors.fromStream(envelope) : googleFailure(error, 0, apiKeys)
    },
  })
}

const RULES = { ...OPENAI_RULES.max_tokens, service_tier: 'drop', web_search_options: 'drop' } as const

/** Models with `embedContent`, which accepts one text, and without `predict` (Vertex AI, "Gemini Embedding 2"). */
const EMBED_CONTENT_MODELS = /^gemini-embedding-(?:[2-9]|[1-9]\d)/

/**
 * Maximum texts per call in every region. `embedContent` has no lists, and `gemini-embedding-001` accepts one text (Vertex AI, "Get
 * text embeddings").
 */
const MAX_TEXTS = 5

/** Embeddings at Vertex AI, by the method that the model has. */
function vertexEmbeddings(basePath: string): EmbeddingsOperation {
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
  return EMBED_CONTENT_MODELS.test(modelId(upstream))
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
    const { values, statistics } = objectOf(embeddings)
    if (!isVector(values)) return undefined
    vectors.push(unitVector(call, values))
    const tokens: unknown = isJsonObject(statistics) ? statistics['token_count'] : undefined
    inputTokens = inputTokens === undefined || typeof tokens !== 'number' ? undefined : inputTokens + tokens
  }
  return { vectors, usage: inputTokens === undefined ? undefined : { inputTokens } }
}
