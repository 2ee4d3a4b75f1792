import { isJsonObject } from '../../core/json.ts'
import type { ChunkRepair } from '../shared/openai-chat-dialect.ts'
import { StreamedToolCalls } from '../shared/streamed-tool-calls.ts'

/**
 * Mends streamed tool calls, whose ids come empty and whose indexes are missing, reused or do not begin at 0: the first
 * piece of each call gets index, id, type and name, all others the index and their arguments only.
 */
export function toolCallRepair(): ChunkRepair {
  const byChoice = new Map<number, StreamedToolCalls>()
  return {
    mend: (chunk) => {
      const answerId = typeof chunk['id'] === 'string' ? chunk['id'] : ''
      let changed = false
      for (const choice of objectsOf(chunk['choices'])) {
        const delta = choice['delta']
        if (!isJsonObject(delta) || !Array.isArray(delta['tool_calls'])) continue
        const index = typeof choice['index'] === 'number' ? choice['index'] : 0
        const calls = byChoice.get(index) ?? new StreamedToolCalls()
        byChoice.set(index, calls)
        delta['tool_calls'] = objectsOf(delta['tool_calls']).map((piece) => mended(piece, calls, answerId))
        changed = true
      }
      return changed
    },
  }
}

function mended(piece: Record<string, unknown>, calls: StreamedToolCalls, answerId: string): Record<string, unknown> {
  const { index, opens, id, name } = calls.locate(piece, answerId)
  const definition = isJsonObject(piece['function']) ? piece['function'] : {}
  const json = typeof definition['arguments'] === 'string' ? definition['arguments'] : ''
  return opens
    ? { index, id, type: 'function', function: { name, arguments: json } }
    : { index, function: { arguments: json } }
}

function objectsOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}
