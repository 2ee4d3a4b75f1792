import type { ChatToolCall, ExtraContent, ThinkingBlock } from './chat-request.ts'

/** Why a model stopped; the five values of OpenAI's API, and no other ever leaves the gateway. */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call'

/** The message of an answer. */
export interface ChatAnswerMessage {
  role: 'assistant'
  content: string | null
  refusal: string | null
  tool_calls?: ChatToolCall[]
  /** The model's reasoning as text, where the vendor shows it. */
  reasoning_content?: string
  /** Reasoning to send back unchanged on the next turn. */
  thinking_blocks?: ThinkingBlock[]
  extra_content?: ExtraContent
}

/** Usage as chat callers read it. */
export interface ChatUsage {
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
  prompt_tokens_details?: { cached_tokens?: number; cache_write_tokens?: number }
  completion_tokens_details?: { reasoning_tokens?: number }
  /** What the call costs, in decimal dollars; only in the last chunk of a stream, and only with billing on. */
  cost?: string
}

/** A whole answer of a chat: what a translating vendor gives, and what callers read. `model` is the public id. */
export interface ChatCompletion {
  id: string
  object: 'chat.completion'
  /** Unix seconds. */
  created: number
  model: string
  choices: { index: number; message: ChatAnswerMessage; logprobs: unknown; finish_reason: FinishReason }[]
  usage?: ChatUsage
}
