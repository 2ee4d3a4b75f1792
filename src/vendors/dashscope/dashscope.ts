import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { memberNames } from '../../core/known-members.ts'
import type { ChatMessage, ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { EmbeddingsRequest } from '../../endpoints/embeddings/embeddings-request.ts'
import {
  type MultimodalImageRequest,
  pictureSize,
  unsupportedParameters,
} from '../../endpoints/images/multimodal/multimodal-image-request.ts'
import { asBuffer, joinChunks } from '../../wire/chunks.ts'
import { firstHeader } from '../../wire/headers.ts'
import { CLOSE_BRACE, skipBlanks } from '../../wire/json-cursor.ts'
import { ByteEdits, findMembers } from '../../wire/json-edits.ts'
import { openaiBatches } from '../shared/openai-batches.ts'
import { openaiChat } from '../shared/openai-chat.ts'
import {
  activeRules,
  type ChatFieldTable,
  type FieldMapping,
  type FieldRules,
  forcesCall,
  hasExtensions,
  PASS_ALL,
  ROUTING_RULES,
  withoutExtensions,
} from '../shared/openai-chat-dialect.ts'
import { openaiEmbeddings } from '../shared/openai-embeddings.ts'
import { type ErrorReader, type ErrorWords, errorReader } from '../shared/openai-error.ts'
import { type RerankFields, readRanking, rerankWire } from '../shared/rerank.ts'
import { bearerHeaders, commonParts, type VendorAddress, vendorAddress } from '../shared/vendor-options.ts'
import type {
  AnswerBody,
  ImageOperation,
  MediaRules,
  RerankInput,
  RerankLimits,
  RerankOperation,
  Vendor,
  VendorCall,
  VendorOptions,
} from '../vendor.ts'
import { DASHSCOPE_TRANSCRIPTION_MODELS, speechOperation, transcriptionOperation } from './audio.ts'
import { videoOperation } from './video-operation.ts'

const COMPATIBLE_PATH = '/compatible-mode/v1'
// Path of reranking, which has another prefix.
const COMPATIBLE_RERANK_PATH = '/compatible-api/v1/reranks'
const NATIVE_PATH = '/api/v1'

const REGION_ORIGINS = {
  cn: 'https://dashscope.aliyuncs.com',
  intl: 'https://dashscope-intl.aliyuncs.com',
  us: 'https://dashscope-us.aliyuncs.com',
  hk: 'https://cn-hongkong.dashscope.aliyuncs.com',
} as const

/** Region of the operator's account: mainland China, Singapore, Virginia, Hong Kong. A key works only in its region. */
export type DashScopeRegion = keyof typeof REGION_ORIGINS

/** Options of {@link dashscope}. */
export interface DashScopeOptions extends VendorOptions {
  /** Region. Default `intl`. Ignored if `baseURL` is given. */
  readonly region?: DashScopeRegion | undefined
  /** Origin of a workspace host or proxy, with or without a path prefix and `/compatible-mode/v1` or `/api/v1`. */
  readonly baseURL?: string | undefined
}

const DASHSCOPE_OPTIONS = memberNames<Omit<DashScopeOptions, keyof VendorOptions>>()('region baseURL')

/**
 * Creates the vendor DashScope (Alibaba Cloud Model Studio): chat, embeddings, reranking and transcription through its
 * OpenAI-compatible mode; images, video, speech and older rerank models through its native API.
 * @throws TypeError if `baseURL` is not an http(s) URL without query and credentials, or the region is unknown.
 */
export function dashscope(options: DashScopeOptions = {}): Vendor {
  const common = commonParts('dashscope', options, DASHSCOPE_OPTIONS, { id: 'dashscope', displayName: 'DashScope' })
  const { apiKeys } = common
  const region = options.region ?? 'intl'
  if (!Object.hasOwn(REGION_ORIGINS, region)) throw new TypeError(`unknown DashScope region: ${region}`)
  const secrets = [...apiKeys, ...Object.values(options.headers ?? {}), ...Object.values(options.query ?? {})]
  const { origin, prefix } = addressOf(options.baseURL ?? REGION_ORIGINS[region])
  const errors = errorReader(DASHSCOPE_ERROR_WORDS, apiKeys)
  return {
    ...common,
    origin,
    configuredBy: 'DASHSCOPE_API_KEY or dashscope({ apiKey })',
    models: DASHSCOPE_TRANSCRIPTION_MODELS,
    hasBuiltInModels: true,
    claims: [
      'qwen*',
      'qwq-*',
      'qvq-*',
      'wan2*',
      'text-embedding-v*',
      'gte-rerank*',
      'cosyvoice-*',
      'paraformer-*',
      'fun-asr*',
    ],
    chat: openaiChat({
      path: `${prefix}${COMPATIBLE_PATH}/chat/completions`,
      rulesFor: dashscopeRules,
      streamsOnly: dashscopeStreamsOnly,
      // Ids are empty, and indexes are reused or do not begin at 0.
      repairsToolCalls: true,
      streamFailure: errors.fromStream,
    }),
    embeddings: openaiEmbeddings({
      path: `${prefix}${COMPATIBLE_PATH}/embeddings`,
      maxInputs: 10,
      takesTokens: false,
      rules: DASHSCOPE_EMBEDDING_RULES,
      givesBase64: false,
      prefersBase64: false,
    }),
    rerank: dashscopeRerank({
      compatible: `${prefix}${COMPATIBLE_RERANK_PATH}`,
      native: `${prefix}${NATIVE_PATH}/services/rerank/text-rerank/text-rerank`,
    }),
    images: { multimodal: multimodalImages(`${prefix}${NATIVE_PATH}/services/aigc/multimodal-generation/generation`) },
    videos: videoOperation(`${prefix}${NATIVE_PATH}`, secrets, errors),
    speech: speechOperation(`${prefix}${NATIVE_PATH}/services/aigc/multimodal-generation/generation`, errors),
    transcription: transcriptionOperation(`${prefix}${COMPATIBLE_PATH}/chat/completions`),
    batches: openaiBatches({
      prefix: `${prefix}${COMPATIBLE_PATH}`,
      paths: ['/chat/completions', '/embeddings'],
      // "OpenAI compatible - Batch (file input)" of Model Studio's documentation.
      limits: { maxRequests: 50_000, maxBytes: 500 * 1_000_000, maxLineBytes: 6 * 1_000_000 },
      // Name shown in the vendor's console.
      nameMember: 'ds_name',
      fileLifetimeSeconds: undefined,
      apiKeys,
    }),
    media: dashscopeMedia,
    errorFrom: dashscopeFailure(errors),
  }
}

/** The vendor's SDKs use base URLs with the path of either API. Both APIs are on the same host. */
function addressOf(baseURL: string): VendorAddress {
  const address = vendorAddress(baseURL, COMPATIBLE_PATH)
  return address.prefix.endsWith(NATIVE_PATH) ? vendorAddress(baseURL, NATIVE_PATH) : address
}

const EDITED = ['model', 'parameters'] as const

/** Image generation through DashScope's native API, synchronously, without a task (Qwen-Image, API reference). */
function multimodalImages(path: string): ImageOperation<MultimodalImageRequest> {
  return {
    toWire: (call) => ({
      path,
      headers: bearerHeaders(call.apiKey, 'application/json'),
      body: multimodalRequest(call),
      dropped: [],
    }),
    fromWire: passPictures,
  }
}

/**
 * Passes the answer through with the vendor's number of images, else with the counted number. Returns `undefined` without an image,
 * unless the vendor reports that it generated none: `errorFrom` reads an error in a 2xx.
 */
function passPictures(chunks: readonly Uint8Array[]): AnswerBody | undefined {
  const body = parseVendorJson(joinChunks(chunks).toString('utf8'))
  if (!isJsonObject(body) || !isJsonObject(body['output'])) return undefined
  const { choices } = body['output']
  if (!Array.isArray(choices)) return undefined
  const pictures = choices.reduce<number>((sum, choice) => sum + picturesOf(choice), 0)
  const reported = reportedImages(body['usage'])
  if (pictures === 0) return reported === 0 ? { chunks, usage: { images: 0 }, isRefusal: true } : undefined
  return { chunks, usage: { images: reported ?? pictures } }
}

/** Several images are blocks of one choice or one choice each. */
function picturesOf(choice: unknown): number {
  const message = isJsonObject(choice) ? choice['message'] : undefined
  const content = isJsonObject(message) ? message['content'] : undefined
  if (!Array.isArray(content)) return 0
  return content.filter((block) => isJsonObject(block) && typeof block['image'] === 'string' && block['image'] !== '')
    .length
}

/** Returns `image_count`, which newer models call `output_image_count`, even if implausible. */
function reportedImages(usage: unknown): number | undefined {
  if (!isJsonObject(usage)) return undefined
  const count = usage['image_count'] ?? usage['output_image_count']
  return typeof count === 'number' ? count : undefined
}

/**
 * Builds the body for the vendor: the caller's request with the vendor's model id. Text to image always gets a `parameters.size`,
 * because the vendor's default differs from the billed size. Parameters that the model does not support are dropped, as they have
 * no effect. The caller's bytes are kept if they are unambiguous.
 */
function multimodalRequest(call: VendorCall<MultimodalImageRequest>): Uint8Array | string {
  const { request, model, bytes } = call
  const unsupported = unsupportedParameters(request, model.image)
  if (unsupported.length > 0) {
    const kept = Object.entries(request.parameters ?? {}).filter(([name]) => !unsupported.includes(name))
    return JSON.stringify({ ...request, parameters: Object.fromEntries(kept), model: model.upstream })
  }
  const size = request.parameters?.size === undefined ? pictureSize(request, model) : undefined
  const edited = bytes === undefined ? undefined : editedBytes(asBuffer(bytes), request, model.upstream, size)
  if (edited !== undefined) return edited
  const parameters = size === undefined ? {} : { parameters: { ...request.parameters, size } }
  return JSON.stringify({ ...request, ...parameters, model: model.upstream })
}

function editedBytes(
  bytes: Buffer,
  request: MultimodalImageRequest,
  upstream: string,
  size: string | undefined,
): Buffer | undefined {
  const { model, parameters: given } = findMembers(bytes, EDITED)
  // A name with escapes is not found here, so a second member must not be added.
  if (model === undefined || (given === undefined) !== (request.parameters === undefined)) return undefined
  // Null members are not in the parsed request.
  if (bytes.includes('null')) return undefined
  const added = size !== undefined && given === undefined ? `,"parameters":${JSON.stringify({ size })}` : ''
  const edits = [{ ...model, text: `${JSON.stringify(upstream)}${added}` }]
  if (size !== undefined && given !== undefined) {
    const inside = given.start + 1
    const comma = bytes[skipBlanks(bytes, inside)] === CLOSE_BRACE ? '' : ','
    edits.push({ start: inside, end: inside, text: `"size":${JSON.stringify(size)}${comma}` })
  }
  const inOrder = new ByteEdits()
  edits.sort((one, other) => one.start - other.start)
  for (const { start, end, text } of edits) inOrder.replace(start, end, Buffer.from(text))
  return inOrder.apply(bytes)
}

// Maximum documents and tokens per call, and the tokens to which each text is truncated (Model Studio, text rerank).
const MAX_DOCUMENTS = 500
const MAX_TOKENS = 120_000
const OLD_MAX_TOKENS = 30_000
const MAX_TEXT_TOKENS = 4_000
// The model that also ranks images.
const MULTIMODAL = /^qwen3-vl-rerank/
const MAX_MULTIMODAL_DOCUMENTS = 100
const MAX_PICTURES = 40
const MAX_MULTIMODAL_TEXT_TOKENS = 8_000
const TAKEN = new Set(['instruct'])

/** Models with the compatible API and its flat fields. All others use the native API. */
const COMPATIBLE = /^qwen3-rerank/

/**
 * Creates reranking at DashScope (Model Studio, text rerank). `qwen3-rerank` scores each document separately; for the other models
 * this is unknown.
 * @param paths Paths of the compatible and the native API.
 */
function dashscopeRerank(paths: { readonly compatible: string; readonly native: string }): RerankOperation {
  const compatible: RerankFields = { path: paths.compatible, topN: 'top_n', taken: TAKEN }
  const native: RerankFields = {
    ...compatible,
    path: paths.native,
    layout: ({ model, query, documents, ...parameters }) => ({
      model,
      input: { query, documents: nativeDocuments(documents) },
      parameters,
    }),
  }
  return {
    limits: limitsOf,
    toWire: (call, input) => rerankWire(call, input, COMPATIBLE.test(call.model.upstream) ? compatible : native),
    fromWire: (answer, { model }) =>
      COMPATIBLE.test(model.upstream)
        ? readRanking(answer)
        : readRanking(answer, { output: 'output', id: 'request_id' }),
  }
}

function limitsOf(upstream: string): RerankLimits {
  if (COMPATIBLE.test(upstream)) return { maxDocuments: MAX_DOCUMENTS, maxTokens: MAX_TOKENS, isPointwise: true }
  if (MULTIMODAL.test(upstream))
    return {
      ...{ maxDocuments: MAX_MULTIMODAL_DOCUMENTS, maxPictures: MAX_PICTURES },
      ...{ maxTokens: MAX_TOKENS, maxTextTokens: MAX_MULTIMODAL_TEXT_TOKENS },
    }
  if (!/^gte-rerank/.test(upstream)) return { maxDocuments: MAX_DOCUMENTS }
  return { maxDocuments: MAX_DOCUMENTS, maxTokens: OLD_MAX_TOKENS, maxTextTokens: MAX_TEXT_TOKENS }
}

/** If any document is an image, texts are objects too. */
function nativeDocuments(documents: RerankInput['documents']): readonly unknown[] {
  if (documents.every((document) => typeof document === 'string')) return documents
  return documents.map((document) => (typeof document === 'string' ? { text: document } : document))
}

/** The vendor has no developer role and does not accept reasoning of earlier turns. */
const messages: FieldMapping<ChatRequest> = {
  needed: (_value, request) =>
    request.messages.some((message) => message.role === 'developer' || hasExtensions(message)),
  apply: (body, value) => {
    body['messages'] = (value as ChatMessage[]).map((message) => {
      const plain = withoutExtensions(message)
      return plain.role === 'developer' ? { ...plain, role: 'system' } : plain
    })
  },
}

/**
 * The older field may limit the answer without its thinking; the newer one limits both (Model Studio, "Notice of Changes to Certain
 * Model Fields", April 2026). If both are set, the smaller one counts.
 */
const asCompletionTokens: FieldMapping<ChatRequest> = {
  needed: () => true,
  apply: (body, value) => {
    delete body['max_tokens']
    if (typeof value !== 'number') return
    const { max_completion_tokens: other } = body
    body['max_completion_tokens'] = typeof other === 'number' ? Math.min(other, value) : value
  },
}

/** The vendor rejects an empty list of tools, so it is omitted together with other tool fields. */
const toolsUnlessEmpty: FieldMapping<ChatRequest> = {
  needed: (value) => Array.isArray(value) && value.length === 0,
  apply: (body) => {
    delete body['tools']
    delete body['tool_choice']
    delete body['parallel_tool_calls']
  },
  losses: (_value, { tool_choice: choice }) => (forcesCall(choice) ? ['tool_choice'] : []),
}

/** Models whose thinking a request can turn on or off (Model Studio, "Deep thinking", hybrid thinking mode). */
const HYBRID_MODELS = [
  /^qwen3\.[567]-(?:max|plus|flash)(?:-preview|-\d{4}-\d{2}-\d{2})?$/,
  /^qwen3(?:\.[56])?-\d+(?:\.\d+)?b(?:-a\d+b)?$/,
  /^qwen-(?:plus|flash|turbo)(?:-latest)?$/,
]

/** Most hybrid models think by default. A caller's own `enable_thinking` is kept. */
const effortUnlessNone: FieldMapping<ChatRequest> = {
  needed: (effort, request) => effort === 'none' && request['enable_thinking'] === undefined,
  apply: (body) => {
    delete body['reasoning_effort']
    body['enable_thinking'] = false
  },
}

/** Open models that think by default, and only in streams. */
const THINKING_IN_STREAMS = /^qwen3-\d+(?:\.\d+)?b(?:-a\d+b)?$/

/** QwQ, QVQ, Qwen-Omni and open Qwen3 models that always think (Model Studio, "Streaming output"). */
const ONLY_IN_STREAMS = /^q(?:wq|vq)\b|\bomni\b|^qwen3-.*-thinking(?:-\d{4})?$/

/** Whether the vendor answers this request only in a stream. Unknown for unlisted models. */
function dashscopeStreamsOnly(upstream: string, request: ChatRequest): boolean {
  return ONLY_IN_STREAMS.test(upstream) || (THINKING_IN_STREAMS.test(upstream) && asksToThink(request))
}

function asksToThink(request: ChatRequest): boolean {
  const { reasoning_effort: effort, response_format: format, enable_thinking: enabled } = request
  if (enabled !== undefined) return enabled === true
  // JSON output is rejected while a model thinks.
  const isText = format === undefined || format === null || format.type === 'text'
  return isText && effort !== undefined && effort !== null && effort !== 'none'
}

/**
 * Disables thinking in other whole answers of such a model (Model Studio, error codes: "enable_thinking must be set to false for
 * non-streaming calls"), because clients of OpenAI's API have no field for it.
 */
const withoutThinking: FieldMapping<ChatRequest> = {
  needed: (_model, request) => request.stream !== true && request['enable_thinking'] === undefined,
  apply: (body) => {
    delete body['reasoning_effort']
    body['enable_thinking'] = false
  },
  losses: (_model, { reasoning_effort: effort }) =>
    effort === undefined || effort === null || effort === 'none' ? [] : ['reasoning_effort'],
}

/**
 * DashScope's chat fields (OpenAI-compatible mode) for models other than {@link HYBRID_MODELS}. Values that only this vendor
 * rejects, such as a temperature of 2, and its own fields, such as `enable_thinking`, pass through.
 */
export const DASHSCOPE_FIELDS: ChatFieldTable = {
  ...PASS_ALL,
  messages,
  max_tokens: asCompletionTokens,
  tools: toolsUnlessEmpty,
  frequency_penalty: 'drop',
}

const RULES = { ...activeRules(DASHSCOPE_FIELDS), ...ROUTING_RULES }
const HYBRID_FIELDS: ChatFieldTable = { ...DASHSCOPE_FIELDS, reasoning_effort: effortUnlessNone }
const HYBRID_RULES = { ...activeRules(HYBRID_FIELDS), ...ROUTING_RULES }
const STREAMED_RULES = { ...HYBRID_RULES, model: withoutThinking }

/** Returns the rules that apply to a model, by the vendor's own id. */
function dashscopeRules(upstream: string): FieldRules<ChatRequest> {
  if (THINKING_IN_STREAMS.test(upstream)) return STREAMED_RULES
  return HYBRID_MODELS.some((pattern) => pattern.test(upstream)) ? HYBRID_RULES : RULES
}

/** The vendor returns vectors only as numbers; the gateway encodes base64. */
export const DASHSCOPE_EMBEDDING_RULES: FieldRules<EmbeddingsRequest> = {
  encoding_format: {
    needed: (value) => value !== 'float',
    apply: (body) => {
      body['encoding_format'] = 'float'
    },
  },
}

/** "Free allocated quota exceeded.", "The free quota has been exhausted. To continue …". From its beginning: errors quote requests. */
const FREE_QUOTA_USED_UP = /^(?:the )?free (?:allocated )?quota\b/i

/** Errors of the operator's account, rate limits and faults of the service (DashScope, error codes page). */
const DASHSCOPE_ERROR_WORDS: ErrorWords = {
  concerns: {
    Arrearage: 'key',
    'Model.AccessDenied': 'model',
    // "Access to model denied": a model is bought, and its free quota used up, by itself.
    'AccessDenied.Unpurchased': 'model',
    'AllocationQuota.FreeTierOnly': 'model',
    'Workspace.AccessDenied': 'key',
    'App.AccessDenied': 'key',
  },
  concernMessages: [
    [FREE_QUOTA_USED_UP, 'model'],
    // A model called in a mode that it does not have.
    [/^current user api does not support (?:a)?synchronous calls/i, 'model'],
  ],
  messages: [
    // The same code means "too many tokens a minute", which is temporary, and this, which is permanent.
    [FREE_QUOTA_USED_UP, 'operator'],
    // A model that this API does not serve; callers choose neither.
    [/^url error, (?:please )?check url/i, 'operator'],
  ],
  codes: {
    Arrearage: 'operator',
    AccessDenied: 'operator',
    access_denied: 'operator',
    'Model.AccessDenied': 'operator',
    'Workspace.AccessDenied': 'operator',
    'App.AccessDenied': 'operator',
    'AllocationQuota.FreeTierOnly': 'operator',
    CommodityNotPurchased: 'operator',
    PrepaidBillOverdue: 'operator',
    PostpaidBillOverdue: 'operator',
    InvalidApiKey: 'operator',
    ModelNotFound: 'operator',
    WorkSpaceNotFound: 'operator',
    Throttling: 'rate_limited',
    insufficient_quota: 'rate_limited',
    limit_requests: 'rate_limited',
    limit_burst_rate: 'rate_limited',
    LimitRequests: 'rate_limited',
    'InternalError.Algo.InvalidParameter': 'caller',
    DataInspectionFailed: 'caller',
    data_inspection_failed: 'caller',
    IPInfringementSuspect: 'caller',
    CustomRoleBlocked: 'caller',
    FaqRuleBlocked: 'caller',
    UnsupportedOperation: 'caller',
    'InternalError.Timeout': 'timeout',
    RequestTimeOut: 'timeout',
    ModelServingError: 'unavailable',
    ModelUnavailable: 'unavailable',
  },
}

// Their ids are UUIDs; anything else is not shown to callers.
const REQUEST_ID = /^[\w-]{1,100}$/

/**
 * Reads DashScope's errors of both APIs with the vendor's own request id, which its support needs: `request_id` at the top of the
 * body (native and compatible mode), else the header `x-request-id`.
 */
function dashscopeFailure(errors: ErrorReader): Vendor['errorFrom'] {
  return (answer, nowMs) => {
    const body = parseVendorJson(asBuffer(answer.body).toString('utf8'))
    const named = isJsonObject(body) ? body['request_id'] : undefined
    const requestId = named ?? firstHeader(answer.headers, 'x-request-id')
    const failure = errors.fromAnswer(answer, nowMs)
    return typeof requestId === 'string' && REQUEST_ID.test(requestId) ? { ...failure, requestId } : failure
  }
}

// One token per 28 × 28 pixels (32 × 32 for newer models) and two marks, from 4 to 16,384 (Model Studio, "Visual understanding",
// https://www.alibabacloud.com/help/en/model-studio/vision). `qwen_vl_utils` computes the same.
const PATCH_SIDE = 28
const MARKS = 2
const MIN_PATCHES = 4
const MAX_PATCHES = 16_384

/** 25 tokens per second, and at least one second (Model Studio, "Audio understanding"). Not confirmed by another page. */
const AUDIO_TOKENS_PER_SECOND = 25

/** Maximum tokens of a document and of a call (Model Studio, text rerank). */
const RERANK = /^qwen3-vl-rerank/
const MAX_DOCUMENT_TOKENS = 8_000
const MAX_RERANK_TOKENS = 120_000

/** DashScope's rules for images and audio. */
const dashscopeMedia: MediaRules = {
  tokens({ kind, width, height, seconds }, upstream) {
    if (kind === 'image') {
      const tokens = pictureTokens(width, height)
      return RERANK.test(upstream) ? Math.min(tokens, MAX_DOCUMENT_TOKENS) : tokens
    }
    return kind === 'audio' && seconds !== undefined ? Math.max(1, seconds) * AUDIO_TOKENS_PER_SECOND : undefined
  },
  contextTokens: (upstream) => (RERANK.test(upstream) ? MAX_RERANK_TOKENS : undefined),
}

function pictureTokens(width: number | undefined, height: number | undefined): number {
  if (width === undefined || height === undefined) return MAX_PATCHES + MARKS
  const patches = Math.ceil(width / PATCH_SIDE) * Math.ceil(height / PATCH_SIDE)
  return Math.min(MAX_PATCHES, Math.max(MIN_PATCHES, patches)) + MARKS
}
