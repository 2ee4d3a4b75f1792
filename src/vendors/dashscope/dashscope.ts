import type { MemberNames } from '../../core/known-members.ts'
import { keyPool } from '../shared/key-pool.ts'
import { openaiBatches } from '../shared/openai-batches.ts'
import { openaiChat } from '../shared/openai-chat.ts'
import { openaiEmbeddings } from '../shared/openai-embeddings.ts'
import { errorReader } from '../shared/openai-error.ts'
import { type VendorAddress, vendorAddress } from '../shared/vendor-address.ts'
import { checkVendorOptions } from '../shared/vendor-options.ts'
import {
  type ApiKeys,
  type ConnectionOptions,
  type UnlistedModelOptions,
  type Vendor,
  vendorConnection,
} from '../vendor.ts'
import { DASHSCOPE_EMBEDDING_RULES, dashscopeRules, dashscopeStreamsOnly } from './dashscope-chat.ts'
import { DASHSCOPE_ERROR_WORDS, dashscopeFailure } from './dashscope-errors.ts'
import { dashscopeMedia } from './media-tokens.ts'
import { multimodalImages } from './multimodal-images.ts'
import { dashscopeRerank } from './rerank-operation.ts'
import { speechOperation } from './speech-operation.ts'
import { DASHSCOPE_TRANSCRIPTION_MODELS, transcriptionOperation } from './transcription-operation.ts'
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
export interface DashScopeOptions extends UnlistedModelOptions, ConnectionOptions {
  /** One or several API keys. If omitted, the vendor is not configured and its models are listed as unavailable. */
  readonly apiKey?: ApiKeys
  /** Region. Default `intl`. Ignored if `baseURL` is given. */
  readonly region?: DashScopeRegion | undefined
  /** Origin of a workspace host or proxy, with or without a path prefix and `/compatible-mode/v1` or `/api/v1`. */
  readonly baseURL?: string | undefined
}

const DASHSCOPE_OPTIONS = {
  apiKey: true,
  region: true,
  baseURL: true,
  passUnknownModels: true,
  headers: true,
  query: true,
  tls: true,
  proxy: true,
} satisfies MemberNames<DashScopeOptions>

/**
 * Creates the vendor DashScope (Alibaba Cloud Model Studio): chat, embeddings, reranking and transcription through its
 * OpenAI-compatible mode; images, video, speech and older rerank models through its native API.
 * @throws TypeError if `baseURL` is not an http(s) URL without query and credentials, or the region is unknown.
 */
export function dashscope(options: DashScopeOptions = {}): Vendor {
  checkVendorOptions('dashscope', options, DASHSCOPE_OPTIONS)
  const region = options.region ?? 'intl'
  if (!Object.hasOwn(REGION_ORIGINS, region)) throw new TypeError(`unknown DashScope region: ${region}`)
  const pool = keyPool(options.apiKey)
  const { apiKeys } = pool
  const secrets = [...apiKeys, ...Object.values(options.headers ?? {}), ...Object.values(options.query ?? {})]
  const { origin, prefix } = addressOf(options.baseURL ?? REGION_ORIGINS[region])
  const errors = errorReader(DASHSCOPE_ERROR_WORDS, apiKeys)
  return {
    id: 'dashscope',
    displayName: 'DashScope',
    origin,
    ...vendorConnection(options),
    ...pool,
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
    passUnknownModels: options.passUnknownModels ?? false,
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
