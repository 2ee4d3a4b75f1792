import { Buffer } from 'node:buffer'
import { isJsonObject } from '../../core/json.ts'

/**
 * Bytes of generated text in a content block or in a delta of one (Anthropic, "Streaming messages"): text, thinking, the name and
 * input of a tool call, and the summary of a compaction. Signatures and results of tools are not counted as output.
 */
export function blockTextBytes(block: unknown): number {
  if (!isJsonObject(block)) return 0
  let byteLength = 0
  for (const name of ['text', 'thinking', 'partial_json', 'name']) {
    const value = block[name]
    if (typeof value === 'string') byteLength += Buffer.byteLength(value)
  }
  const { type, content, input } = block
  if (typeof content === 'string' && (type === 'compaction' || type === 'compaction_delta'))
    byteLength += Buffer.byteLength(content)
  return isJsonObject(input) && Object.keys(input).length > 0
    ? byteLength + Buffer.byteLength(JSON.stringify(input))
    : byteLength
}
