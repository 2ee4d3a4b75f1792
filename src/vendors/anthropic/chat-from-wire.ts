import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { type ChatAnswerMessage, type ChatCompletion, chatUsage } from '../../endpoints/chat/chat-completion.ts'
import type { ChatRequest, ChatToolCall, ThinkingBlock } from '../../endpoints/chat/chat-request.ts'
import type { VendorCall, WireAnswer } from '../vendor.ts'
import { expectedAnswerTool } from './answer-format.ts'
import { usageFrom } from './messages-usage.ts'
import { finishReason, refusalText } from './stop-reason.ts'

interface AnswerParts {
  text: string
  reasoning: string
  readonly toolCalls: ChatToolCall[]
  readonly thinkingBlocks: ThinkingBlock[]
}

/** Reads a whole Messages answer as a chat completion. Undefined when it is no `message` object. */
export function chatFromWire(
  answer: WireAnswer,
  call: VendorCall<ChatRequest>,
): { completion: ChatCompletion; usage: Usage | undefined } | undefined {
  const body = parseVendorJson(new TextDecoder().decode(answer.body))
  if (!isJsonObject(body) || body['type'] !== 'message' || !Array.isArray(body['content'])) return undefined
  const parts = readBlocks(body['content'], expectedAnswerTool(call.request))
  const usage = usageFrom(body['usage'])
  const completion: ChatCompletion = {
    id: typeof body['id'] === 'string' ? body['id'] : '',
    object: 'chat.completion',
    created: Math.floor(call.nowMs / 1000),
    model: call.publicModel,
    choices: [
      {
        index: 0,
        message: messageFrom(parts, refusalText(body['stop_details'])),
        logprobs: null,
        finish_reason: finishReason(body['stop_reason'], parts.toolCalls.length > 0),
      },
    ],
    ...(usage === undefined ? {} : { usage: chatUsage(usage) }),
  }
  return { completion, usage }
}

function messageFrom(parts: AnswerParts, refusal: string | undefined): ChatAnswerMessage {
  const { text, reasoning, toolCalls, thinkingBlocks } = parts
  return {
    role: 'assistant',
    content: text === '' && toolCalls.length > 0 ? null : text,
    refusal: refusal ?? null,
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(thinkingBlocks.length === 0 ? {} : { thinking_blocks: thinkingBlocks }),
  }
}

// Blocks of other types (server tools, citations) have no place in a chat answer.
function readBlocks(content: readonly unknown[], answerTool: string | undefined): AnswerParts {
  const parts: AnswerParts = { text: '', reasoning: '', toolCalls: [], thinkingBlocks: [] }
  for (const block of content) {
    if (!isJsonObject(block)) continue
    const { type, text, thinking, signature, data, id, name, input } = block
    if (type === 'text' && typeof text === 'string') {
      parts.text += text
    } else if (type === 'tool_use' && typeof id === 'string' && typeof name === 'string') {
      const json = JSON.stringify(input ?? {})
      if (name === answerTool) parts.text += json
      else parts.toolCalls.push({ id, type: 'function', function: { name, arguments: json } })
    } else if (type === 'thinking' && typeof thinking === 'string') {
      parts.reasoning += thinking
      if (typeof signature === 'string' && signature !== '') {
        parts.thinkingBlocks.push({ type: 'thinking', thinking, signature })
      }
    } else if (type === 'redacted_thinking' && typeof data === 'string') {
      parts.thinkingBlocks.push({ type: 'redacted_thinking', data })
    }
  }
  return parts
}
