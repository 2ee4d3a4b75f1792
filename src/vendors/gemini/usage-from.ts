import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'

/**
 * Reads `usageMetadata` (Gemini API, "UsageMetadata"). Its prompt includes cached tokens but not those of tool use, and its
 * candidates do not include thoughts; the sums here include all of them. Zeros are kept, and what is absent stays absent,
 * except that the vendor leaves out an answer's zero, which the total then tells.
 */
export function usageFrom(metadata: unknown): Usage | undefined {
  if (!isJsonObject(metadata)) return undefined
  const prompt = count(metadata['promptTokenCount'])
  const toolUse = count(metadata['toolUsePromptTokenCount'])
  const cached = count(metadata['cachedContentTokenCount'])
  const thoughts = count(metadata['thoughtsTokenCount'])
  const input = prompt === undefined ? undefined : prompt + (toolUse ?? 0)
  const output =
    sum(count(metadata['candidatesTokenCount']), thoughts) ?? rest(count(metadata['totalTokenCount']), input)
  return {
    ...(input === undefined ? {} : { inputTokens: input }),
    ...(cached === undefined ? {} : { cachedInputTokens: cached }),
    ...(output === undefined ? {} : { outputTokens: output }),
    ...(thoughts === undefined ? {} : { reasoningTokens: thoughts }),
  }
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

function sum(first: number | undefined, second: number | undefined): number | undefined {
  return first === undefined && second === undefined ? undefined : (first ?? 0) + (second ?? 0)
}

function rest(total: number | undefined, part: number | undefined): number | undefined {
  return total === undefined || part === undefined || total < part ? undefined : total - part
}
