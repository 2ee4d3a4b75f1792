/**
 * The chat request: OpenAI's chat completions body (API specification "Chat completion request", extended by the fields
 * current SDKs send). It is also the neutral form that vendor translators read.
 */

/** A part of a message's content. Unknown types are passed to vendors of the same dialect. */
export type ChatContentPart =
  | { type: 'text'; text: string }
  | { type: 'image_url'; image_url: { url: string; detail?: 'auto' | 'low' | 'high' | 'original' } }
  | { type: 'input_audio'; input_audio: { data: string; format: string } }
  | { type: 'file'; file: { file_data?: string; file_id?: string; file_url?: string; filename?: string } }
  | { type: 'refusal'; refusal: string }

/** Reasoning that a vendor requires back unchanged on the next turn (Anthropic thinking blocks). */
export type ThinkingBlock =
  | { type: 'thinking'; thinking: string; signature: string }
  | { type: 'redacted_thinking'; data: string }

/** Vendor state on a message or tool call, in the layout of Google's own OpenAI-compatible API. */
export interface ExtraContent {
  google?: { thought_signature?: string }
  /** Encrypted reasoning, and a mark of the key and model that can read it. */
  responses?: { origin?: string; reasoning?: EncryptedReasoning[] }
  /** State of a server of the dialect: id of its vendor, and the members of the message and of the call that contain it. */
  server?: { vendor?: string; message?: Record<string, unknown>; call?: Record<string, unknown> }
}

/** A reasoning item of the Responses API. Its content is bound to its id. */
export interface EncryptedReasoning {
  id: string
  encrypted_content: string
}

/** A function call by the model. `arguments` is JSON text, which models may get wrong. */
export interface ChatToolCall {
  id: string
  type: 'function'
  function: { name: string; arguments: string }
  extra_content?: ExtraContent
}

/** One message of a chat. */
export interface ChatMessage {
  role: 'system' | 'developer' | 'user' | 'assistant' | 'tool'
  content?: string | ChatContentPart[] | null
  name?: string
  tool_calls?: ChatToolCall[]
  tool_call_id?: string
  refusal?: string | null
  reasoning_content?: string | null
  thinking_blocks?: ThinkingBlock[]
  extra_content?: ExtraContent
}

/** A function the model may call; `parameters` is a JSON Schema. */
export interface ChatTool {
  type: 'function'
  function: { name: string; description?: string; parameters?: Record<string, unknown>; strict?: boolean | null }
}

/**
 * Tools that the model may or must call. Default `auto` if there are tools. `validated` is `auto` with arguments that
 * follow the schemas, at vendors that support it.
 */
export type ChatToolChoice =
  | 'none'
  | 'auto'
  | 'validated'
  | 'required'
  | { type: 'function'; function: { name: string } }
  | { type: 'allowed_tools'; allowed_tools: { mode: 'auto' | 'required'; tools: Record<string, unknown>[] } }

/** Form of the answer: text, any JSON object, or JSON that follows a schema. */
export type ChatResponseFormat =
  | { type: 'text' }
  | { type: 'json_object' }
  | {
      type: 'json_schema'
      json_schema: { name: string; description?: string; schema?: Record<string, unknown>; strict?: boolean | null }
    }

/** How much a model reasons; translated for vendors that count tokens instead. */
export type ReasoningEffort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** A chat completion request. Absent fields stay absent on the way to the vendor; the gateway fills in no defaults. */
export interface ChatRequest {
  model: string
  /** At least one message. */
  messages: ChatMessage[]
  /** Sampling temperature, from 0 to 2. */
  temperature?: number | null
  /** Probability mass of nucleus sampling, from 0 to 1. */
  top_p?: number | null
  /** Maximum number of generated tokens, at least 1. */
  max_tokens?: number | null
  /** Like `max_tokens`, but includes reasoning. Takes precedence over `max_tokens`. */
  max_completion_tokens?: number | null
  /** Number of answers, from 1 to 128. */
  n?: number | null
  stream?: boolean | null
  stream_options?: { include_usage?: boolean; include_obfuscation?: boolean } | null
  /** At most 4 sequences. */
  stop?: string | string[] | null
  /** Presence penalty, from -2 to 2. */
  presence_penalty?: number | null
  /** Frequency penalty, from -2 to 2. */
  frequency_penalty?: number | null
  logit_bias?: Record<string, number> | null
  logprobs?: boolean | null
  /** Number of log probabilities per token, from 0 to 20. */
  top_logprobs?: number | null
  seed?: number | null
  tools?: ChatTool[] | null
  tool_choice?: ChatToolChoice | null
  parallel_tool_calls?: boolean | null
  response_format?: ChatResponseFormat | null
  reasoning_effort?: ReasoningEffort | null
  user?: string | null
  [field: string]: unknown
}
