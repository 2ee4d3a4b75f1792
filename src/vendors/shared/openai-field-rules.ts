import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { activeRules, type ChatFieldTable, PASS_ALL, plainMessages } from './chat-fields.ts'
import type { FieldMapping, FieldRules } from './field-rules.ts'

/** Request field for the token limit of a model. */
export type TokenLimitField = 'max_tokens' | 'max_completion_tokens'

/**
 * Token limit fields of OpenAI's models. Reasoning models reject `max_tokens` (OpenAI, API reference of chat completions). Rows
 * also cover the dated ids of a model and its fine-tunes.
 */
const TOKEN_LIMIT_FIELDS: ReadonlyMap<string, TokenLimitField> = new Map<string, TokenLimitField>([
  ['gpt-3.5-turbo', 'max_tokens'],
  ['gpt-4', 'max_tokens'],
  ['gpt-4-turbo', 'max_tokens'],
  ['gpt-4o', 'max_tokens'],
  ['gpt-4o-mini', 'max_tokens'],
  ['gpt-4.1', 'max_tokens'],
  ['gpt-4.1-mini', 'max_tokens'],
  ['gpt-4.1-nano', 'max_tokens'],
  ['chatgpt-4o-latest', 'max_tokens'],
  ['o1', 'max_completion_tokens'],
  ['o1-mini', 'max_completion_tokens'],
  ['o3', 'max_completion_tokens'],
  ['o3-mini', 'max_completion_tokens'],
  ['o4-mini', 'max_completion_tokens'],
  ['gpt-5', 'max_completion_tokens'],
  ['gpt-5-mini', 'max_completion_tokens'],
  ['gpt-5-nano', 'max_completion_tokens'],
  ['gpt-5.1', 'max_completion_tokens'],
  ['gpt-5.4', 'max_completion_tokens'],
])

/** Field of the newest models; `max_tokens` is deprecated. */
export const DEFAULT_TOKEN_LIMIT_FIELD: TokenLimitField = 'max_completion_tokens'

const DATE_SUFFIX = /-\d{4}(?:-\d{2}-\d{2})?$/
const FINE_TUNE = /^ft:([^:]+):/

/** Returns the field of a model by the vendor's id, including dated ids and fine-tunes. The host's own rows take precedence. */
export function tokenLimitField(
  upstream: string,
  overrides: Readonly<Record<string, TokenLimitField>> = {},
  fallback: TokenLimitField = DEFAULT_TOKEN_LIMIT_FIELD,
): TokenLimitField {
  const base = FINE_TUNE.exec(upstream)?.[1] ?? upstream
  const family = base.replace(DATE_SUFFIX, '')
  return ownRow(overrides, upstream) ?? ownRow(overrides, family) ?? TOKEN_LIMIT_FIELDS.get(family) ?? fallback
}

function ownRow(rows: Readonly<Record<string, TokenLimitField>>, id: string): TokenLimitField | undefined {
  return Object.hasOwn(rows, id) ? rows[id] : undefined
}

const asCompletionTokens: FieldMapping<ChatRequest> = {
  needed: () => true,
  apply: (body, value) => {
    delete body['max_tokens']
    body['max_completion_tokens'] ??= value
  },
}

/** OpenAI's chat fields: everything is passed on, except what the gateway adds to histories. */
export const OPENAI_FIELDS: ChatFieldTable = { ...PASS_ALL, messages: plainMessages }

/** Chat fields of models that reject `max_tokens`. */
export const OPENAI_REASONING_FIELDS: ChatFieldTable = { ...OPENAI_FIELDS, max_tokens: asCompletionTokens }

/** Routing reads `session_id` of chats and Responses. OpenRouter's references list it, those of the other vendors do not. */
export const ROUTING_RULES = { session_id: 'drop' } as const

/** The rules other than `pass`, by the model's field for the token limit. */
export const OPENAI_RULES: Readonly<Record<TokenLimitField, FieldRules<ChatRequest>>> = {
  max_tokens: { ...activeRules(OPENAI_FIELDS), ...ROUTING_RULES },
  max_completion_tokens: { ...activeRules(OPENAI_REASONING_FIELDS), ...ROUTING_RULES },
}
