import type { ChatMessage, ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { EmbeddingsRequest } from '../../endpoints/embeddings/embeddings-request.ts'
import { activeRules, type ChatFieldTable, hasExtensions, PASS_ALL, withoutExtensions } from '../shared/chat-fields.ts'
import type { FieldMapping, FieldRules } from '../shared/field-rules.ts'

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
