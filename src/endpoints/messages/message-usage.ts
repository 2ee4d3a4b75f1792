import type { Usage } from '../../core/usage.ts'

/** Usage as Messages callers read it: `input_tokens` leaves out what was read from or written to a cache. */
export interface MessageUsage {
  input_tokens: number
  cache_creation_input_tokens: number
  cache_read_input_tokens: number
  output_tokens: number
  output_tokens_details?: { thinking_tokens: number }
}

/**
 * Writes usage as Messages callers read it (Anthropic, "Prompt caching", usage). All counts are written, because clients read
 * them without looking whether they are there; what the vendor did not report is 0.
 */
export function messageUsage(usage: Usage | undefined): MessageUsage {
  const cached = usage?.cachedInputTokens ?? 0
  const written = usage?.cacheWriteTokens ?? 0
  return {
    input_tokens: Math.max(0, (usage?.inputTokens ?? 0) - cached - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: cached,
    output_tokens: usage?.outputTokens ?? 0,
    ...(usage?.reasoningTokens === undefined
      ? {}
      : { output_tokens_details: { thinking_tokens: usage.reasoningTokens } }),
  }
}
