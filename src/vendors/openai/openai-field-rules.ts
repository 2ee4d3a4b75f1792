import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { activeRules, type ChatFieldTable, PASS_ALL } from '../shared/chat-fields.ts'
import type { FieldMapping, FieldRules } from '../shared/field-rules.ts'
import { plainMessages } from '../shared/openai-chat-messages.ts'
import type { TokenLimitField } from './token-limit-field.ts'

const asCompletionTokens: FieldMapping<ChatRequest> = {
  needed: () => true,
  apply: (body, value) => {
    delete body['max_tokens']
    body['max_completion_tokens'] ??= value
  },
}

/** OpenAI's chat fields: everything passes, but for what the gateway adds to histories. */
export const OPENAI_FIELDS: ChatFieldTable = { ...PASS_ALL, messages: plainMessages }

/** The same for models that refuse `max_tokens`. */
export const OPENAI_REASONING_FIELDS: ChatFieldTable = { ...OPENAI_FIELDS, max_tokens: asCompletionTokens }

/** The rules that do something, by the field in which a model takes its token bound. */
export const OPENAI_RULES: Readonly<Record<TokenLimitField, FieldRules<ChatRequest>>> = {
  max_tokens: activeRules(OPENAI_FIELDS),
  max_completion_tokens: activeRules(OPENAI_REASONING_FIELDS),
}
