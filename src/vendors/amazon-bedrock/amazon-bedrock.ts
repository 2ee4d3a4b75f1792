import type { CatalogModel, ModelDefinition } from '../../catalog/model.ts'
import type { ModelFacts } from '../../catalog/model-facts.ts'
import { isJsonObject, isSet, parseVendorJson } from '../../core/json.ts'
import { checkEnumerated, memberNames } from '../../core/known-members.ts'
import { chatByCall } from '../../endpoints/chat/chat-operation.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { EmbeddingsRequest, EmbeddingsResult } from '../../endpoints/embeddings/embeddings-request.ts'
import { firstHeader } from '../../wire/headers.ts'
import { type AwsLocation, awsAddress, awsFailure, baseModelId, listedModelIds } from '../shared/aws.ts'
import { unsupportedParameter } from '../shared/invalid-response.ts'
import { hasHiddenThinking } from '../shared/messages-abilities.ts'
import { openaiChat } from '../shared/openai-chat.ts'
import { type AnswerRepair, OPENAI_RULES, plainMessages } from '../shared/openai-chat-dialect.ts'
import { type ErrorWords, errorReader } from '../shared/openai-error.ts'
import { hasHiddenReasoning, reasoningTags } from '../shared/reasoning.ts'
import { bearerHeaders, commonParts } from '../shared/vendor-options.ts'
import type {
  ApiKeys,
  ChatOperation,
  EmbeddingsOperation,
  NamedVendorOptions,
  Vendor,
  VendorCall,
  VendorOptions,
  WireAnswer,
} from '../vendor.ts'
import { converseBroken, converseDecoder, converseFromWire } from './converse-answer.ts'
import { converseAbilities, converseToWire, SURCHARGES_LEFT_OUT } from './converse-request.ts'

/** Options of {@link amazonBedrock}. */
export interface AmazonBedrockOptions extends AwsLocation, NamedVendorOptions {
  /** API keys of Bedrock, or a provider of `signalbox/credentials`. If omitted, the vendor is not configured. */
  readonly apiKey?: ApiKeys
  /** Service. `bedrock-mantle` supports only OpenAI's dialect. Default `bedrock-runtime`. */
  readonly service?: 'bedrock-runtime' | 'bedrock-mantle' | undefined
  /** Models served under other ids. `upstream` is the id of a model or inference profile, or an ARN. */
  readonly models?: readonly Omit<ModelDefinition, 'vendor'>[] | undefined
}

const AMAZON_BEDROCK_OPTIONS = memberNames<Omit<AmazonBedrockOptions, keyof VendorOptions>>()(
  'id displayName region endpoint service models',
)

/** Path below the address of each service. */
const OPENAI_PATHS = { 'bedrock-runtime': '/openai/v1', 'bedrock-mantle': '/v1' } as const

/** Tiers and searches with their own price are dropped, as in Converse. */
const OPENAI_DIALECT_RULES = {
  ...OPENAI_RULES.max_completion_tokens,
  messages: plainMessages,
  service_tier: 'drop',
  web_search_options: 'drop',
} as const

/** The service answers penalties with 503, as if it were down. */
const GROK_RULES = { ...OPENAI_DIALECT_RULES, presence_penalty: 'drop', frequency_penalty: 'drop' } as const

/** The row has a `protocol` that the model does not support: "The model 'x' does not support the '/v1/chat/completions' API". */
const ERROR_WORDS: ErrorWords = { messages: [[/^the model '[^']*' does not support the '\/[^']*' API\b/i, 'operator']] }

/**
 * Creates the vendor Amazon Bedrock in one region: chat through Converse or, for models that offer it, in OpenAI's dialect. A row's
 * `protocol`, `converse` or `openai`, takes precedence over the choice by id. Titan, Nova and Cohere embeddings use InvokeModel.
 * @throws TypeError for an unknown option, and unless exactly one of `region` and `endpoint` is given.
 */
export function amazonBedrock(options: AmazonBedrockOptions): Vendor {
  const common = commonParts('amazonBedrock', options, AMAZON_BEDROCK_OPTIONS, {
    id: 'amazon-bedrock',
    displayName: 'Amazon Bedrock',
  })
  const { apiKeys } = common
  checkEnumerated(options.service, Object.keys(OPENAI_PATHS), 'amazonBedrock', 'service')
  const service = options.service ?? 'bedrock-runtime'
  const { origin, prefix } = awsAddress('amazonBedrock', service, options)
  const errors = errorReader(ERROR_WORDS, apiKeys)
  const dialect = {
    path: `${prefix}${OPENAI_PATHS[service]}/chat/completions`,
    rulesFor: (upstream: string) => (isGrok(upstream) ? GROK_RULES : OPENAI_DIALECT_RULES),
    takesImageUrls: false,
    hasHiddenReasoning: openaiReasonsUnseen,
    streamFailure: errors.fromStream,
  }
  const others = openaiChat({ ...dialect, answerRepair: CALL_ID_REPAIR })
  const openWeight = openaiChat({ ...dialect, answerRepair: OPEN_WEIGHT_REPAIR })
  const openai = chatByCall(({ model }) => (isOpenWeight(model.upstream) ? openWeight : others), {
    ...others,
    protocols: ['openai'],
  })
  return {
    ...common,
    origin,
    configuredBy: 'AWS_BEARER_TOKEN_BEDROCK or amazonBedrock({ apiKey })',
    catalogId: 'bedrock',
    catalogIds: listedModelIds,
    chat: service === 'bedrock-mantle' ? openai : bedrockChat(openai, converseChat(prefix, apiKeys)),
    ...(service === 'bedrock-mantle' ? {} : { embeddings: invokeEmbeddings(prefix) }),
    errorFrom: (answer, nowMs) => awsFailure(answer, nowMs, apiKeys) ?? errors.fromAnswer(answer, nowMs),
  }
}

/** Chat by Converse. @param prefix Path in front of the API's own. */
function converseChat(prefix: string, apiKeys: readonly string[]): ChatOperation {
  return {
    toWire: (call) => converseToWire(call, prefix),
    fromWire: converseFromWire,
    brokenAnswer: converseBroken,
    decoder: (call, writer) => converseDecoder(call, writer, apiKeys),
    takesImageUrls: () => false,
    takesCacheControl: () => true,
    mostOutputTokens: ({ limits, upstream }) =>
      limits.maxOutputTokens ?? converseAbilities(upstream).messages.maxOutputTokens,
    makesAnswerFormats: () => true,
    leavesOut: SURCHARGES_LEFT_OUT,
    hasHiddenReasoning: ({ model, request }) => {
      const { messages, reasoningFields } = converseAbilities(model.upstream)
      const { reasoning_effort: effort } = request
      const isAsked = effort !== undefined && effort !== null && effort !== 'none'
      return reasoningFields === undefined
        ? hasHiddenThinking(messages, effort) && messages.thinking !== 'none'
        : isAsked
    },
  }
}

/** Chat in the dialect of each model: OpenAI's, or Converse. */
function bedrockChat(openai: ChatOperation, converse: ChatOperation): ChatOperation {
  const of = (model: CatalogModel): ChatOperation => (surfaceOf(model) === 'openai' ? openai : converse)
  return chatByCall(({ model }) => of(model), {
    protocols: SURFACES,
    takesImageUrls: () => false,
    takesCacheControl: () => true,
    mostOutputTokens: (model) => of(model).mostOutputTokens?.(model),
    makesAnswerFormats: (model) => of(model).makesAnswerFormats?.(model) ?? false,
    // The dialect of OpenAI leaves them out too: see its rules.
    leavesOut: SURCHARGES_LEFT_OUT,
  })
}

/** Dialects of the service for chats, as in the `protocol` of rows. */
const SURFACES = ['openai', 'converse'] as const
type Surface = (typeof SURFACES)[number]

/** Models that are offered only or best in OpenAI's dialect. All others use Converse. A row's `protocol` takes precedence. */
const OPENAI_DIALECT = /^(?:openai|xai)\./

const OPENAI_MODEL = /^openai\./

/** Returns the dialect for requests to a model. */
function surfaceOf({ protocol, upstream }: Pick<ModelFacts, 'protocol'> & { readonly upstream: string }): Surface {
  if (protocol === 'openai' || protocol === 'converse') return protocol
  return OPENAI_DIALECT.test(baseModelId(upstream)) ? 'openai' : 'converse'
}

/** Whether a model of OpenAI has open weights. */
function isOpenWeight(upstream: string): boolean {
  return baseModelId(upstream).startsWith('openai.gpt-oss')
}

function isGrok(upstream: string): boolean {
  return baseModelId(upstream).startsWith('xai.')
}

/** Whether a model of OpenAI reasons without showing it for this request. Its open-weight models show their reasoning. */
function openaiReasonsUnseen(upstream: string, request: ChatRequest): boolean {
  const base = baseModelId(upstream)
  return (
    OPENAI_MODEL.test(base) && !isOpenWeight(upstream) && hasHiddenReasoning(base.replace(OPENAI_MODEL, ''), request)
  )
}

/** Ids that start from zero in each answer and therefore repeat in the next turn. */
const COUNTED_ID = /^call_\d+$/

/** Repairs answers in OpenAI's dialect: a call with a counted id or without an id gets a unique one. */
const CALL_ID_REPAIR: AnswerRepair = {
  whole: (completion) => removeCountedIds(completion, 'message'),
  chunks: () => (chunk) => removeCountedIds(chunk, 'delta'),
  isOfToolCalls: true,
}

const REASONING_TAGS = reasoningTags('reasoning')

/** Also repairs reasoning that open-weight models write into the content (Bedrock, "OpenAI models"). */
const OPEN_WEIGHT_REPAIR: AnswerRepair = {
  whole(completion) {
    const isRenamed = CALL_ID_REPAIR.whole(completion)
    return REASONING_TAGS.whole(completion) || isRenamed
  },
  chunks() {
    const splitChunk = REASONING_TAGS.chunks()
    return (chunk) => {
      const isRenamed = removeCountedIds(chunk, 'delta')
      return splitChunk(chunk) || isRenamed
    }
  },
}

function removeCountedIds({ choices }: Record<string, unknown>, member: 'message' | 'delta'): boolean {
  let isChanged = false
  for (const choice of Array.isArray(choices) ? choices : []) {
    const message = isJsonObject(choice) ? choice[member] : undefined
    const calls = isJsonObject(message) ? message['tool_calls'] : undefined
    for (const call of Array.isArray(calls) ? calls : []) {
      if (!isJsonObject(call) || typeof call['id'] !== 'string' || !COUNTED_ID.test(call['id'])) continue
      delete call['id']
      isChanged = true
    }
  }
  return isChanged
}

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
function invokeEmbeddings(prefix: string): EmbeddingsOperation {
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
