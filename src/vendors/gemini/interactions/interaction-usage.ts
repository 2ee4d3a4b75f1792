import { isJsonObject } from '../../../core/json.ts'
import type { Usage } from '../../../core/usage.ts'

/**
 * Reads `usage` of an interaction (Interactions API, "Usage"). Its input is without tool use and its output without thoughts;
 * the sums here include them. Tokens of pictures stand in the breakdown by modality: one that leaves pictures out says
 * zero, one that is absent says nothing. `images` is counted from the answer.
 */
export function interactionUsage(usage: unknown, images: number): Usage {
  if (!isJsonObject(usage)) return withoutPictureTokens({ images })
  const input = sum(count(usage['total_input_tokens']), count(usage['total_tool_use_tokens']))
  const cached = count(usage['total_cached_tokens'])
  const thoughts = count(usage['total_thought_tokens'])
  const output = sum(count(usage['total_output_tokens']), thoughts) ?? rest(count(usage['total_tokens']), input)
  const inputImages = imageTokens(usage['input_tokens_by_modality'])
  const outputImages = imageTokens(usage['output_tokens_by_modality'])
  return withoutPictureTokens({
    ...(input === undefined ? {} : { inputTokens: input }),
    ...(cached === undefined ? {} : { cachedInputTokens: cached }),
    ...(inputImages === undefined ? {} : { inputImageTokens: inputImages }),
    ...(output === undefined ? {} : { outputTokens: output }),
    ...(thoughts === undefined ? {} : { reasoningTokens: thoughts }),
    ...(outputImages === undefined ? {} : { outputImageTokens: outputImages }),
    images,
  })
}

/**
 * Usage of a stream that has not ended, for the case that it is cut: what was reported, and the pictures that came, each with
 * the tokens of its size. Undefined before the first picture: the vendor may be drawing it, so that a partial report, which
 * knows of none, would be too low.
 */
export function usageSoFar(usage: unknown, images: number, tokensPerPicture: number): Usage | undefined {
  return images === 0 ? undefined : { outputImageTokens: images * tokensPerPicture, ...interactionUsage(usage, images) }
}

/** An answer without a picture has spent no tokens on one, though its vendor may not say so. */
function withoutPictureTokens(usage: Usage): Usage {
  return usage.images === 0 && usage.outputImageTokens === undefined ? { ...usage, outputImageTokens: 0 } : usage
}

function imageTokens(byModality: unknown): number | undefined {
  if (!Array.isArray(byModality)) return undefined
  let tokens = 0
  for (const entry of byModality) {
    if (isJsonObject(entry) && entry['modality'] === 'image') tokens += count(entry['tokens']) ?? 0
  }
  return tokens
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
