/**
 * The body of `POST /v1/messages` (Anthropic, Messages reference), as far as the gateway reads it. Everything else stays in it
 * and passes to vendors that speak the dialect.
 */

/** A block of content, told apart by its type: `text`, `image`, `tool_use`, … */
export interface ContentBlock {
  type: string
  [field: string]: unknown
}

/** One turn, or an instruction between two turns (role `system`). */
export interface MessageParam {
  role: string
  content: string | ContentBlock[]
  [field: string]: unknown
}

/** A request for a message, or for the count of its tokens. */
export interface MessagesRequest {
  model: string
  /** At least one. */
  messages: MessageParam[]
  /** Upper bound of generated tokens, reasoning included; absent where tokens are only counted. */
  max_tokens?: number
  system?: string | ContentBlock[] | null
  stream?: boolean | null
  temperature?: number | null
  top_p?: number | null
  stop_sequences?: string[] | null
  tools?: Record<string, unknown>[] | null
  tool_choice?: { type: string; [field: string]: unknown } | null
  thinking?: { type: string; [field: string]: unknown } | null
  output_config?: Record<string, unknown> | null
  metadata?: Record<string, unknown> | null
  [field: string]: unknown
}
