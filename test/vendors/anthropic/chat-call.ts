import { defineModel, type ModelLimits } from '../../../src/catalog/model.ts'
import type { ChatMessage, ChatRequest } from '../../../src/endpoints/chat/chat-request.ts'
import { type AnthropicOptions, anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import type { MessagesRequest } from '../../../src/vendors/shared/messages-from-chat.ts'
import type { ChatOperation, VendorCall } from '../../../src/vendors/vendor.ts'

/** Settings of a test call in addition to its request. */
export interface CallOptions {
  readonly upstream?: string
  readonly limits?: ModelLimits
  readonly stream?: boolean
  /** Tokens of a prompt that the gateway wants to be cached. */
  readonly promptTokens?: number | undefined
}

/** Unchecked fields of a caller's request. `messages` defaults to one question. */
export type LooseRequest = Readonly<Record<string, unknown>>

/** Returns a call at a fixed time with a fixed key. */
export function chatCall(request: LooseRequest, options: CallOptions = {}): VendorCall<ChatRequest> {
  const limits = options.limits === undefined ? {} : { limits: options.limits }
  return {
    request: { model: 'cl-test', messages: [{ role: 'user', content: 'Hello' }], ...request } as ChatRequest,
    bytes: undefined,
    model: defineModel({
      id: 'cl-test',
      kind: 'chat',
      vendor: 'anthropic',
      upstream: options.upstream ?? 'claude-sonnet-4-6',
      ...limits,
    }),
    publicModel: 'cl-test',
    apiKey: 'sk-ant-canary-0123456789',
    stream: options.stream ?? false,
    ...(options.promptTokens === undefined ? {} : { promptCaching: { promptTokens: options.promptTokens } }),
    nowMs: 1_795_132_800_500,
  }
}

/** The vendor's chat. */
export function chatOperation(options: AnthropicOptions = { apiKey: 'sk-ant-canary-0123456789' }): ChatOperation {
  const operation = anthropic(options).chat
  if (operation === undefined) throw new Error('the vendor has no chat')
  return operation
}

/** Returns the Messages body and the dropped fields of a request. */
export function translated(
  request: LooseRequest,
  options: CallOptions = {},
): { body: MessagesRequest; dropped: readonly string[] } {
  const wire = chatOperation().toWire(chatCall(request, options))
  return { body: JSON.parse(String(wire.body)) as MessagesRequest, dropped: wire.dropped }
}

/** Returns the Messages body of a list of messages. */
export function translatedMessages(
  messages: readonly Partial<ChatMessage>[],
  options: CallOptions = {},
): MessagesRequest {
  return translated({ messages }, options).body
}
