import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'

/**
 * Reads `usage` of an image answer (OpenAI API reference, images). Where the vendor does not split the output, all of it
 * is pictures. Numbers are passed on as they are, plausible or not; anything else counts as unsaid. Never throws. An
 * empty object when the value is no object.
 */
export function openaiImageUsage(value: unknown): Usage {
  if (!isJsonObject(value)) return {}
  const input = isJsonObject(value['input_tokens_details']) ? value['input_tokens_details'] : {}
  const output = isJsonObject(value['output_tokens_details']) ? value['output_tokens_details'] : {}
  const usage: { -readonly [Field in keyof Usage]: Usage[Field] } = {}
  if (typeof value['input_tokens'] === 'number') usage.inputTokens = value['input_tokens']
  if (typeof input['image_tokens'] === 'number') usage.inputImageTokens = input['image_tokens']
  if (typeof value['output_tokens'] === 'number') usage.outputTokens = value['output_tokens']
  const drawn = output['image_tokens'] ?? value['output_tokens']
  if (typeof drawn === 'number') usage.outputImageTokens = drawn
  return usage
}

/** Adds the usage of one more picture of the same request. A field that only one of them names keeps its value. */
export function addedUsage(sum: Usage, more: Usage): Usage {
  const total: { -readonly [Field in keyof Usage]: Usage[Field] } = { ...sum }
  for (const field in more) {
    const name = field as keyof Usage
    total[name] = (total[name] ?? 0) + (more[name] ?? 0)
  }
  return total
}
