import { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import type { ChatRequest, ChatResponseFormat } from '../chat/chat-request.ts'
import { chatMessages } from './chat-messages.ts'
import { reasoningEffort } from './chat-reasoning.ts'
import { chatTools } from './chat-tools.ts'
import { endUser } from './end-user.ts'
import type { MessagesRequest } from './messages-request.ts'
import type { Report } from './user-content.ts'

/** Fields that have an equivalent in chat. All others are left out, and reported. */
const MAPPED_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'max_tokens',
  'system',
  'stream',
  'temperature',
  'top_p',
  'stop_sequences',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
  'metadata',
])

/** Most stop sequences of a chat (API specification, "Limits"). */
const MAX_STOP_SEQUENCES = 4

/** A request as chat vendors read it, and the names of what has no place there. */
export interface TranslatedRequest {
  readonly request: ChatRequest
  readonly dropped: readonly string[]
}

/**
 * Translates a Messages request into a chat request.
 * @param maxOutputTokens Most tokens of one answer that the model gives; a higher bound is lowered to it, and reported.
 * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the field.
 */
export function chatRequestFromMessages(messages: MessagesRequest, maxOutputTokens?: number): TranslatedRequest {
  const dropped = new Set<string>()
  const report: Report = (field) => void dropped.add(headerName(field))
  for (const field of Object.keys(messages)) if (!MAPPED_FIELDS.has(field) && isSet(messages[field])) report(field)
  const { temperature, top_p: topP, stop_sequences: stop } = messages
  const maxTokens = maxTokensOf(messages, maxOutputTokens, report)
  const effort = reasoningEffort(messages, report)
  const format = responseFormat(messages, report)
  const user = userOf(messages, report)
  if (stop && stop.length > MAX_STOP_SEQUENCES) report('stop_sequences')
  const request: ChatRequest = {
    model: messages.model,
    messages: chatMessages(messages, report),
    ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
    ...(isSet(temperature) ? { temperature } : {}),
    ...(isSet(topP) ? { top_p: topP } : {}),
    ...(stop && stop.length > 0 ? { stop: stop.slice(0, MAX_STOP_SEQUENCES) } : {}),
    ...chatTools(messages, report),
    ...(effort === undefined ? {} : { reasoning_effort: effort }),
    ...(format === undefined ? {} : { response_format: format }),
    ...(user === undefined ? {} : { user }),
    ...(messages.stream === true ? { stream: true } : {}),
  }
  return { request, dropped: [...dropped] }
}

function maxTokensOf(
  { max_tokens: wished }: MessagesRequest,
  maxOutputTokens: number | undefined,
  report: Report,
): number | undefined {
  if (wished === undefined) return undefined
  if (wished === 0) {
    throw new GatewayError('unsupported_parameter', {
      message: 'max_tokens: this model has no cache to fill; ask for at least 1 token.',
      param: 'max_tokens',
    })
  }
  if (maxOutputTokens === undefined || wished <= maxOutputTokens) return wished
  report('max_tokens')
  return maxOutputTokens
}

function responseFormat({ output_config: output }: MessagesRequest, report: Report): ChatResponseFormat | undefined {
  for (const field of Object.keys(output ?? {}))
    if (field !== 'effort' && field !== 'format' && isSet(output?.[field])) report(`output_config.${field}`)
  const format = output?.['format']
  if (!isSet(format)) return undefined
  if (!isJsonObject(format) || format['type'] !== 'json_schema' || !isJsonObject(format['schema'])) {
    throw new GatewayError('invalid_request', {
      message: 'output_config.format: must be {"type":"json_schema","schema":…}',
      param: 'output_config.format',
    })
  }
  return { type: 'json_schema', json_schema: { name: 'answer', schema: format['schema'], strict: true } }
}

function userOf({ metadata }: MessagesRequest, report: Report): string | undefined {
  for (const field of Object.keys(metadata ?? {})) if (field !== 'user_id') report(`metadata.${field}`)
  const userId = metadata?.['user_id']
  return typeof userId === 'string' && userId !== '' ? endUser(userId) : undefined
}

function isSet<Value>(value: Value | null | undefined): value is Value {
  return value !== undefined && value !== null
}

/** Names go into a header, and callers choose some of them. */
function headerName(field: string): string {
  return /^[\w.[\]-]{1,80}$/.test(field) ? field : '(unprintable)'
}
