import type { AssistantBlock, UserBlock } from './messages-blocks.ts'

/** One entry of `messages`. `system` entries are taken by some models only, and never first. */
export type MessagesTurn =
  | { role: 'user'; content: UserBlock[] }
  | { role: 'assistant'; content: AssistantBlock[] }
  | { role: 'system'; content: string }

/** A tool that the caller runs. */
export interface MessagesTool {
  name: string
  description?: string
  /** A JSON Schema whose `type` is `object`. */
  input_schema: Record<string, unknown>
  /** Arguments are guaranteed to follow the schema. */
  strict?: true
}

/** Which tools the model may or must call. */
export type MessagesToolChoice =
  | { type: 'auto' | 'any'; disable_parallel_tool_use?: true }
  | { type: 'tool'; name: string; disable_parallel_tool_use?: true }
  | { type: 'none' }

/** How the model reasons before it answers. `budget_tokens` is at least 1024 and below `max_tokens`. */
export type ThinkingConfig =
  | { type: 'enabled'; budget_tokens: number }
  | { type: 'adaptive'; display?: 'summarized' }
  | { type: 'disabled' }
  | { type: 'between_tools' }

/** How much work the model puts into an answer, from least to most. */
export type MessagesEffort = 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** The body of `POST /v1/messages` (Anthropic, Messages reference), as far as chat fills it. */
export interface MessagesRequest {
  model: string
  max_tokens: number
  system?: string
  messages: MessagesTurn[]
  /** 0 to 1. */
  temperature?: number
  /** 0 to 1. */
  top_p?: number
  stop_sequences?: string[]
  tools?: MessagesTool[]
  tool_choice?: MessagesToolChoice
  thinking?: ThinkingConfig
  output_config?: { effort?: MessagesEffort; format?: { type: 'json_schema'; schema: Record<string, unknown> } }
  metadata?: { user_id: string }
  stream?: true
}
