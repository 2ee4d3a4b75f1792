import { isJsonObject } from '../../core/json.ts'
import type { ChatMessage, ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { EmbeddingsRequest } from '../../endpoints/embeddings/embeddings-request.ts'
import { activeRules, type ChatFieldTable, hasExtensions, PASS_ALL, withoutExtensions } from '../shared/chat-fields.ts'
import type { FieldMapping, FieldRules } from '../shared/field-rules.ts'
import type { ChunkRepair } from '../shared/openai-chat-dialect.ts'
import { StreamedToolCalls } from '../shared/streamed-tool-calls.ts'

/** There is no developer role, and reasoning of earlier turns must not be sent back. */
const messages: FieldMapping<ChatRequest> = {
  needed: (_value, request) =>
    request.messages.some((message) => message.role === 'developer' || hasExtensions(message)),
  apply: (body, value) => {
    body['messages'] = (value as ChatMessage[]).map((message) => {
      const plain = withoutExtensions(message)
      return plain.role === 'developer' ? { ...plain, role: 'system' } : plain
    })
  },
}

const asMaxTokens: FieldMapping<ChatRequest> = {
  needed: () => true,
  apply: (body, value) => {
    delete body['max_completion_tokens']
    if (value !== null) body['max_tokens'] = value
  },
}

/** The vendor refuses an empty list of tools; leaving it out means the same. */
const toolsUnlessEmpty: FieldMapping<ChatRequest> = {
  needed: (value) => Array.isArray(value) && value.length === 0,
  apply: (body) => {
    delete body['tools']
  },
}

/**
 * DashScope's chat fields (OpenAI-compatible mode). Values that only this vendor refuses, such as a temperature of 2, and
 * its own fields, such as `enable_thinking`, pass through.
 */
export const DASHSCOPE_FIELDS: ChatFieldTable = {
  ...PASS_ALL,
  messages,
  max_completion_tokens: asMaxTokens,
  tools: toolsUnlessEmpty,
  frequency_penalty: 'drop',
}

/** The rules of {@link DASHSCOPE_FIELDS} that do something. */
export const DASHSCOPE_RULES = activeRules(DASHSCOPE_FIELDS)

/** The vendor returns vectors only as numbers; the gateway encodes base64. */
export const DASHSCOPE_EMBEDDING_RULES: FieldRules<EmbeddingsRequest> = {
  encoding_format: {
    needed: (value) => value !== 'float',
    apply: (body) => {
      body['encoding_format'] = 'float'
    },
  },
}

/**
 * Repairs streamed tool calls, whose ids come empty and whose indexes are missing, reused or do not begin at 0. The first
 * chunk of each call gets index, id, type and name, all others only the index and their arguments.
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
