import type { MemberNames } from '../../core/known-members.ts'
import type { RerankLimits } from '../vendor.ts'
import type { ErrorWords } from './openai-error.ts'

/** What of OpenAI's API a server offers. */
export type PresetEndpoint =
  | 'chat'
  | 'responses'
  | 'embeddings'
  | 'rerank'
  | 'images'
  | 'image-edits'
  | 'transcriptions'
  | 'moderations'
  | 'completions'

/**
 * Rule of a request field. Fields without a rule pass, except `session_id`, which is dropped.
 * `pass`: sent unchanged.
 * `drop`: left out, and named in `x-signalbox-dropped` unless the value changes nothing.
 * `refuse`: 400 `unsupported_parameter`, because the answer would differ; values that ask for nothing (null, false, an empty
 * list or object, a default) are left out instead.
 * `rename`: sent under another name; of two numbers for one name the smaller counts.
 * `values`: other values for some; `atMost`: refused above this number.
 * `thinkingBudget`: for bounds of the output, at servers whose `max_tokens` limits the answer without its thinking. The bound is split
 * into `max_tokens` and `thinking_budget`, which the server accepts from `min` to `max`. A bound too low for both turns thinking off.
 */
export type PresetRule =
  | 'pass'
  | 'drop'
  | 'refuse'
  | { readonly rename: string }
  | { readonly values: Readonly<Record<string, string>> }
  | { readonly atMost: number }
  | { readonly thinkingBudget: { readonly min: number; readonly max: number } }

/** Which reasoning of earlier turns is sent back, and under which name. */
export interface PresetReasoning {
  /** The assistant's turns that carry it. `never` removes it from all. */
  readonly back: 'never' | 'tool-calls' | 'always'
  readonly as?: 'reasoning' | 'reasoning_content'
  /** True for servers that refuse such a turn without the member: it is sent empty where the history has none. */
  readonly evenEmpty?: boolean
}

export const PRESET_REASONING_MEMBERS = {
  back: true,
  as: true,
  evenEmpty: true,
} satisfies MemberNames<PresetReasoning>

/** How the choice of a tool is written. */
export interface PresetToolChoice {
  /** The server's word for `required`. */
  readonly required?: string
  /**
   * True for servers that cannot be told to call one function: the list of tools is cut to that function, and the choice is
   * `required`.
   */
  readonly cutsNamed?: boolean
  /** True for servers that ignore the field: lists are cut as above, and the choice is left out and reported. */
  readonly isIgnored?: boolean
}

export const PRESET_TOOL_CHOICE_MEMBERS = {
  required: true,
  cutsNamed: true,
  isIgnored: true,
} satisfies MemberNames<PresetToolChoice>

/** The parts of a preset that can differ by model. */
export interface PresetDialect {
  /** Rules by request field. */
  readonly fields?: Readonly<Record<string, PresetRule>>
  /** Reasoning of earlier turns; `never` by default. */
  readonly reasoning?: PresetReasoning
  readonly toolChoice?: PresetToolChoice
  /** Members of a message that the server takes, for servers that refuse others; these are dropped and reported. */
  readonly messageMembers?: readonly string[]
  /** Length of ids of tool calls, letters and digits only. Other ids are replaced by a hash, the same one each time. */
  readonly toolIdLength?: number
  /** Does the server know the role `developer`? By default it is sent as `system`. */
  readonly takesDeveloperRole?: boolean
  /** The member that makes the last turn, when it is the assistant's, the beginning of the answer. */
  readonly prefillMember?: string
  /** True for servers that refuse a user's turn behind results of tools: an assistant's turn, `OK.`, is put between. */
  readonly answersTools?: boolean
  /** True for servers that refuse schemas with `type` beside `anyOf`: it is moved into the branches, and `$schema` is left out. */
  readonly typedBranches?: boolean
}

export const PRESET_DIALECT_MEMBERS = {
  fields: true,
  reasoning: true,
  toolChoice: true,
  messageMembers: true,
  toolIdLength: true,
  takesDeveloperRole: true,
  prefillMember: true,
  answersTools: true,
  typedBranches: true,
} satisfies MemberNames<PresetDialect>

/** How a server deviates in Responses; servers that have none get chat completions instead. */
export interface PresetResponses {
  /**
   * True for servers that keep answers, so that a follow-up names the one before. Elsewhere the gateway keeps them, and sends
   * the whole history.
   */
  readonly keepsAnswers?: boolean
  /** Rules by request field. The preset's others are those of chat. */
  readonly fields?: Readonly<Record<string, PresetRule>>
}

export const PRESET_RESPONSES_MEMBERS = {
  keepsAnswers: true,
  fields: true,
} satisfies MemberNames<PresetResponses>

/** A server of OpenAI's dialect, as data: where it is, what it offers and where it deviates. */
export interface Preset extends PresetDialect {
  /** Default id of the vendor: lower-case letters, digits and dashes. */
  readonly id: string
  /** Name for people. */
  readonly name: string
  /** With the version, without a trailing slash; `{account}` stands for the option `account`. */
  readonly baseURL: string
  /** Environment variables that usually hold its key, the first one preferred. */
  readonly keyVariables: readonly string[]
  /** False for servers that answer without a key. */
  readonly needsKey: boolean
  readonly serves: readonly PresetEndpoint[]
  /** Patterns of the ids of its own models, as `Vendor.claims`. */
  readonly claims?: readonly string[]
  /**
   * Deviations of some models, by a pattern of the vendor's own id. The members of the first that fits replace the preset's;
   * its `fields` add to them.
   */
  readonly byModel?: readonly (readonly [pattern: RegExp, dialect: PresetDialect])[]
  /** False for servers that take pictures as bytes only: the gateway fetches those that are given by URL. */
  readonly takesImageUrls?: boolean
  /** False for servers that report usage in every stream and may refuse `stream_options`. */
  readonly asksForUsage?: boolean
  /** True for servers that write reasoning as `<think>…</think>` at the beginning of the content. */
  readonly thinksInTags?: boolean
  /** True for servers whose `created` has a fraction, which clients with integers refuse. */
  readonly hasFractionalTimes?: boolean
  readonly errors?: ErrorWords
  readonly responses?: PresetResponses
  readonly embeddings?: {
    /** Most texts of one call; 2048 by default. */
    readonly maxInputs?: number
    /** Does it take lists of tokens? Yes by default. */
    readonly takesTokens?: boolean
    /** Does it encode base64? Yes by default. */
    readonly givesBase64?: boolean
    /** Below the base URL; `/embeddings` by default. */
    readonly path?: string
    /** Rules by request field. The preset's others are those of chat. */
    readonly fields?: Readonly<Record<string, PresetRule>>
    /** True for servers whose vectors are base64 of signed bytes, whatever is asked for. */
    readonly givesSignedBytes?: boolean
  }
  readonly moderations?: {
    /** False for servers that judge texts only: lists of parts, which may hold pictures, are refused. */
    readonly takesParts?: boolean
  }
  readonly completions?: {
    /** Below the base URL; `/completions` by default. */
    readonly path?: string
    /** Pattern of the vendor's own ids of the models that complete texts. If omitted, all chat models do. */
    readonly models?: RegExp
    /** Longest completion, in tokens. */
    readonly maxTokens?: number
    /** False for servers that accept one text only. */
    readonly takesLists?: boolean
    /** True for servers whose answers have the shape of chat completions. */
    readonly answersAsChat?: boolean
    /** Rules by request field. The preset's others are those of chat. */
    readonly fields?: Readonly<Record<string, PresetRule>>
  }
  readonly rerank?: RerankLimits
}

export const PRESET_MEMBERS = {
  id: true,
  name: true,
  baseURL: true,
  keyVariables: true,
  needsKey: true,
  serves: true,
  claims: true,
  byModel: true,
  takesImageUrls: true,
  asksForUsage: true,
  thinksInTags: true,
  hasFractionalTimes: true,
  errors: true,
  responses: true,
  embeddings: true,
  moderations: true,
  completions: true,
  rerank: true,
  fields: true,
  reasoning: true,
  toolChoice: true,
  messageMembers: true,
  toolIdLength: true,
  takesDeveloperRole: true,
  prefillMember: true,
  answersTools: true,
  typedBranches: true,
} satisfies MemberNames<Preset>
