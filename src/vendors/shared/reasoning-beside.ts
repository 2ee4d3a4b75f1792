import type { Usage } from '../../core/usage.ts'

/** Does the total say that reasoning is not part of the output? */
export function isReasoningBeside(total: unknown, { inputTokens, outputTokens, reasoningTokens = 0 }: Usage): boolean {
  if (inputTokens === undefined || outputTokens === undefined || !(reasoningTokens > 0)) return false
  return total === inputTokens + outputTokens + reasoningTokens
}
