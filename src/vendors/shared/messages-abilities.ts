/** How much work the model puts into an answer, from least to most. */
export type MessagesEffort = 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** What a model accepts that is asked in the terms of Messages. Requests outside of it are answered 400 by the vendor. */
export interface ModelAbilities {
  /** `either`: temperature or top_p, not both. `default_only`: any other value than the default is refused. */
  readonly sampling: 'both' | 'either' | 'default_only'
  /** How thinking is requested: with a token budget, or adaptively with an effort. `none`: it cannot be. */
  readonly thinking: 'budget' | 'adaptive' | 'none'
  /** How thinking is turned off: it is off by default, by one of two settings, or it cannot be turned off. */
  readonly thinkingOff: 'unasked' | 'disabled' | 'between_tools' | 'impossible'
  /** Thinking comes back as a signature without text unless a summary is requested. */
  readonly hidesThinking: boolean
  /** Accepted values of `output_config.effort`, from least to most. */
  readonly efforts: readonly MessagesEffort[]
  /** May `tool_choice` force a call? */
  readonly forcedToolChoice: 'always' | 'without_thinking' | 'never'
  /** May a conversation end with an assistant turn, which the model then continues? */
  readonly prefill: boolean
  /** Does the model take `output_config.format` and strict tools? */
  readonly structuredOutput: boolean
  /** Are system messages allowed between turns? */
  readonly systemInPlace: boolean
  /** Most output tokens of one answer, reasoning included; `Infinity`: not known. */
  readonly maxOutputTokens: number
  /** Most input tokens of a call. */
  readonly contextTokens: number
  /**
   * Tokens of its largest picture; a larger one is made smaller first (Anthropic, "Vision": 2,576 pixels at the longer side from Opus
   * 4.7 on, 1,568 before).
   */
  readonly maxImageTokens: number
  /** Media types of files that it reads; absent: PDF. */
  readonly documentTypes?: ReadonlySet<string>
  /** Does the vendor fetch PDF by their addresses? Absent: no. */
  readonly fileUrls?: boolean
  /** Are prefixes cached where marks at a chat's parts say so? Absent: no. */
  readonly cachePoints?: boolean
  /** Shortest prompt that is cached, in tokens (Anthropic, "Prompt caching"); the shortest of all models where none is published. */
  readonly cachedFromTokens: number
}

const ALL_EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'] as const

// Anthropic, release notes of September 2026: the rules of the 5.5 generation.
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

// Retired at the vendor, still served by some hosts of its models.
const GENERATION_4: ModelAbilities = { ...GENERATION_4_5, structuredOutput: false }

const BY_FAMILY: ReadonlyMap<string, ModelAbilities> = new Map([
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

// A dated snapshot has the abilities of its family: claude-opus-4-5-20251101, or behind an @ at a cloud.
const SNAPSHOT_SUFFIX = /[-@](?:\d{8}|latest|default)$/

// Hosts of its models put themselves around the id: eu.anthropic.claude-opus-4-5-20251101-v1:0.
const HOST_PREFIX = /^.*\banthropic\./
const HOST_VERSION = /-v\d+(?::\d+)?$/

/** The abilities of a model by the vendor's id or a host's, dated or not; the newest generation's for an id the table lacks. */
export function modelAbilities(upstreamId: string): ModelAbilities {
  const own = upstreamId.replace(HOST_PREFIX, '').replace(HOST_VERSION, '')
  return BY_FAMILY.get(own.replace(SNAPSHOT_SUFFIX, '')) ?? GENERATION_5_5
}
