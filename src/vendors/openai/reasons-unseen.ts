import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'

/** Models that reason; chat completions never show it (OpenAI, "Reasoning models"). */
const REASONING_MODEL = /^(?:o\d|gpt-(?:[5-9]|\d\d))/
/** Of these, those that do not reason unless asked to (OpenAI, "Reasoning models", default efforts). */
const UNASKED_NONE = /^gpt-5\.[1-4](?:$|-(?!pro|codex))/

/** Does a model, by the vendor's own id, reason unseen for this request? */
export function reasonsUnseen(upstream: string, { reasoning_effort: effort }: ChatRequest): boolean {
  if (effort !== undefined && effort !== null) return effort !== 'none'
  return REASONING_MODEL.test(upstream) && !UNASKED_NONE.test(upstream)
}
