import type { Usage } from '../../core/usage.ts'

/** Does the total say that reasoning is not part of the output? */
export function isReasoningBeside(total: unknown, { inputTokens, outputTokens, reasoningTokens = 0 }: Usage): boolean {
  if (inputTokens === undefined || outputTokens === undefined || !(reasoningTokens > 0)) return false
  return total === inputTokens + outputTokens + reasoningTokens
}

/** Does the total say that the prompt does not hold what was read from the cache? */
export function isCacheBeside(total: unknown, usage: Usage): boolean {
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens = 0 } = usage
  if (inputTokens === undefined || outputTokens === undefined || cachedInputTokens === undefined) return false
  if (!(cachedInputTokens > inputTokens)) return false
  const sum = inputTokens + cachedInputTokens + outputTokens
  return total === sum || total === sum + reasoningTokens
}
