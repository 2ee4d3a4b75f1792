import type { ChatMessage, ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { EmbeddingsRequest } from '../../endpoints/embeddings/embeddings-request.ts'
import { activeRules, type ChatFieldTable, PASS_ALL } from '../shared/chat-fields.ts'
import type { FieldMapping, FieldRules } from '../shared/field-rules.ts'
import { hasExtensions, withoutExtensions } from '../shared/openai-chat-messages.ts'

/** There is no developer role, and reasoning of earlier turns must not come back. */
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

/** An empty list of tools is refused, and says the same as none. */
const toolsUnlessEmpty: FieldMapping<ChatRequest> = {
  needed: (value) => Array.isArray(value) && value.length === 0,
  apply: (body) => {
    delete body['tools']
  },
}

/**
 * DashScope's chat fields (OpenAI-compatible mode). Values that it alone objects to, such as a temperature of 2, and
 * fields of its own, such as `enable_thinking`, go through.
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

/** Vectors come as numbers only; base64 is made from them by the gateway. */
export const DASHSCOPE_EMBEDDING_RULES: FieldRules<EmbeddingsRequest> = {
  encoding_format: {
    needed: (value) => value !== 'float',
    apply: (body) => {
      body['encoding_format'] = 'float'
    },
  },
}
