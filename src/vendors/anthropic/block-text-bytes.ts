import { Buffer } from 'node:buffer'
import { isJsonObject } from '../../core/json.ts'

/**
 * Bytes of generated text in a content block or in a delta of one (Anthropic, "Streaming messages"): text, thinking, and the
 * name and input of a tool call. Signatures are not counted as output.
 */
export function blockTextBytes(block: unknown): number {
  if (!isJsonObject(block)) return 0
  let byteLength = 0
  for (const name of ['text', 'thinking', 'partial_json', 'name']) {
    const value = block[name]
    if (typeof value === 'string') byteLength += Buffer.byteLength(value)
  }
  const { input } = block
  return isJsonObject(input) && Object.keys(input).length > 0
    ? byteLength + Buffer.byteLength(JSON.stringify(input))
    : byteLength
}
