import type { ChatMessage, ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { FieldMapping } from './field-rules.ts'

/** True when a message carries fields that the gateway adds to answers and strict servers refuse in a history. */
export function hasExtensions(message: ChatMessage): boolean {
  if (message.reasoning_content !== undefined || message.thinking_blocks !== undefined) return true
  if (message.extra_content !== undefined) return true
  return Array.isArray(message.tool_calls) && message.tool_calls.some((call) => call.extra_content !== undefined)
}

/** The message without those fields; the same object when it has none. */
export function withoutExtensions(message: ChatMessage): ChatMessage {
  if (!hasExtensions(message)) return message
  const { reasoning_content: _reasoning, thinking_blocks: _blocks, extra_content: _extra, ...rest } = message
  if (!Array.isArray(rest.tool_calls)) return rest
  return { ...rest, tool_calls: rest.tool_calls.map(({ extra_content: _callExtra, ...call }) => call) }
}

/** Removes the extension fields from a history, and only from there. */
export const plainMessages: FieldMapping<ChatRequest> = {
  needed: (_value, request) => request.messages.some(hasExtensions),
  apply: (body, value) => {
    body['messages'] = (value as ChatMessage[]).map(withoutExtensions)
  },
}
