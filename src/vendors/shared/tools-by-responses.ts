import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { searchParam } from '../../endpoints/chat/chat-surcharges.ts'
import { reasonsUnseen } from './reasons-unseen.ts'

/** From gpt-5.4 on, including fine-tuned models. Azure writes gpt-3.5-turbo as `gpt-35-turbo`. */
const MODEL = /^(?:ft:)?gpt-(?:5\.(?:[4-9]|\d\d)|[6-9]|[12]\d)/

/**
 * Whether a model, by the vendor's own id, accepts this chat's functions only through Responses. Chat completions answer 400 to
 * functions together with reasoning, even at the default effort: "Function tools with reasoning_effort are not supported for
 * gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead." (https://github.com/openai/openai-openapi/issues/541; for a
 * default effort https://github.com/danny-avila/LibreChat/issues/14355).
 */
export function takesToolsByResponses(upstream: string, chat: ChatRequest): boolean {
  const { tools } = chat
  if (!Array.isArray(tools) || !tools.some(({ type }) => type === 'function')) return false
  // Without a protocol in the model's row, one search is charged, but Responses may make many, so such a chat stays rejected.
  return MODEL.test(upstream) && reasonsUnseen(upstream, chat) && searchParam(chat) === undefined
}
