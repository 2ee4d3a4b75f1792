import { isJsonObject } from '../../core/json.ts'
import type { FinishReason } from '../../endpoints/chat/chat-completion.ts'

const FINISH_REASONS: ReadonlyMap<unknown, FinishReason> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['pause_turn', 'stop'],
  ['tool_use', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'content_filter'],
])

/**
 * Maps a `stop_reason`; an unknown one is a plain stop, its word never leaves. A stop with tool calls is `tool_calls` whatever
 * the vendor says, because agents act on nothing else; `tool_use` without any is a JSON answer that came through a tool.
 */
export function finishReason(stopReason: unknown, hasToolCalls: boolean): FinishReason {
  const reason = FINISH_REASONS.get(stopReason) ?? 'stop'
  return reason === 'stop' && hasToolCalls ? 'tool_calls' : reason
}

/** The vendor's explanation of a refusal, from `stop_details`. */
export function refusalText(stopDetails: unknown): string | undefined {
  if (!isJsonObject(stopDetails) || stopDetails['type'] !== 'refusal') return undefined
  const { explanation } = stopDetails
  return typeof explanation === 'string' && explanation !== '' ? explanation : undefined
}
