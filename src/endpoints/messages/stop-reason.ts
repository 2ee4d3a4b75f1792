import type { FinishReason } from '../chat/chat-completion.ts'

/** Why a message ended, as far as other vendors can tell (Anthropic, "Handling stop reasons"). */
export type StopReason = 'end_turn' | 'max_tokens' | 'tool_use' | 'refusal'

/** Maps a finish reason. A whole answer with tool calls ends with `tool_use` whatever the vendor says: agents act on nothing else. */
export function stopReason(reason: FinishReason, hasToolCalls: boolean): StopReason {
  if (reason === 'length') return 'max_tokens'
  if (reason === 'content_filter') return 'refusal'
  return hasToolCalls ? 'tool_use' : 'end_turn'
}
