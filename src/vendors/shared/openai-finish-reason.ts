import type { FinishReason } from '../../endpoints/chat/chat-completion.ts'

// The five values of the dialect, and what servers that imitate it send instead.
const REASONS: ReadonlyMap<unknown, FinishReason> = new Map<unknown, FinishReason>([
  ['stop', 'stop'],
  ['length', 'length'],
  ['tool_calls', 'tool_calls'],
  ['content_filter', 'content_filter'],
  ['function_call', 'function_call'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['tool_use', 'tool_calls'],
  ['safety', 'content_filter'],
])

/** A vendor's finish reason as one of the five values; a word that is none of them never reaches callers. */
export function openaiFinishReason(value: unknown): FinishReason {
  return REASONS.get(value) ?? 'stop'
}
