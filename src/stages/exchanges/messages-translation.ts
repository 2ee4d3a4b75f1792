import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { chatRequestFromMessages } from '../../endpoints/messages/chat-request-from-messages.ts'
import type { MessagesCall } from '../../endpoints/messages/messages-call.ts'
import type { MessagesRequest } from '../../endpoints/messages/messages-request.ts'
import type { VendorCall } from '../../vendors/vendor.ts'

/** A Messages call as a chat call, and the names of what it left out. */
export interface TranslatedCall {
  readonly chatCall: VendorCall<ChatRequest>
  readonly dropped: readonly string[]
}

/**
 * Translates a call for a vendor that speaks chat only.
 * @param asked The call with the caller's own request.
 * @param call The call as it came, with the pictures that were fetched for this vendor.
 * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming what cannot be translated.
 */
export function translatedCall(asked: VendorCall<MessagesRequest>, call: VendorCall<MessagesCall>): TranslatedCall {
  const { request, dropped } = chatRequestFromMessages(asked.request, asked.model.limits.maxOutputTokens)
  return {
    chatCall: {
      ...asked,
      request: { ...request, messages: [...call.request.messages] },
      // Bytes and headers are of the caller's dialect, which this vendor does not speak.
      bytes: undefined,
      header: undefined,
      costOf: undefined,
    },
    dropped,
  }
}

/** What callers of Messages call the fields that a chat vendor leaves out. */
const CALLER_NAMES: ReadonlyMap<string, string> = new Map([
  ['user', 'metadata.user_id'],
  ['safety_identifier', 'metadata.user_id'],
  ['stop', 'stop_sequences'],
  ['parallel_tool_calls', 'tool_choice.disable_parallel_tool_use'],
  ['reasoning_effort', 'thinking'],
  ['response_format', 'output_config.format'],
  ['messages.reasoning_content', 'messages.thinking'],
])

/** Everything that was left out on the way, in the caller's words. */
export function droppedByTranslation(translation: readonly string[], vendor: readonly string[]): readonly string[] {
  return [...new Set([...translation, ...vendor.map((field) => CALLER_NAMES.get(field) ?? field)])]
}
