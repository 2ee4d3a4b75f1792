/** Image as base64 data, as a URL, or as a file at the vendor (Anthropic API, "Vision"). */
export type MessageImageSource =
  | {
      readonly type: 'base64'
      readonly media_type: 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp'
      readonly data: string
    }
  | { readonly type: 'url'; readonly url: string }
  | { readonly type: 'file'; readonly file_id: string }

/** Block of a message in a request (Anthropic API, "Messages"). */
export type MessageParamBlock =
  | MessageTextParam
  | (Cacheable & { readonly type: 'image'; readonly source: MessageImageSource })
  | (Cacheable & {
      readonly type: 'document'
      readonly source: Readonly<Record<string, unknown>>
      readonly title?: string | null
    })
  | (Cacheable & { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: unknown })
  | (Cacheable & {
      readonly type: 'tool_result'
      readonly tool_use_id: string
      readonly content?: string | readonly MessageParamBlock[]
      readonly is_error?: boolean
    })
  | MessageThinking

type Cacheable = Pick<CacheMarks, 'cache_control'>
type MessageTextParam = Cacheable & { readonly type: 'text'; readonly text: string }
type MessageThinking =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string }

/** One turn of a conversation. */
export interface MessageParam {
  readonly role: 'user' | 'assistant' | 'system'
  readonly content: string | readonly MessageParamBlock[]
}

/** Tool of the caller that the model may use; `input_schema` is a JSON Schema. */
export interface MessageTool extends Cacheable {
  readonly type?: 'custom'
  readonly name: string
  readonly description?: string
  readonly input_schema: { readonly type: 'object'; readonly [keyword: string]: unknown }
}

/** Types of tools that the vendor runs or has defined: a name with a date, such as `web_search_20250305`. */
export type ServerToolType = `${string}_20${number}` | 'mcp_toolset'

/** A tool that the vendor runs or has defined. */
export interface ServerTool {
  readonly type: ServerToolType
  readonly [field: string]: unknown
}

/** Everything that the model reads, and that is counted (Anthropic API, "Count tokens"). */
export interface MessagePrompt {
  readonly messages: readonly MessageParam[]
  readonly system?: string | readonly MessageTextParam[]
  readonly tools?: readonly (MessageTool | ServerTool)[]
  readonly tool_choice?:
    | { readonly type: 'auto' | 'any'; readonly disable_parallel_tool_use?: boolean }
    | { readonly type: 'tool'; readonly name: string; readonly disable_parallel_tool_use?: boolean }
    | { readonly type: 'none' }
  readonly thinking?:
    | { readonly type: 'enabled'; readonly budget_tokens: number }
    | { readonly type: 'adaptive' }
    | { readonly type: 'disabled' }
  readonly output_config?: {
    readonly effort?: 'low' | 'medium' | 'high' | 'xhigh' | 'max'
    readonly format?: { readonly type: 'json_schema'; readonly schema: Readonly<Record<string, unknown>> }
  }
}

/** A request for a message (Anthropic API, "Messages"). */
export interface MessageRequest extends MessagePrompt {
  /** Maximum number of generated tokens, reasoning included. */
  readonly max_tokens: number
  /** Sampling temperature, from 0 to 1. */
  readonly temperature?: number
  readonly top_p?: number
  readonly top_k?: number
  readonly stop_sequences?: readonly string[]
  readonly metadata?: { readonly user_id?: string | null }
  readonly service_tier?: 'auto' | 'standard_only'
}

/** A block of an answer. */
export type MessageBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: unknown }
  | MessageThinking

/** Why a model stopped. */
export type StopReason =
  | 'end_turn'
  | 'max_tokens'
  | 'stop_sequence'
  | 'tool_use'
  | 'pause_turn'
  | 'refusal'
  | 'model_context_window_exceeded'

/** Tokens of a message. `input_tokens` excludes tokens read from or written to the vendor's cache. */
export interface MessageUsage {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cache_creation_input_tokens?: number | null
  readonly cache_read_input_tokens?: number | null
}

/** An answer (Anthropic API, "Messages"). */
export interface Message {
  readonly id: string
  readonly type: 'message'
  readonly role: 'assistant'
  readonly model: string
  readonly content: readonly MessageBlock[]
  readonly stop_reason: StopReason | null
  readonly stop_sequence: string | null
  readonly usage: MessageUsage
}

/** A chunk of a block (Anthropic API, "Streaming messages"). */
export type MessageDelta =
  | { readonly type: 'text_delta'; readonly text: string }
  | { readonly type: 'input_json_delta'; readonly partial_json: string }
  | { readonly type: 'thinking_delta'; readonly thinking: string }
  | { readonly type: 'signature_delta'; readonly signature: string }

/** An event of a streamed message. Vendors may send other types and deltas; ignore unknown ones. */
export type MessageEvent =
  | { readonly type: 'message_start'; readonly message: Message }
  | { readonly type: 'content_block_start'; readonly index: number; readonly content_block: MessageBlock }
  | { readonly type: 'content_block_delta'; readonly index: number; readonly delta: MessageDelta }
  | { readonly type: 'content_block_stop'; readonly index: number }
  | {
      readonly type: 'message_delta'
      readonly delta: { readonly stop_reason: StopReason | null; readonly stop_sequence: string | null }
      /** Totals so far, not increments. */
      readonly usage: Partial<MessageUsage>
    }
  | { readonly type: 'message_stop' }
  | { readonly type: 'ping' }

/** Marks the end of a prefix that the vendor caches (Anthropic API, "Prompt caching"). */
export interface CacheControl {
  readonly type: 'ephemeral'
  readonly ttl?: '5m' | '1h'
}

/** Marks the end of a cached prefix in OpenAI's dialect. */
export interface CacheBreakpoint {
  readonly mode: 'explicit'
  readonly ttl?: string
}

/** Cache mark of either dialect, at a part of a chat message or at a tool. The gateway translates it for the vendor. */
export interface CacheMarks {
  readonly cache_control?: CacheControl
  readonly prompt_cache_breakpoint?: CacheBreakpoint
}
