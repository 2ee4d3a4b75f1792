import type { ModelDefinition, TranscriptionAbilities } from '../../catalog/model.ts'
import { isJsonObject } from '../../core/json.ts'
import { memberNames } from '../../core/known-members.ts'
import type { ChatMessage, ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { chatByResponses } from '../shared/chat-by-responses.ts'
import {
  OPENAI_PRICE_MEMBERS,
  openaiAbilities,
  openaiMedia,
  takesToolsByResponses,
} from '../shared/openai-abilities.ts'
import { openaiBatches } from '../shared/openai-batches.ts'
import { openaiChat } from '../shared/openai-chat.ts'
import {
  DEFAULT_TOKEN_LIMIT_FIELD,
  type FieldMapping,
  type FieldRules,
  OPENAI_RULES,
  plainMessages,
  ROUTING_RULES,
  type TokenLimitField,
  tokenLimitField,
} from '../shared/openai-chat-dialect.ts'
import { openaiEmbeddings } from '../shared/openai-embeddings.ts'
import { errorReader } from '../shared/openai-error.ts'
import { openaiImageEdits, openaiImages } from '../shared/openai-images.ts'
import { openaiModerations } from '../shared/openai-moderations.ts'
import { type OpenAIResponsesDialect, openaiResponses } from '../shared/openai-responses.ts'
import { openaiTranscriptions, TEXT_ABILITIES, WHISPER_ABILITIES } from '../shared/openai-transcriptions.ts'
import { effortUnseen, hasHiddenReasoning, ownsEncryptedReasoning } from '../shared/reasoning.ts'
import {
  commonParts,
  type SafetyIdentifierOptions,
  type VendorObjectOptions,
  vendorAddress,
} from '../shared/vendor-options.ts'
import type { Vendor, VendorOptions } from '../vendor.ts'
import { OPENAI_SPEECH_MODELS, openaiSpeech } from './openai-speech.ts'

const OMNI_CREATED = Date.UTC(2024, 8, 26) / 1000

/** Models that moderate text and images (OpenAI, "Moderation"). */
export const OPENAI_MODERATION_MODELS: readonly ModelDefinition[] = [
  moderationModel('omni-moderation-latest', 'Omni Moderation'),
  moderationModel('omni-moderation-2024-09-26', 'Omni Moderation (2024-09-26)'),
]

function moderationModel(id: string, displayName: string): ModelDefinition {
  return { id, kind: 'moderation', vendor: 'openai', aliases: [`openai/${id}`], created: OMNI_CREATED, displayName }
}

const SPEAKERS = ['known_speaker_names', 'known_speaker_references'] as const
const LISTS = ['languages', 'keywords'] as const

const GPT_4O: TranscriptionAbilities = { ...TEXT_ABILITIES, refusedFields: [...LISTS, ...SPEAKERS] }

/** Models for transcription (OpenAI API, "Create transcription"). All except `gpt-transcribe` end on 2027-02-26. */
const OPENAI_TRANSCRIPTION_MODELS: readonly ModelDefinition[] = [
  transcriptionModel('gpt-transcribe', 'GPT Transcribe', { ...TEXT_ABILITIES, refusedFields: SPEAKERS }),
  transcriptionModel('gpt-4o-transcribe', 'GPT-4o Transcribe', GPT_4O, Date.UTC(2025, 2, 20)),
  transcriptionModel('gpt-4o-mini-transcribe', 'GPT-4o mini Transcribe', GPT_4O, Date.UTC(2025, 2, 20)),
  transcriptionModel('gpt-4o-transcribe-diarize', 'GPT-4o Transcribe Diarize', {
    formats: ['json', 'text', 'diarized_json'],
    streams: true,
    refusedFields: ['prompt', 'include', ...LISTS],
  }),
  transcriptionModel('whisper-1', 'Whisper', WHISPER_ABILITIES, Date.UTC(2023, 2, 1)),
]

function transcriptionModel(
  id: string,
  displayName: string,
  transcription: TranscriptionAbilities,
  createdMs = 0,
): ModelDefinition {
  return {
    id,
    kind: 'transcription',
    vendor: 'openai',
    aliases: [`openai/${id}`],
    transcription,
    created: createdMs / 1000,
    displayName,
  }
}

/** Maximum breakpoints in addition to the implicit one at the end of the prompt (OpenAI, "Prompt caching"). */
const MAX_BREAKPOINTS = 3

/** GPT-5.6 and later. */
const BREAKPOINT_MODELS = /^(?:ft:)?gpt-(?:[6-9]|[12]\d|5\.(?:[6-9]|\d{2}))/

/** Whether a model supports `prompt_cache_breakpoint`. */
export function takesBreakpoints(upstream: string): boolean {
  return BREAKPOINT_MODELS.test(upstream)
}

/** Returns the rules of a model with breakpoints: marks of Anthropic's dialect become breakpoints, but only the last three. */
function breakpointRules(rules: FieldRules<ChatRequest>): FieldRules<ChatRequest> {
  return { ...rules, messages: markedMessages, tools: plainTools }
}

const markedMessages: FieldMapping<ChatRequest> = {
  needed: (value, request) => plainMessages.needed(value, request) || marksIn(value) > 0,
  apply: (body, value) => {
    plainMessages.apply(body, value)
    body['messages'] = withBreakpoints(body['messages'] as ChatMessage[])
  },
  losses: (value) => (marksIn(value) > MAX_BREAKPOINTS ? ['cache_control'] : []),
}

/** Rules of a chat that is translated into Responses, which itself reports marks that it has no place for. */
const RESPONSES_BREAKPOINTS: FieldRules<ChatRequest> = {
  messages: {
    needed: (value) => marksIn(value, isItemOfParts) > 0,
    apply: (body, value) => {
      body['messages'] = withBreakpoints(value as ChatMessage[], isItemOfParts)
    },
    losses: (value) => (marksIn(value, isItemOfParts) > MAX_BREAKPOINTS ? ['cache_control'] : []),
  },
}

/** In Responses, parts of answers and tool outputs cannot have breakpoints. */
function isItemOfParts({ role }: ChatMessage): boolean {
  return role !== 'assistant' && role !== 'tool'
}

function withBreakpoints(
  messages: readonly ChatMessage[],
  takesThem?: (message: ChatMessage) => boolean,
): ChatMessage[] {
  let surplus = marksIn(messages, takesThem) - MAX_BREAKPOINTS
  return messages.map((message) => {
    if (!Array.isArray(message.content) || !message.content.some(isMarked) || takesThem?.(message) === false)
      return message
    const content = message.content.map((part) => {
      if (!isMarked(part)) return part
      const { cache_control: _mark, ...rest } = part as typeof part & { cache_control: unknown }
      // A breakpoint of the caller is kept.
      if ('prompt_cache_breakpoint' in rest || surplus-- > 0) return rest
      return { ...rest, prompt_cache_breakpoint: { mode: 'explicit' } }
    })
    return { ...message, content } as ChatMessage
  })
}

/** Tools come before the first message, where no breakpoint is possible. */
const plainTools: FieldMapping<ChatRequest> = {
  needed: (value) => Array.isArray(value) && value.some(isMarked),
  apply: (body, value) => {
    body['tools'] = (value as object[]).map((tool) => {
      const { cache_control: _mark, ...rest } = tool as { cache_control?: unknown }
      return rest
    })
  },
  losses: () => ['tools.cache_control'],
}

function marksIn(messages: unknown, takesThem?: (message: ChatMessage) => boolean): number {
  let marks = 0
  for (const message of messages as readonly ChatMessage[])
    if (Array.isArray(message.content) && takesThem?.(message) !== false)
      for (const part of message.content) if (isMarked(part)) marks += 1
  return marks
}

function isMarked(part: object): boolean {
  return isJsonObject((part as { readonly cache_control?: unknown }).cache_control)
}

const API_PATH = '/v1'

/** Options of {@link openai}. */
export interface OpenAIOptions extends VendorOptions, VendorObjectOptions, SafetyIdentifierOptions {
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
}

const OPENAI_OPTIONS = memberNames<Omit<OpenAIOptions, keyof VendorOptions>>()(
  'baseURL tokenLimitFields defaultTokenLimitField responses allowVendorObjects safetyIdentifierKey',
)

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
  const common = commonParts('openai', options, OPENAI_OPTIONS, { id: 'openai', displayName: 'OpenAI' })
  const { apiKeys } = common
  const { origin, prefix } = vendorAddress(options.baseURL ?? 'https://api.openai.com', API_PATH)
  const errors = errorReader({}, apiKeys)
  const fieldOf = (upstream: string): TokenLimitField =>
    tokenLimitField(upstream, options.tokenLimitFields, options.defaultTokenLimitField ?? DEFAULT_TOKEN_LIMIT_FIELD)
  const chat = openaiChat({
    path: `${prefix}${API_PATH}/chat/completions`,
    rulesFor: (upstream) => (takesBreakpoints(upstream) ? BREAKPOINT_RULES : OPENAI_RULES)[fieldOf(upstream)],
    hasHiddenReasoning,
    abilities: ({ upstream, efforts }) => openaiAbilities(upstream, efforts),
    moderates: true,
    takesCacheControl: takesBreakpoints,
    streamFailure: errors.fromStream,
  })
  const responses: OpenAIResponsesDialect = {
    path: `${prefix}${API_PATH}/responses`,
    rules: ROUTING_RULES,
    hasHiddenReasoning: effortUnseen,
    moderates: true,
    chatRulesFor: (upstream) => (takesBreakpoints(upstream) ? RESPONSES_BREAKPOINTS : {}),
    streamFailure: errors.fromStream,
  }
  return {
    ...common,
    origin,
    configuredBy: 'OPENAI_API_KEY or openai({ apiKey })',
    models: [...OPENAI_SPEECH_MODELS, ...OPENAI_TRANSCRIPTION_MODELS, ...OPENAI_MODERATION_MODELS],
    hasBuiltInModels: true,
    claims: CLAIMS,
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
