import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import type { CacheTime } from '../../endpoints/cache-marks.ts'

/** Usage while it is read. */
export type MutableUsage = { -readonly [Field in keyof Usage]: Usage[Field] }

const NO_DETAILS: Readonly<Record<string, unknown>> = {}

/**
 * Reads `usage` of the OpenAI dialect: `prompt_tokens` already includes cached and cache-written tokens, and `completion_tokens`
 * includes reasoning. If the total shows that the completion excludes reasoning, it is added (as at xAI). Numbers are passed on
 * unchanged, plausible or not; anything else counts as missing. Never throws. Returns `undefined` if the value is not an object.
 */
export function openaiUsage(value: unknown): Usage | undefined {
  if (!isJsonObject(value)) return undefined
  const input = isJsonObject(value['prompt_tokens_details']) ? value['prompt_tokens_details'] : NO_DETAILS
  const output = isJsonObject(value['completion_tokens_details']) ? value['completion_tokens_details'] : NO_DETAILS
  const usage: MutableUsage = {}
  if (typeof value['prompt_tokens'] === 'number') usage.inputTokens = value['prompt_tokens']
  const cached = cachedTokens(value, input)
  if (cached !== undefined) usage.cachedInputTokens = cached
  addCacheWrites(usage, input)
  // Servers report zero for every chat, which adds nothing to the total.
  const { audio_tokens: heard } = input
  if (typeof heard === 'number' && heard !== 0) usage.inputAudioTokens = heard
  if (typeof value['completion_tokens'] === 'number') usage.outputTokens = value['completion_tokens']
  if (typeof output['reasoning_tokens'] === 'number') usage.reasoningTokens = output['reasoning_tokens']
  addCountsBeside(usage, value['total_tokens'])
  return usage
}

/**
 * Adds cache writes and the part with a lifetime of an hour: OpenAI's name, those of other servers, and the lifetimes of DashScope
 * and LiteLLM.
 */
export function addCacheWrites(usage: MutableUsage, details: Readonly<Record<string, unknown>>): void {
  const written =
    details['cache_write_tokens'] ?? details['cache_creation_input_tokens'] ?? details['cache_creation_tokens']
  if (typeof written !== 'number') return
  usage.cacheWriteTokens = written
  const lifetimes = details['cache_creation'] ?? details['cache_creation_token_details']
  if (!isJsonObject(lifetimes)) return
  const { ephemeral_1h_input_tokens: ofAnHour, ephemeral_5m_input_tokens: ofMinutes } = lifetimes
  if (typeof ofAnHour === 'number') usage.cacheWrite1hTokens = ofAnHour
  // DashScope omits the others, and servers without lifetimes send null for each.
  else if (typeof ofMinutes === 'number') usage.cacheWrite1hTokens = 0
}

/**
 * Adds the lifetime that the marks of the prompt request if the report has none (OpenRouter). The longest mark applies to all cache
 * writes, as in the hold.
 */
export function usageAsMarked(usage: Usage | undefined, cacheTime: CacheTime): Usage | undefined {
  if (cacheTime !== 'hour' || usage?.cacheWriteTokens === undefined || usage.cacheWrite1hTokens !== undefined)
    return usage
  return { ...usage, cacheWrite1hTokens: usage.cacheWriteTokens }
}

/** Returns the usage of a chunk as its server sent it. Older streams of Groq have it only under `x_groq`. */
export function chunkUsage({ usage, x_groq: groq }: Readonly<Record<string, unknown>>): unknown {
  return isJsonObject(usage) || !isJsonObject(groq) ? usage : groq['usage']
}

/** Returns the count from the members of OpenAI, Moonshot, Mistral (two) and DeepSeek's older one. */
function cachedTokens(usage: Record<string, unknown>, details: Record<string, unknown>): number | undefined {
  const misnamed = usage['prompt_token_details']
  return (
    countOf(details['cached_tokens']) ??
    countOf(usage['cached_tokens']) ??
    countOf(usage['num_cached_tokens']) ??
    countOf(isJsonObject(misnamed) ? misnamed['cached_tokens'] : undefined) ??
    countOf(usage['prompt_cache_hit_tokens'])
  )
}

function countOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

/** Adds cached tokens to the input, and reasoning to the output, if the total shows that they are not included. */
export function addCountsBeside(usage: MutableUsage, total: unknown): void {
  if (isCacheBeside(total, usage)) usage.inputTokens = usage.inputTokens! + usage.cachedInputTokens!
  if (isReasoningBeside(total, usage)) usage.outputTokens = usage.outputTokens! + usage.reasoningTokens!
}

/** Whether the total shows that the output excludes reasoning. */
function isReasoningBeside(total: unknown, { inputTokens, outputTokens, reasoningTokens = 0 }: Usage): boolean {
  if (inputTokens === undefined || outputTokens === undefined || !(reasoningTokens > 0)) return false
  return total === inputTokens + outputTokens + reasoningTokens
}

/** Whether the total shows that the prompt excludes cached tokens. */
function isCacheBeside(total: unknown, usage: Usage): boolean {
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens = 0 } = usage
  if (inputTokens === undefined || outputTokens === undefined || cachedInputTokens === undefined) return false
  if (!(cachedInputTokens > inputTokens)) return false
  const sum = inputTokens + cachedInputTokens + outputTokens
  return total === sum || total === sum + reasoningTokens
}

/** Whether a report has each billed count. The answer does not count the usage of other models. */
export function isSameUsage(reported: Usage, billed: Usage): boolean {
  for (const name in billed)
    if (name !== 'otherModels' && billed[name as keyof Usage] !== reported[name as keyof Usage]) return false
  return true
}
