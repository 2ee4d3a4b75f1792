import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'

/** Usage as Anthropic counts it: `input_tokens` excludes tokens read from or written to the cache. */
interface MessagesUsage {
  readonly inputTokens: number | undefined
  readonly cacheWriteTokens: number | undefined
  /** The part of `cacheWriteTokens` that was written for an hour. The last event of a stream does not repeat it. */
  readonly cacheWrite1hTokens: number | undefined
  readonly cacheReadTokens: number | undefined
  readonly outputTokens: number | undefined
  readonly thinkingTokens: number | undefined
  readonly webSearches: number | undefined
}

/** Reads a `usage` object. What is absent, null or no number stays undefined; zero is kept. */
export function readMessagesUsage(value: unknown): MessagesUsage {
  const usage = isJsonObject(value) ? value : {}
  const details = isJsonObject(usage['output_tokens_details']) ? usage['output_tokens_details'] : {}
  const written = isJsonObject(usage['cache_creation']) ? usage['cache_creation'] : {}
  const tools = usage['server_tool_use']
  return {
    inputTokens: count(usage['input_tokens']),
    cacheWriteTokens: count(usage['cache_creation_input_tokens']),
    cacheWrite1hTokens: count(written['ephemeral_1h_input_tokens']),
    cacheReadTokens: count(usage['cache_read_input_tokens']),
    outputTokens: count(usage['output_tokens']),
    thinkingTokens: count(details['thinking_tokens']),
    // The vendor writes null if none of its own tools was used (Anthropic, API reference, "Usage").
    webSearches: tools === null ? 0 : isJsonObject(tools) ? count(tools['web_search_requests']) : undefined,
  }
}

/**
 * Joins the counts of two events of a stream. Later counts are cumulative, so they replace earlier ones and are never added
 * (Anthropic, "Streaming messages").
 */
export function latestUsage(earlier: MessagesUsage, later: MessagesUsage): MessagesUsage {
  return {
    inputTokens: later.inputTokens ?? earlier.inputTokens,
    cacheWriteTokens: later.cacheWriteTokens ?? earlier.cacheWriteTokens,
    cacheWrite1hTokens: later.cacheWrite1hTokens ?? hourPart(earlier, later.cacheWriteTokens),
    cacheReadTokens: later.cacheReadTokens ?? earlier.cacheReadTokens,
    outputTokens: later.outputTokens ?? earlier.outputTokens,
    thinkingTokens: later.thinkingTokens ?? earlier.thinkingTokens,
    webSearches: later.webSearches ?? earlier.webSearches,
  }
}

/** Of a total that a later event gives without its parts: what was written for an hour alone still is. */
function hourPart(earlier: MessagesUsage, total: number | undefined): number | undefined {
  const { cacheWriteTokens, cacheWrite1hTokens } = earlier
  const isHourAlone =
    cacheWrite1hTokens !== undefined && cacheWrite1hTokens > 0 && cacheWrite1hTokens === cacheWriteTokens
  return isHourAlone ? (total ?? cacheWrite1hTokens) : cacheWrite1hTokens
}

/**
 * Turns Anthropic's counts into totals that include their parts (Anthropic, "Prompt caching": total input is the sum of fresh,
 * cache-written and cache-read tokens). Undefined when the vendor gave no count at all.
 */
export function normalisedUsage(counts: MessagesUsage): Usage | undefined {
  const { inputTokens, cacheWriteTokens, cacheWrite1hTokens, cacheReadTokens } = counts
  const { outputTokens, thinkingTokens, webSearches } = counts
  const hasInput = inputTokens !== undefined || cacheWriteTokens !== undefined || cacheReadTokens !== undefined
  if (!hasInput && outputTokens === undefined) return undefined
  return {
    ...(hasInput ? { inputTokens: (inputTokens ?? 0) + (cacheWriteTokens ?? 0) + (cacheReadTokens ?? 0) } : {}),
    ...(cacheReadTokens === undefined ? {} : { cachedInputTokens: cacheReadTokens }),
    ...(cacheWriteTokens === undefined ? {} : { cacheWriteTokens }),
    ...(cacheWrite1hTokens === undefined ? {} : { cacheWrite1hTokens }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    ...(thinkingTokens === undefined ? {} : { reasoningTokens: thinkingTokens }),
    ...(webSearches === undefined ? {} : { webSearches }),
  }
}

/** Reads a `usage` object of a whole answer. */
export function usageFrom(value: unknown): Usage | undefined {
  return normalisedUsage(readMessagesUsage(value))
}

// Implausible numbers pass: they are judged where money is settled.
function count(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
