import type { ChatMessage } from '../../endpoints/chat/chat-request.ts'
import { signatureOf } from './thought-signature.ts'

/**
 * Does a conversation hold thoughts that Gemini has signed? It is read by Gemini alone (Gemini API, "Thought signatures").
 * They stand on messages and on their calls of functions.
 */
export function madeTurns(call: { readonly model: string; readonly messages?: unknown }): boolean {
  return Array.isArray(call.messages) && (call.messages as readonly ChatMessage[]).some(isSigned)
}

function isSigned(message: ChatMessage): boolean {
  if (signatureOf(message.extra_content) !== undefined) return true
  return message.tool_calls?.some((toolCall) => signatureOf(toolCall.extra_content) !== undefined) === true
}
