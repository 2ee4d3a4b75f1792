import { isJsonObject } from '../../core/json.ts'
import { CARRIED_MARK } from '../../endpoints/messages/carried-state.ts'

/**
 * Does a conversation hold reasoning that Anthropic has signed? It is read by Anthropic alone (Messages API, "Extended
 * thinking"). Takes a chat request, with the blocks beside the text, or a Messages call, with the blocks in it.
 */
export function madeTurns(call: {
  readonly model: string
  readonly request?: unknown
  readonly messages?: unknown
}): boolean {
  const conversation = isJsonObject(call.request) ? call.request['messages'] : call.messages
  return Array.isArray(conversation) && conversation.some(holdsSignedThinking)
}

function holdsSignedThinking(message: unknown): boolean {
  if (!isJsonObject(message)) return false
  return isSignedList(message['thinking_blocks']) || isSignedList(message['content'])
}

function isSignedList(blocks: unknown): boolean {
  return Array.isArray(blocks) && blocks.some(isSignedThinking)
}

function isSignedThinking(block: unknown): boolean {
  if (!isJsonObject(block)) return false
  const { type, signature } = block
  if (type === 'redacted_thinking') return true
  // State of another vendor travels in such a block too, under a mark of ours.
  return type === 'thinking' && typeof signature === 'string' && signature !== '' && !signature.startsWith(CARRIED_MARK)
}
