// See docs/decisions/0020-presets.md.

import { memberNames } from '../../core/known-members.ts'
import type { RerankLimits } from '../vendor.ts'
import type { ErrorWords } from './openai-error.ts'

/** Part of OpenAI's API that a server offers. */
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

/** Which reasoning of earlier turns is sent, and under which name. */
export interface PresetReasoning {
  /** Assistant turns that carry it. `never` removes it from all. */
  readonly back: 'never' | 'tool-calls' | 'always'
  readonly as?: 'reasoning' | 'reasoning_content'
  /** Whether the server rejects such turns without the member. It is then sent empty if the history has none. */
  readonly evenEmpty?: boolean
}

export const PRESET_REASONING_MEMBERS = memberNames<PresetReasoning>()('back as evenEmpty')

/** How to write the choice of a tool. */
export interface PresetToolChoice {
  /** The server's word for `required`. */
  readonly required?: string
  /** Whether the server cannot force one function. The list of tools is then cut to that function, and the choice is `required`. */
  readonly cutsNamed?: boolean
  /** Whether the server ignores the field. Lists are then cut as above, and the choice is dropped and reported. */
  readonly isIgnored?: boolean
}

export const PRESET_TOOL_CHOICE_MEMBERS = memberNames<PresetToolChoice>()('required cutsNamed isIgnored')

/** Parts of a preset that can differ by model. */
export interface PresetDialect {
  /** Rules by request field. */
  readonly fields?: Readonly<Record<string, PresetRule>>
  /** Reasoning of earlier turns. Default `never`. */
  readonly reasoning?: PresetReasoning
  readonly toolChoice?: PresetToolChoice
  /** Members of a message that the server accepts, if it rejects others. These are dropped and reported. */
  readonly messageMembers?: readonly string[]
  /** Length of tool call ids, of letters and digits. Other ids are replaced by a stable hash. */
  readonly toolIdLength?: number
  /** Whether the server knows the role `developer`. By default, it is sent as `system`. */
  readonly takesDeveloperRole?: boolean
  /** Member that makes the model continue the last turn, if it is the assistant's. */
  readonly prefillMember?: string
  /** Whether the server rejects a user turn after tool results. An assistant turn, `OK.`, is then inserted. */
  readonly answersTools?: boolean
  /** Whether the server rejects `type` next to `anyOf`. It then moves into the branches, and `$schema` is dropped. */
  readonly typedBranches?: boolean
}

export const PRESET_DIALECT_MEMBERS = memberNames<PresetDialect>()(
  'fields reasoning toolChoice messageMembers toolIdLength takesDeveloperRole prefillMember answersTools',
  'typedBranches',
)

/** Deviations of a server in Responses. Servers without Responses get chat completions instead. */
export interface PresetResponses {
  /**
   * Whether the server stores answers, so that a follow-up names the previous one. If not, the gateway stores them and sends the
   * whole history.
   */
  readonly keepsAnswers?: boolean
  /** Rules by request field. The preset's other rules are those of chat. */
  readonly fields?: Readonly<Record<string, PresetRule>>
}

export const PRESET_RESPONSES_MEMBERS = memberNames<PresetResponses>()('keepsAnswers fields')

/** A server of OpenAI's dialect as data: its address, its endpoints and its deviations. */
export interface Preset extends PresetDialect {
  /** Default id of the vendor: lower-case letters, digits and dashes. */
  readonly id: string
  /** Display name. */
  readonly name: string
  /** Base URL with the version, without a trailing slash. `{account}` is replaced by the option `account`. */
  readonly baseURL: string
  /** Environment variables that usually hold its key. The first one is preferred. */
  readonly keyVariables: readonly string[]
  /** False for servers that answer without a key. */
  readonly needsKey: boolean
  readonly serves: readonly PresetEndpoint[]
  /** Patterns of the ids of its own models; see `Vendor.claims`. */
  readonly claims?: readonly string[]
  /**
   * Deviations of some models, by a pattern of the vendor's own id. The members of the first match replace the preset's; its
   * `fields` add to them.
   */
  readonly byModel?: readonly (readonly [pattern: RegExp, dialect: PresetDialect])[]
  /** False for servers that accept images only as bytes: the gateway fetches those given by URL. */
  readonly takesImageUrls?: boolean
  /** False for servers that report usage in every stream and may reject `stream_options`. */
  readonly asksForUsage?: boolean
  /** Whether the server writes reasoning as `<think>…</think>` at the start of the content. */
  readonly thinksInTags?: boolean
  /** Whether `created` has a fraction, which clients with integers reject. */
  readonly hasFractionalTimes?: boolean
  readonly errors?: ErrorWords
  readonly responses?: PresetResponses
  readonly embeddings?: {
    /** Maximum texts per call. Default 2,048. */
    readonly maxInputs?: number
    /** Whether the server accepts lists of tokens. Default true. */
    readonly takesTokens?: boolean
    /** Whether the server encodes base64. Default true. */
    readonly givesBase64?: boolean
    /** Path below the base URL. Default `/embeddings`. */
    readonly path?: string
    /** Rules by request field. The preset's other rules are those of chat. */
    readonly fields?: Readonly<Record<string, PresetRule>>
    /** Whether vectors are always base64 of signed bytes. */
    readonly givesSignedBytes?: boolean
  }
  readonly moderations?: {
    /** False for servers that judge only texts: lists of parts, which may contain images, are rejected. */
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

export const PRESET_MEMBERS = memberNames<Preset>()(
  'id name baseURL keyVariables needsKey serves claims byModel takesImageUrls asksForUsage thinksInTags',
  'hasFractionalTimes errors responses embeddings moderations completions rerank fields reasoning toolChoice',
  'messageMembers toolIdLength takesDeveloperRole prefillMember answersTools typedBranches',
)
