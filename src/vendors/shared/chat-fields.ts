import { isJsonObject } from '../../core/json.ts'
import type { ChatMessage, ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { FieldMapping, FieldRule, FieldRules } from './field-rules.ts'

/** The fields of a chat request that the gateway knows by name. */
export type ChatField = keyof {
  [Field in keyof ChatRequest as string extends Field
    ? never
    : number extends Field
      ? never
      : Field]: ChatRequest[Field]
}

/** A rule for each field, so that none is passed or dropped without a decision. */
export type ChatFieldTable = Readonly<Record<ChatField, FieldRule<ChatRequest>>>

/** Returns the rules of a table other than `pass`. */
export function activeRules(table: ChatFieldTable): FieldRules<ChatRequest> {
  return Object.fromEntries(Object.entries(table).filter(([, rule]) => rule !== 'pass'))
}

/** Table of a server that accepts every field unchanged. A vendor lists its exceptions. */
export const PASS_ALL: ChatFieldTable = {
  model: 'pass',
  messages: 'pass',
  temperature: 'pass',
  top_p: 'pass',
  max_tokens: 'pass',
  max_completion_tokens: 'pass',
  n: 'pass',
  stream: 'pass',
  stream_options: 'pass',
  stop: 'pass',
  presence_penalty: 'pass',
  frequency_penalty: 'pass',
  logit_bias: 'pass',
  logprobs: 'pass',
  top_logprobs: 'pass',
  seed: 'pass',
  tools: 'pass',
  tool_choice: 'pass',
  parallel_tool_calls: 'pass',
  response_format: 'pass',
  reasoning_effort: 'pass',
  user: 'pass',
}

/** Whether a choice makes the model call a tool. Without tools, no other choice has a meaning. */
export function forcesCall(choice: ChatRequest['tool_choice']): boolean {
  if (choice === undefined || choice === null || choice === 'auto' || choice === 'validated' || choice === 'none')
    return false
  return !isJsonObject(choice) || choice.type !== 'allowed_tools' || choice.allowed_tools?.mode === 'required'
}

/** Whether a message carries fields that the gateway adds to answers and strict servers reject in a history. */
export function hasExtensions(message: ChatMessage): boolean {
  if (message.reasoning_content !== undefined || message.thinking_blocks !== undefined) return true
  if (message.extra_content !== undefined) return true
  return Array.isArray(message.tool_calls) && message.tool_calls.some((call) => call.extra_content !== undefined)
}

/** Removes those fields from a message. Returns the same object if it has none. */
export function withoutExtensions(message: ChatMessage): ChatMessage {
  if (!hasExtensions(message)) return message
  const { reasoning_content: _reasoning, thinking_blocks: _blocks, extra_content: _extra, ...rest } = message
  if (!Array.isArray(rest.tool_calls)) return rest
  return { ...rest, tool_calls: rest.tool_calls.map(({ extra_content: _callExtra, ...call }) => call) }
}

/** Removes the extension fields from a history. */
export const plainMessages: FieldMapping<ChatRequest> = {
  needed: (_value, request) => request.messages.some(hasExtensions),
  apply: (body, value) => {
    body['messages'] = (value as ChatMessage[]).map(withoutExtensions)
  },
}
