import type { Usage } from '../../core/usage.ts'
import type { ChatUsage } from './chat-completion.ts'

/** Writes usage as chat callers read it. Parts that the vendor did not report are left out; zeros are written. */
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
