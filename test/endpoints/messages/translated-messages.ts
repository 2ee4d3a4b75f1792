import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import {
  chatRequestFromMessages,
  type TranslatedRequest,
} from '../../../src/endpoints/messages/chat-request-from-messages.ts'
import type { MessagesRequest } from '../../../src/endpoints/messages/messages-request.ts'

export const HELLO = [{ role: 'user', content: 'hello' }]
export const PNG = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0K' } }
export const PNG_PART = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0K' } }
export const extra = { google: { thought_signature: 'c2ln' } }

/** The request for a chat that a request for a message becomes. */
export function translate(fields: Record<string, unknown>, maximum?: number): TranslatedRequest {
  const request = { model: 'some-model', max_tokens: 100, messages: HELLO, ...fields } as MessagesRequest
  return chatRequestFromMessages(request, maximum)
}

export function messagesOf(messages: unknown[], fields: Record<string, unknown> = {}): ChatRequest['messages'] {
  return translate({ messages, ...fields }).request.messages
}
