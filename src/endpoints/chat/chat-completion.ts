import type { Usage } from '../../core/usage.ts'
import type { ChatToolCall, ExtraContent, ThinkingBlock } from './chat-request.ts'

/** Why a model stopped: one of the five values of OpenAI's API. The gateway sends no other value. */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call'

export interface ChatAnswerMessage {
  role: 'assistant'
  content: string | null
  refusal: string | null
  tool_calls?: ChatToolCall[]
  /** The model's reasoning as text, if the vendor shows it. */
  reasoning_content?: string
  /** Reasoning to send back unchanged on the next turn. */
  thinking_blocks?: ThinkingBlock[]
  extra_content?: ExtraContent
  annotations?: ChatAnnotation[]
}

/** A source of the answer. The indexes count characters of `content` and mark the cited range. */
export interface ChatAnnotation {
  type: 'url_citation'
  url_citation: { start_index: number; end_index: number; url: string; title: string }
}

/** Usage as chat callers read it. */
export interface ChatUsage {
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
  prompt_tokens_details?: { cached_tokens?: number; cache_write_tokens?: number }
  completion_tokens_details?: { reasoning_tokens?: number }
  /** Cost of the call in decimal dollars. Present only if billing is on, and in the last chunk of a stream. */
  cost?: string
}

/** A chat completion: the result of a translating vendor, and the answer to the caller. `model` is the public id. */
export interface ChatCompletion {
  id: string
  object: 'chat.completion'
  /** Unix seconds. */
  created: number
  model: string
  choices: { index: number; message: ChatAnswerMessage; logprobs: unknown; finish_reason: FinishReason }[]
  usage?: ChatUsage
}

/** Returns usage in the chat dialect. Omits parts that the vendor did not report, but keeps zeros. */
export function chatUsage(usage: Usage): ChatUsage {
  const prompt = usage.inputTokens ?? 0
  const completion = usage.outputTokens ?? 0
  const answer: ChatUsage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion }
  if (usage.cachedInputTokens !== undefined || usage.cacheWriteTokens !== undefined) {
    answer.prompt_tokens_details = {
      ...(usage.cachedInputTokens === undefined ? {} : { cached_tokens: usage.cachedInputTokens }),
      ...(usage.cacheWriteTokens === undefined ? {} : { cache_write_tokens: usage.cacheWriteTokens }),
    }
  }
  if (usage.reasoningTokens !== undefined) {
    answer.completion_tokens_details = { reasoning_tokens: usage.reasoningTokens }
  }
  return answer
}
