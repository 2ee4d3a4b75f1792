import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import type { ChatAnswerMessage, ChatCompletion, ChatUsage } from '../../endpoints/chat/chat-completion.ts'
import type { ChatRequest, ChatToolCall, ExtraContent } from '../../endpoints/chat/chat-request.ts'
import type { VendorCall, WireAnswer } from '../vendor.ts'
import { asBuffer } from './json-bytes.ts'
import { readCompletion } from './openai-chat-body.ts'
import { openaiFinishReason } from './openai-finish-reason.ts'
import { openaiUsage } from './openai-usage.ts'

/** Reads a whole answer of the dialect into the neutral form. Undefined when it is not a chat completion. */
export function openaiChatFromWire(
  answer: WireAnswer,
  call: VendorCall<ChatRequest>,
): { completion: ChatCompletion; usage: Usage | undefined } | undefined {
  const body = readCompletion(asBuffer(answer.body).toString('utf8'))
  if (body === undefined) return undefined
  const usage = openaiUsage(body['usage'])
  const completion: ChatCompletion = {
    id: typeof body['id'] === 'string' ? body['id'] : '',
    object: 'chat.completion',
    created: typeof body['created'] === 'number' ? body['created'] : Math.floor(call.nowMs / 1000),
    model: call.publicModel,
    choices: body.choices.map((choice, position) => ({
      index: typeof choice['index'] === 'number' ? choice['index'] : position,
      message: answerMessage(choice.message),
      logprobs: choice['logprobs'] ?? null,
      finish_reason: openaiFinishReason(choice['finish_reason']),
    })),
  }
  const chatUsage = usage === undefined ? undefined : chatUsageOf(usage)
  if (chatUsage !== undefined) completion.usage = chatUsage
  return { completion, usage }
}

/** The reasoning text of a message or delta, under either of the names that vendors use. */
export function reasoningText(message: Record<string, unknown>): string {
  const text = message['reasoning_content'] ?? message['reasoning']
  return typeof text === 'string' ? text : ''
}

function answerMessage(wire: Record<string, unknown>): ChatAnswerMessage {
  const message: ChatAnswerMessage = {
    role: 'assistant',
    content: typeof wire['content'] === 'string' ? wire['content'] : null,
    refusal: typeof wire['refusal'] === 'string' ? wire['refusal'] : null,
  }
  const toolCalls = Array.isArray(wire['tool_calls']) ? wire['tool_calls'].filter(isJsonObject).map(toolCall) : []
  if (toolCalls.length > 0) message.tool_calls = toolCalls
  const reasoning = reasoningText(wire)
  if (reasoning !== '') message.reasoning_content = reasoning
  if (isJsonObject(wire['extra_content'])) message.extra_content = wire['extra_content'] as ExtraContent
  return message
}

function toolCall(wire: Record<string, unknown>, position: number): ChatToolCall {
  const definition = isJsonObject(wire['function']) ? wire['function'] : {}
  const call: ChatToolCall = {
    id: typeof wire['id'] === 'string' && wire['id'] !== '' ? wire['id'] : `call_${position}`,
    type: 'function',
    function: {
      name: typeof definition['name'] === 'string' ? definition['name'] : '',
      arguments: typeof definition['arguments'] === 'string' ? definition['arguments'] : '',
    },
  }
  if (isJsonObject(wire['extra_content'])) call.extra_content = wire['extra_content'] as ExtraContent
  return call
}

/** Undefined unless the vendor gave both totals: an answer never states tokens that nobody counted. */
function chatUsageOf(usage: Usage): ChatUsage | undefined {
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens } = usage
  if (inputTokens === undefined || outputTokens === undefined) return undefined
  const chat: ChatUsage = {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  }
  if (cachedInputTokens !== undefined || cacheWriteTokens !== undefined) {
    chat.prompt_tokens_details = {
      ...(cachedInputTokens === undefined ? {} : { cached_tokens: cachedInputTokens }),
      ...(cacheWriteTokens === undefined ? {} : { cache_write_tokens: cacheWriteTokens }),
    }
  }
  if (reasoningTokens !== undefined) chat.completion_tokens_details = { reasoning_tokens: reasoningTokens }
  return chat
}
