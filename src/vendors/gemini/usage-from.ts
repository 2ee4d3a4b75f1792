import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { usageAtTier } from '../shared/vendor-cost.ts'

/**
 * Reads `usageMetadata` (Gemini API, "UsageMetadata"). The vendor's prompt includes cached tokens but not those of tool use, and
 * its candidates exclude thoughts; the sums here include all of them. Zeros are kept, and absent fields stay absent. An omitted
 * output is 0 if the total agrees.
 */
export function usageFrom(metadata: unknown): Usage | undefined {
  if (!isJsonObject(metadata)) return undefined
  const prompt = count(metadata['promptTokenCount'])
  const toolUse = count(metadata['toolUsePromptTokenCount'])
  const heard = audioTokens(metadata['promptTokensDetails'])
  const usage = {
    ...tokenUsage({
      input: prompt === undefined ? undefined : prompt + (toolUse ?? 0),
      cached: count(metadata['cachedContentTokenCount']),
      candidates: count(metadata['candidatesTokenCount']),
      thoughts: count(metadata['thoughtsTokenCount']),
      total: count(metadata['totalTokenCount']),
    }),
    ...(heard === 0 ? {} : { inputAudioTokens: heard }),
  }
  // ON_DEMAND, ON_DEMAND_PRIORITY, ON_DEMAND_FLEX or PROVISIONED_THROUGHPUT (Vertex AI, "UsageMetadata").
  const { trafficType } = metadata
  return usageAtTier(usage, typeof trafficType === 'string' ? trafficType.replace(/^ON_DEMAND_/, '') : undefined)
}

/** Returns the audio tokens in a breakdown by modality (Gemini API, "ModalityTokenCount"). */
function audioTokens(details: unknown): number {
  let tokens = 0
  for (const entry of Array.isArray(details) ? details : [])
    if (isJsonObject(entry) && entry['modality'] === 'AUDIO') tokens += count(entry['tokenCount']) ?? 0
  return tokens
}

/**
 * Reads `usage` of an interaction (Interactions API, "Usage"). The vendor's input excludes tool use and its output excludes
 * thoughts; the sums here include both. Image tokens are in the breakdown by modality: a breakdown without images means zero, an
 * absent one means unknown. `images` is counted from the answer.
 */
export function interactionUsage(usage: unknown, images: number): Usage {
  if (!isJsonObject(usage)) return withoutPictureTokens({ images })
  const inputImages = imageTokens(usage['input_tokens_by_modality'])
  const outputImages = imageTokens(usage['output_tokens_by_modality'])
  return withoutPictureTokens({
    ...tokenUsage({
      input: sum(count(usage['total_input_tokens']), count(usage['total_tool_use_tokens'])),
      cached: count(usage['total_cached_tokens']),
      candidates: count(usage['total_output_tokens']),
      thoughts: count(usage['total_thought_tokens']),
      total: count(usage['total_tokens']),
    }),
    ...(inputImages === undefined ? {} : { inputImageTokens: inputImages }),
    ...(outputImages === undefined ? {} : { outputImageTokens: outputImages }),
    images,
  })
}

/**
 * Returns the usage of a stream that was cut: the report so far, and the received images with the tokens of their size. Returns
 * `undefined` before the first image: the vendor may be generating it, so a partial report would be too low.
 */
export function usageSoFar(usage: unknown, images: number, tokensPerPicture: number): Usage | undefined {
  return images === 0 ? undefined : { outputImageTokens: images * tokensPerPicture, ...interactionUsage(usage, images) }
}

/** An answer without images used no image tokens, even if the vendor does not report that. */
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

/**
 * Converts `usageMetadata` of `generateContent` to the `usage` of an interaction (Gemini API, "UsageMetadata"; Interactions API,
 * "Usage"). Absent fields stay absent. Returns `undefined` if nothing was reported.
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

/**
 * Returns the number of images in the steps of an answer: all image blocks of all `model_output` steps, because text and image may
 * be in separate steps (Interactions API, "Step").
 */
export function countPictures(steps: unknown): number {
  if (!Array.isArray(steps)) return 0
  let pictures = 0
  for (const step of steps) {
    if (!isJsonObject(step) || step['type'] !== 'model_output' || !Array.isArray(step['content'])) continue
    for (const block of step['content']) if (isPicture(block)) pictures += 1
  }
  return pictures
}

/** Whether a block or delta holds an image, as data or by address. */
export function isPicture(block: unknown): boolean {
  if (!isJsonObject(block) || block['type'] !== 'image') return false
  return typeof block['data'] === 'string' || typeof block['uri'] === 'string'
}

/** The vendor's counts. Except for the total, none includes another. */
interface TokenCounts {
  readonly input: number | undefined
  readonly cached: number | undefined
  readonly candidates: number | undefined
  readonly thoughts: number | undefined
  readonly total: number | undefined
}

function tokenUsage({ input, cached, candidates, thoughts, total }: TokenCounts): Usage {
  const output = sum(candidates, thoughts) ?? rest(total, input)
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
