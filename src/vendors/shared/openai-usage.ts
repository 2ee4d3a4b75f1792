import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'

/**
 * Reads `usage` of the OpenAI dialect: `prompt_tokens` already includes cached and cache-written tokens, and
 * `completion_tokens` includes reasoning. Numbers are passed on as they are, plausible or not; anything else counts as
 * unsaid. Never throws. Undefined when the value is not an object.
 */
export function openaiUsage(value: unknown): Usage | undefined {
  if (!isJsonObject(value)) return undefined
  const input = isJsonObject(value['prompt_tokens_details']) ? value['prompt_tokens_details'] : {}
  const output = isJsonObject(value['completion_tokens_details']) ? value['completion_tokens_details'] : {}
  const usage: { -readonly [Field in keyof Usage]: Usage[Field] } = {}
  if (typeof value['prompt_tokens'] === 'number') usage.inputTokens = value['prompt_tokens']
  if (typeof input['cached_tokens'] === 'number') usage.cachedInputTokens = input['cached_tokens']
  const written = input['cache_write_tokens'] ?? input['cache_creation_input_tokens']
  if (typeof written === 'number') usage.cacheWriteTokens = written
  if (typeof value['completion_tokens'] === 'number') usage.outputTokens = value['completion_tokens']
  if (typeof output['reasoning_tokens'] === 'number') usage.reasoningTokens = output['reasoning_tokens']
  return usage
}
