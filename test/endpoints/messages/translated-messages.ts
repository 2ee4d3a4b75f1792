import type { Usage } from '../../../src/core/usage.ts'
import type { ChatCompletion } from '../../../src/endpoints/chat/chat-completion.ts'
import type { ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { writeCompletion } from '../../../src/endpoints/chat/translated-dialect.ts'
import {
  chatRequestFromMessages,
  type TranslatedRequest,
} from '../../../src/endpoints/messages/chat-request-from-messages.ts'
import type { MessagesRequest } from '../../../src/endpoints/messages/messages-request.ts'
import {
  type Message,
  type MessageFacts,
  MessagesStreamWriter,
} from '../../../src/endpoints/messages/messages-stream-writer.ts'

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

/** The whole message that a whole answer to a chat becomes. */
export function wholeMessage(completion: ChatCompletion, usage: Usage | undefined, facts: MessageFacts): Message {
  const writer = new MessagesStreamWriter({ ...facts, isWhole: true })
  writeCompletion(completion, writer)
  return writer.done(usage)?.response as unknown as Message
}
