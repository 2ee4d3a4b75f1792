import { isJsonObject } from '../../../core/json.ts'

/**
 * `usageMetadata` of `generateContent` as the `usage` of an interaction (Gemini API, "UsageMetadata"; Interactions API,
 * "Usage"). What is absent stays absent. Undefined when nothing was reported.
 */
export function generatedImageUsage(metadata: unknown): Record<string, unknown> | undefined {
  if (!isJsonObject(metadata)) return undefined
  const usage: Record<string, unknown> = {}
  for (const [theirs, ours] of TOTALS) if (metadata[theirs] !== undefined) usage[ours] = metadata[theirs]
  for (const [theirs, ours] of BREAKDOWNS) {
    const details = metadata[theirs]
    if (Array.isArray(details)) usage[ours] = details.filter(isJsonObject).map(modalityEntry)
  }
  return usage
}

const TOTALS = [
  ['totalTokenCount', 'total_tokens'],
  ['promptTokenCount', 'total_input_tokens'],
  ['candidatesTokenCount', 'total_output_tokens'],
  ['thoughtsTokenCount', 'total_thought_tokens'],
  ['cachedContentTokenCount', 'total_cached_tokens'],
  ['toolUsePromptTokenCount', 'total_tool_use_tokens'],
] as const

const BREAKDOWNS = [
  ['promptTokensDetails', 'input_tokens_by_modality'],
  ['candidatesTokensDetails', 'output_tokens_by_modality'],
  ['cacheTokensDetails', 'cached_tokens_by_modality'],
  ['toolUsePromptTokensDetails', 'tool_use_tokens_by_modality'],
] as const

function modalityEntry(detail: Record<string, unknown>): Record<string, unknown> {
  const { modality, tokenCount } = detail
  return { modality: typeof modality === 'string' ? modality.toLowerCase() : modality, tokens: tokenCount ?? 0 }
}
