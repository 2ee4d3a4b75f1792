import type { MemberNames } from '../../core/known-members.ts'
import { chatByResponses } from '../shared/chat-by-responses.ts'
import { ownsEncryptedReasoning } from '../shared/encrypted-reasoning.ts'
import { keyPool } from '../shared/key-pool.ts'
import { openaiAbilities } from '../shared/openai-abilities.ts'
import { openaiBatches } from '../shared/openai-batches.ts'
import { openaiChat } from '../shared/openai-chat.ts'
import { openaiEmbeddings } from '../shared/openai-embeddings.ts'
import { errorReader } from '../shared/openai-error.ts'
import {
  DEFAULT_TOKEN_LIMIT_FIELD,
  OPENAI_RULES,
  ROUTING_RULES,
  type TokenLimitField,
  tokenLimitField,
} from '../shared/openai-field-rules.ts'
import { openaiImageEdits, openaiImages } from '../shared/openai-images.ts'
import { openaiMedia } from '../shared/openai-media.ts'
import { openaiModerations } from '../shared/openai-moderations.ts'
import { OPENAI_PRICE_MEMBERS } from '../shared/openai-price-members.ts'
import { type OpenAIResponsesDialect, openaiResponses } from '../shared/openai-responses.ts'
import { openaiTranscriptions } from '../shared/openai-transcriptions.ts'
import { effortUnseen, reasonsUnseen } from '../shared/reasons-unseen.ts'
import { safetyIdentifiers } from '../shared/safety-identifier.ts'
import { takesToolsByResponses } from '../shared/tools-by-responses.ts'
import { vendorAddress } from '../shared/vendor-address.ts'
import { checkVendorOptions } from '../shared/vendor-options.ts'
import {
  type ApiKeys,
  type ConnectionOptions,
  type UnlistedModelOptions,
  type Vendor,
  vendorConnection,
} from '../vendor.ts'
import { breakpointRules, RESPONSES_BREAKPOINTS, takesBreakpoints } from './cache-breakpoints.ts'
import { OPENAI_MODERATION_MODELS, OPENAI_TRANSCRIPTION_MODELS } from './openai-models.ts'
import { OPENAI_SPEECH_MODELS, openaiSpeech } from './openai-speech.ts'

const API_PATH = '/v1'

/** Options of {@link openai}. */
export interface OpenAIOptions extends UnlistedModelOptions, ConnectionOptions {
  /** One or several API keys. If omitted, the vendor is not configured and its models are listed as unavailable. */
  readonly apiKey?: ApiKeys
  /** Origin, with or without a path prefix and `/v1`. Default `https://api.openai.com`. */
  readonly baseURL?: string | undefined
  /** Field for the token limit of a model, by the vendor's id. Takes precedence over the built-in table. */
  readonly tokenLimitFields?: Readonly<Record<string, TokenLimitField>> | undefined
  /** Field for the token limit of models in no table. Default `max_completion_tokens`. */
  readonly defaultTokenLimitField?: TokenLimitField | undefined
  /**
   * Whether the server has `/v1/responses`. Default true. If false, for servers with only chat completions, Responses are
   * translated into chat completions and no chat is translated into Responses.
   */
  readonly responses?: boolean | undefined
  /**
   * Whether callers may name stored objects: files, vector stores, containers and prompts in Responses, files in chats. Default
   * false: all accounts of the gateway share the operator's, so each caller could read what another one stored.
   */
  readonly allowVendorObjects?: boolean | undefined
  /**
   * Secret of at least 16 characters. With it, chats and Responses carry `safety_identifier`: an HMAC-SHA-256 of account and end user.
   * It replaces the caller's own `safety_identifier` and `user`. If omitted, those of the caller are sent.
   */
  readonly safetyIdentifierKey?: string | undefined
}

const OPENAI_OPTIONS = {
  apiKey: true,
  baseURL: true,
  tokenLimitFields: true,
  defaultTokenLimitField: true,
  responses: true,
  allowVendorObjects: true,
  safetyIdentifierKey: true,
  passUnknownModels: true,
  headers: true,
  query: true,
  tls: true,
  proxy: true,
} satisfies MemberNames<OpenAIOptions>

/** Prefixes of OpenAI's ids. */
const CLAIMS = ['gpt-*', 'chatgpt-*', 'ft:*', 'text-embedding-*', 'text-moderation-*', 'omni-moderation-*', 'tts-*']
  .concat(['whisper-*', 'dall-e-*', 'sora-*', 'codex-*', 'computer-use-*'])
  .concat(Array.from('123456789', (digit) => `o${digit}*`))

const BREAKPOINT_RULES = {
  max_tokens: breakpointRules(OPENAI_RULES.max_tokens),
  max_completion_tokens: breakpointRules(OPENAI_RULES.max_completion_tokens),
} as const

/**
 * Creates the vendor OpenAI: responses, chat completions, embeddings, images, image edits, speech, transcription, and moderations.
 * @throws TypeError if `baseURL` is not an http(s) URL without query and credentials.
 */
export function openai(options: OpenAIOptions = {}): Vendor {
  checkVendorOptions('openai', options, OPENAI_OPTIONS)
  const pool = keyPool(options.apiKey)
  const { apiKeys } = pool
  const { origin, prefix } = vendorAddress(options.baseURL ?? 'https://api.openai.com', API_PATH)
  const errors = errorReader({}, apiKeys)
  const fieldOf = (upstream: string): TokenLimitField =>
    tokenLimitField(upstream, options.tokenLimitFields, options.defaultTokenLimitField ?? DEFAULT_TOKEN_LIMIT_FIELD)
  const chat = openaiChat({
    path: `${prefix}${API_PATH}/chat/completions`,
    rulesFor: (upstream) => (takesBreakpoints(upstream) ? BREAKPOINT_RULES : OPENAI_RULES)[fieldOf(upstream)],
    reasonsUnseen,
    abilities: ({ upstream, efforts }) => openaiAbilities(upstream, efforts),
    moderates: true,
    takesCacheControl: takesBreakpoints,
    streamFailure: errors.fromStream,
  })
  const responses: OpenAIResponsesDialect = {
    path: `${prefix}${API_PATH}/responses`,
    rules: ROUTING_RULES,
    reasonsUnseen: effortUnseen,
    moderates: true,
    chatRulesFor: (upstream) => (takesBreakpoints(upstream) ? RESPONSES_BREAKPOINTS : {}),
    streamFailure: errors.fromStream,
  }
  return {
    id: 'openai',
    displayName: 'OpenAI',
    origin,
    ...vendorConnection(options),
    allowsVendorObjects: options.allowVendorObjects,
    endUserMembers: safetyIdentifiers('openai', options.safetyIdentifierKey),
    ...pool,
    configuredBy: 'OPENAI_API_KEY or openai({ apiKey })',
    models: [...OPENAI_SPEECH_MODELS, ...OPENAI_TRANSCRIPTION_MODELS, ...OPENAI_MODERATION_MODELS],
    hasBuiltInModels: true,
    claims: CLAIMS,
    passUnknownModels: options.passUnknownModels ?? false,
    ...(options.responses === false
      ? { chat }
      : { chat: chatByResponses(chat, responses, takesToolsByResponses), responses: openaiResponses(responses) }),
    ownsReasoning: ownsEncryptedReasoning,
    embeddings: openaiEmbeddings({
      path: `${prefix}${API_PATH}/embeddings`,
      maxInputs: 2048,
      // Limit for all inputs together (OpenAI API, "Create embeddings").
      maxTokens: () => 300_000,
      takesTokens: true,
      rules: {},
      givesBase64: true,
      prefersBase64: true,
    }),
    images: {
      generations: openaiImages({
        path: `${prefix}${API_PATH}/images/generations`,
        streamFailure: errors.fromStream,
      }),
    },
    imageEdits: openaiImageEdits({ path: `${prefix}${API_PATH}/images/edits`, streamFailure: errors.fromStream }),
    speech: openaiSpeech(`${prefix}${API_PATH}/audio/speech`),
    transcription: openaiTranscriptions({
      path: `${prefix}${API_PATH}/audio/transcriptions`,
      streamFailure: errors.fromStream,
    }),
    moderations: openaiModerations({ path: `${prefix}${API_PATH}/moderations` }),
    batches: openaiBatches({
      prefix: `${prefix}${API_PATH}`,
      paths: ['/chat/completions', '/embeddings', '/responses'],
      // "Batch" of OpenAI's guides.
      limits: { maxRequests: 50_000, maxBytes: 200 * 1_000_000, maxLineBytes: 200 * 1_000_000 },
      nameMember: 'signalbox_batch',
      fileLifetimeSeconds: 3 * 24 * 3_600,
      apiKeys,
    }),
    media: openaiMedia,
    priceMembers: OPENAI_PRICE_MEMBERS,
    errorFrom: errors.fromAnswer,
  }
}
