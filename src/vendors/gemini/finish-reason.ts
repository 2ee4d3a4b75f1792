import type { FinishReason } from '../../endpoints/chat/chat-completion.ts'

/**
 * Why a candidate stopped (Gemini API, "FinishReason"). `OTHER` and its like are answers that the vendor withheld without
 * saying why.
 */
const FINISH_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['STOP', 'stop'],
  ['MAX_TOKENS', 'length'],
  ['CONTINUATION', 'length'],
  ['SAFETY', 'content_filter'],
  ['RECITATION', 'content_filter'],
  ['BLOCKLIST', 'content_filter'],
  ['PROHIBITED_CONTENT', 'content_filter'],
  ['SPII', 'content_filter'],
  ['IMAGE_SAFETY', 'content_filter'],
  ['IMAGE_PROHIBITED_CONTENT', 'content_filter'],
  ['IMAGE_RECITATION', 'content_filter'],
  ['LANGUAGE', 'content_filter'],
  ['OTHER', 'content_filter'],
  ['NO_IMAGE', 'content_filter'],
  ['IMAGE_OTHER', 'content_filter'],
])

/** Reasons for which what the model wrote is of no use to anybody; another attempt may do better. */
const BROKEN: ReadonlySet<string> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'MALFORMED_RESPONSE',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MISSING_THOUGHT_SIGNATURE',
])

/** The neutral reason; the vendor has none of its own for tool calls. Reasons that are new to us count as `STOP`. */
export function finishReason(reason: string, hasToolCalls: boolean): FinishReason {
  const known = FINISH_REASONS.get(reason) ?? 'stop'
  return known === 'stop' && hasToolCalls ? 'tool_calls' : known
}

/** Does this reason mean that the answer failed? */
export function isBrokenFinish(reason: unknown): reason is string {
  return typeof reason === 'string' && BROKEN.has(reason)
}

/** Is this a reason to block a prompt? The unspecified value is none. */
export function blocksPrompt(blockReason: unknown): boolean {
  return typeof blockReason === 'string' && blockReason !== '' && blockReason !== 'BLOCK_REASON_UNSPECIFIED'
}
