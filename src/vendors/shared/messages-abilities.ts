import { isJsonObject } from '../../core/json.ts'
import { CARRIED_MARK } from '../../endpoints/messages/messages-request.ts'

/** How much work the model puts into an answer, from least to most. */
export type MessagesEffort = 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** Abilities of a model that is called in terms of Messages. The vendor answers 400 to requests outside of them. */
export interface ModelAbilities {
  /** `either` allows temperature or top_p, not both. With `default_only`, any value other than the default is rejected. */
  readonly sampling: 'both' | 'either' | 'default_only'
  /** How to request thinking: with a token budget, adaptively with an effort, or not at all (`none`). */
  readonly thinking: 'budget' | 'adaptive' | 'none'
  /** How to turn thinking off: it is off by default, by one of two settings, or never. */
  readonly thinkingOff: 'unasked' | 'disabled' | 'between_tools' | 'impossible'
  /** Whether thinking returns as a signature without text unless a summary is requested. */
  readonly hidesThinking: boolean
  /** Accepted values of `output_config.effort`, from least to most. */
  readonly efforts: readonly MessagesEffort[]
  /** When `tool_choice` can force a call. */
  readonly forcedToolChoice: 'always' | 'without_thinking' | 'never'
  /** Whether a conversation may end with an assistant turn, which the model then continues. */
  readonly prefill: boolean
  /** Whether the model supports `output_config.format` and strict tools. */
  readonly structuredOutput: boolean
  /** Whether system messages are allowed between turns. */
  readonly systemInPlace: boolean
  /** Maximum output tokens of one answer, including reasoning; `Infinity` if unknown. */
  readonly maxOutputTokens: number
  /** Maximum input tokens of a call. */
  readonly contextTokens: number
  /**
   * Tokens of the largest image. Larger ones are scaled down first (Anthropic, "Vision": 2,576 pixels on the longer side from Opus
   * 4.7 on, 1,568 before).
   */
  readonly maxImageTokens: number
  /** Media types of files that the model reads. Default PDF. */
  readonly documentTypes?: ReadonlySet<string>
  /** Whether the vendor fetches PDF files by their addresses. Default false. */
  readonly fileUrls?: boolean
  /** Whether prefixes are cached where parts of a chat are marked. Default false. */
  readonly cachePoints?: boolean
  /** Shortest prompt that is cached, in tokens (Anthropic, "Prompt caching"). If unpublished, the shortest of all models. */
  readonly cachedFromTokens: number
}

const ALL_EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'] as const

// Rules of the 5.5 generation (Anthropic, release notes of September 2026).
const GENERATION_5_5: ModelAbilities = {
  sampling: 'default_only',
  thinking: 'adaptive',
  thinkingOff: 'impossible',
  hidesThinking: true,
  efforts: ALL_EFFORTS,
  forcedToolChoice: 'never',
  prefill: false,
  structuredOutput: true,
  systemInPlace: true,
  maxOutputTokens: 128_000,
  contextTokens: 1_000_000,
  maxImageTokens: 4_784,
  cachePoints: true,
  cachedFromTokens: 1_024,
}

// Anthropic, migration guide and "Model deprecations".
const GENERATION_5: ModelAbilities = { ...GENERATION_5_5, thinkingOff: 'disabled', forcedToolChoice: 'always' }

const GENERATION_4_6: ModelAbilities = {
  ...GENERATION_5,
  sampling: 'either',
  hidesThinking: false,
  maxImageTokens: 1_600,
  efforts: ['low', 'medium', 'high', 'max'],
  forcedToolChoice: 'without_thinking',
  systemInPlace: false,
}

const GENERATION_4_5: ModelAbilities = {
  ...GENERATION_4_6,
  thinking: 'budget',
  thinkingOff: 'unasked',
  efforts: [],
  prefill: true,
  maxOutputTokens: 64_000,
  contextTokens: 200_000,
}

// Retired at the vendor, but still served by some other hosts.
const GENERATION_4: ModelAbilities = { ...GENERATION_4_5, structuredOutput: false }

const FAMILY_ABILITIES: ReadonlyMap<string, ModelAbilities> = new Map([
  ['claude-opus-4', { ...GENERATION_4, maxOutputTokens: 32_000 }],
  ['claude-opus-4-1', { ...GENERATION_4, maxOutputTokens: 32_000 }],
  ['claude-sonnet-4', GENERATION_4],
  ['claude-haiku-4-5', { ...GENERATION_4_5, cachedFromTokens: 4_096 }],
  ['claude-sonnet-4-5', GENERATION_4_5],
  ['claude-opus-4-5', { ...GENERATION_4_5, cachedFromTokens: 4_096 }],
  ['claude-sonnet-4-6', GENERATION_4_6],
  ['claude-opus-4-6', { ...GENERATION_4_6, cachedFromTokens: 4_096 }],
  ['claude-opus-4-7', { ...GENERATION_5, systemInPlace: false }],
  ['claude-opus-4-8', GENERATION_5],
  ['claude-opus-5', GENERATION_5],
  ['claude-sonnet-5', { ...GENERATION_5, systemInPlace: false }],
  ['claude-fable-5', { ...GENERATION_5, thinkingOff: 'impossible', systemInPlace: false }],
  ['claude-mythos-5', { ...GENERATION_5, thinkingOff: 'impossible', systemInPlace: false }],
  ['claude-haiku-5-5', GENERATION_5],
  ['claude-sonnet-5-5', { ...GENERATION_5_5, thinkingOff: 'between_tools' }],
  ['claude-opus-5-5', GENERATION_5_5],
  ['claude-fable-5-1', GENERATION_5_5],
  ['claude-fable-5-2', GENERATION_5_5],
  ['claude-mythos-5-1', GENERATION_5_5],
  ['claude-mythos-5-2', GENERATION_5_5],
] satisfies [string, ModelAbilities][])

// A dated snapshot has the abilities of its family: claude-opus-4-5-20251101, or after an @ at a cloud.
const SNAPSHOT_SUFFIX = /[-@](?:\d{8}|latest|default)$/

// Other hosts add a prefix and suffix to the id: eu.anthropic.claude-opus-4-5-20251101-v1:0.
const HOST_PREFIX = /^.*\banthropic\./
const HOST_VERSION = /-v\d+(?::\d+)?$/

/** Returns the abilities of a model by the vendor's id or a host's, dated or not. Unknown ids get the newest generation's. */
export function modelAbilities(upstreamId: string): ModelAbilities {
  const own = upstreamId.replace(HOST_PREFIX, '').replace(HOST_VERSION, '')
  return FAMILY_ABILITIES.get(own.replace(SNAPSHOT_SUFFIX, '')) ?? GENERATION_5_5
}

/** How the model reasons before it answers. `budget_tokens` is at least 1024 and below `max_tokens`. */
export type ThinkingConfig =
  | { type: 'enabled'; budget_tokens: number }
  | { type: 'adaptive'; display?: 'summarized' }
  | { type: 'disabled' }
  | { type: 'between_tools' }

/** The reasoning settings of a request, in the vendor's terms. */
interface Reasoning {
  readonly thinking?: ThinkingConfig
  readonly effort?: MessagesEffort
  /** Whether this request turns thinking on, which rules out some other settings. */
  readonly thinks: boolean
}

/** Efforts from least to most. The nearest effort is found by distance in this list. */
const EFFORTS: readonly unknown[] = ['minimal', 'low', 'medium', 'high', 'xhigh', 'max']

// The vendor documents no such table. These are its minimum, then roughly doubled values.
const BUDGET_TOKENS = [1024, 2048, 8192, 16_384, 24_576, 32_000] as const
const MIN_BUDGET_TOKENS = 1024

/** Input of {@link reasoningToWire}. */
interface ReasoningInput {
  /** The caller's `reasoning_effort`. */
  readonly effort: unknown
  readonly abilities: ModelAbilities
  /** Limit of the whole answer, including reasoning. */
  readonly maxTokens: number
  /**
   * False if the conversation rules out a thinking budget: its open tool loop lacks the leading thinking block, or it ends with a
   * turn to continue. Adaptive thinking has no such rule.
   */
  readonly budgetAllowed: boolean
}

/**
 * Maps `reasoning_effort`: to an effort with adaptive thinking, or to a token budget on models with only that. The budget is at
 * most three quarters of `maxTokens`, because the caller's limit, which bounds the hold, includes reasoning. An effort that the
 * model lacks becomes the nearest one, the lower of two, and is reported.
 */
export function reasoningToWire(input: ReasoningInput, report: (field: string) => void): Reasoning {
  const { effort, abilities } = input
  if (effort === undefined || effort === null) return { thinks: false }
  if (effort === 'none') return withoutThinking(abilities, report)
  const rank = EFFORTS.indexOf(effort)
  if (rank === -1 || abilities.thinking === 'none') {
    report('reasoning_effort')
    return { thinks: false }
  }
  if (abilities.thinking === 'budget') return withBudget(rank, input, report)
  const nearest = nearestEffort(rank, abilities.efforts)
  if (nearest !== effort) report('reasoning_effort')
  const thinking: ThinkingConfig = abilities.hidesThinking
    ? { type: 'adaptive', display: 'summarized' }
    : { type: 'adaptive' }
  return { thinking, ...(nearest === undefined ? {} : { effort: nearest }), thinks: true }
}

/**
 * Whether the amount of thinking is hidden. Thinking is billed in full and shown at most as a summary (Anthropic, "Extended
 * thinking", summarised thinking).
 * @param asked `none` if thinking is turned off; undefined or null if the request does not set it.
 */
export function hasHiddenThinking(abilities: ModelAbilities, asked: string | null | undefined): boolean {
  if (asked === undefined || asked === null) return abilities.hidesThinking
  return asked !== 'none' || abilities.thinkingOff === 'impossible'
}

function withoutThinking(abilities: ModelAbilities, report: (field: string) => void): Reasoning {
  if (abilities.thinkingOff === 'unasked') return { thinks: false }
  if (abilities.thinkingOff !== 'impossible') return { thinking: { type: abilities.thinkingOff }, thinks: false }
  report('reasoning_effort')
  const least = abilities.efforts[0]
  return { ...(least === undefined ? {} : { effort: least }), thinks: false }
}

function withBudget(rank: number, input: ReasoningInput, report: (field: string) => void): Reasoning {
  const budgetTokens = Math.min(BUDGET_TOKENS[rank] ?? MIN_BUDGET_TOKENS, Math.floor(input.maxTokens * 0.75))
  if (!input.budgetAllowed || budgetTokens < MIN_BUDGET_TOKENS) {
    report('reasoning_effort')
    return { thinks: false }
  }
  return { thinking: { type: 'enabled', budget_tokens: budgetTokens }, thinks: true }
}

function nearestEffort(rank: number, efforts: readonly MessagesEffort[]): MessagesEffort | undefined {
  const distance = (effort: MessagesEffort): number => Math.abs(EFFORTS.indexOf(effort) - rank)
  // The sort keeps the ascending order of equally near efforts.
  return [...efforts].sort((first, second) => distance(first) - distance(second))[0]
}

/**
 * Whether a conversation contains reasoning signed by Anthropic, which only Anthropic can read (Messages API, "Extended thinking").
 * Accepts a chat request, with blocks next to the text, or a Messages call, with blocks in it.
 */
export function ownsReasoning(call: {
  readonly model: string
  readonly request?: unknown
  readonly messages?: unknown
}): boolean {
  const conversation = isJsonObject(call.request) ? call.request['messages'] : call.messages
  if (!Array.isArray(conversation)) return false
  return conversation.filter(isJsonObject).some((message) => {
    const blocks = [message['thinking_blocks'], message['content']]
    return blocks.some((list) => Array.isArray(list) && list.some(isSignedThinking))
  })
}

function isSignedThinking(block: unknown): boolean {
  if (!isJsonObject(block)) return false
  const { type, signature } = block
  if (type === 'redacted_thinking') return true
  // Such blocks also carry state of other vendors, with the gateway's own mark.
  return type === 'thinking' && typeof signature === 'string' && signature !== '' && !signature.startsWith(CARRIED_MARK)
}
