import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'

/**
 * Models that reason, including fine-tuned ones. Chat completions never show it (OpenAI, "Reasoning models",
 * https://developers.openai.com/api/docs/guides/reasoning). `gpt-5-chat-latest` does not reason.
 */
const REASONING_MODEL = /^(?:ft:)?(?:o\d|gpt-(?:[5-9]|[12]\d)(?!-chat))/
/**
 * Reasoning models that do not reason by default: from gpt-5.1 to 5.4 the default effort is `none`, before and after it is
 * `medium`, and of `-pro` models `high` (OpenAI, API reference, `reasoning_effort`; Azure, type `ReasoningEffort`, for gpt-5.1 and
 * before; https://www.zansara.dev/posts/2026-05-26-reasoning-effort-across-gpt-5.x/ for the change with gpt-5.5). The `-codex` and
 * `-chat` models of these versions were measured at `medium` (https://qiita.com/hanaya/items/51720cb429d543874abe), so they count
 * as reasoning.
 */
const UNASKED_NONE = /^(?:ft:)?gpt-5\.[1-4](?:$|[:-](?!pro|codex|chat))/

/** Whether a model, by the vendor's own id, reasons invisibly for this request. */
export function reasonsUnseen(upstream: string, { reasoning_effort: effort }: ChatRequest): boolean {
  return effortUnseen(upstream, effort)
}

/** Whether a model reasons invisibly at the requested effort. */
export function effortUnseen(upstream: string, effort: string | null | undefined): boolean {
  if (effort !== undefined && effort !== null) return effort !== 'none'
  return REASONING_MODEL.test(upstream) && !UNASKED_NONE.test(upstream)
}
