import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject } from '../../core/json.ts'
import { usedOf } from '../../core/usage.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { asBuffer } from '../../wire/join-chunks.ts'
import type { ChatOperation, WireAnswer } from '../vendor.ts'
import { bearerHeaders } from './bearer-headers.ts'
import { CompletionCollector } from './completion-collector.ts'
import { applyFieldRules } from './field-rules.ts'
import { invalidResponse } from './invalid-response.ts'
import type { OpenAIResponsesDialect } from './openai-responses.ts'
import { responsesUsage } from './openai-responses-usage.ts'
import { ResponsesAnswerReader } from './responses-answer-reader.ts'
import { ResponsesChatDecoder } from './responses-chat-decoder.ts'
import { RESPONSES_PROTOCOL, responsesFromChat } from './responses-from-chat.ts'
import { withoutModeration } from './without-moderation.ts'

/**
 * Creates chat for a vendor with both dialects. Responses are used for models whose row requires them, and for chats that
 * `isRefused` says chat completions reject; `chat` handles all others. Nothing is stored at the vendor: the caller carries the
 * conversation, including the vendor's encrypted reasoning.
 */
export function chatByResponses(
  chat: ChatOperation,
  dialect: OpenAIResponsesDialect,
  isRefused?: (upstream: string, request: ChatRequest) => boolean,
): ChatOperation {
  const translated = translatedChat(dialect)
  const at = ({ model, request }: Parameters<ChatOperation['toWire']>[0]): ChatOperation =>
    model.protocol === RESPONSES_PROTOCOL || isRefused?.(model.upstream, request) === true ? translated : chat
  const { passThrough } = chat
  return {
    ...chat,
    protocols: [RESPONSES_PROTOCOL],
    toWire: (call) => at(call).toWire(call),
    fromWire: (answer, call) => at(call).fromWire(answer, call),
    brokenAnswer: (answer, call) => at(call).brokenAnswer?.(answer, call),
    decoder: (call, writer) => at(call).decoder(call, writer),
    reasonsUnseen: (call) => at(call).reasonsUnseen?.(call) ?? false,
    ...(passThrough === undefined
      ? {}
      : { passThrough: { ...passThrough, applies: (call) => at(call) === chat && passThrough.applies(call) } }),
  }
}

/** Creates chat for a server with Responses but without chat completions. */
export function translatedChat(dialect: OpenAIResponsesDialect): ChatOperation {
  const { path, query = '', headers = bearerHeaders } = dialect
  return {
    protocol: RESPONSES_PROTOCOL,
    protocols: [RESPONSES_PROTOCOL],
    abilities: ({ efforts }) => ({ efforts }),
    reasonsUnseen: ({ model, request }) => dialect.reasonsUnseen?.(model.upstream, request.reasoning_effort) ?? false,
    toWire(call) {
      const { request: plain, dropped: unread } =
        dialect.moderates === true ? { request: call.request, dropped: [] } : withoutModeration(call.request)
      const ruled = applyFieldRules(plain, dialect.chatRulesFor?.(call.model.upstream) ?? {})
      const asked = { ...call, request: (ruled.body as ChatRequest | undefined) ?? plain }
      const { request, dropped: lost } = responsesFromChat({ call: asked })
      const dropped = [...new Set([...unread, ...ruled.dropped, ...lost])]
      const accepted = call.stream ? 'text/event-stream' : 'application/json'
      return {
        path: `${path}${query}`,
        headers: headers(call.apiKey, accepted),
        body: exactJsonText(request),
        dropped,
      }
    },
    fromWire(answer, call) {
      const response = responseIn(answer)
      if (response === undefined || !Array.isArray(response['output'])) return undefined
      const { status } = response
      if (status !== 'completed' && status !== 'incomplete') return undefined
      const collector = new CompletionCollector()
      const reader = new ResponsesAnswerReader(collector, call)
      reader.read({ type: `response.${status}`, response })
      const completion = collector.completion(call, reader.usage)
      return completion === undefined ? undefined : { completion, usage: reader.usage }
    },
    // A response that failed or was cut reports its usage.
    brokenAnswer(answer, call) {
      const response = responseIn(answer)
      const usage = response && usedOf(responsesUsage(response, call.request['service_tier']))
      if (response === undefined || usage === undefined) return undefined
      const { status, error } = response
      // A response that breaks off without an error is not retried.
      const hasFailed = status === 'failed' || isJsonObject(error)
      const failure = hasFailed ? dialect.streamFailure({ error }) : invalidResponse('the response is incomplete')
      return { failure: { ...failure, status: answer.status }, usage }
    },
    decoder: (call, writer) => new ResponsesChatDecoder(call, writer, dialect),
  }
}

function responseIn(answer: WireAnswer): Record<string, unknown> | undefined {
  const response = parseAnswerJson(asBuffer(answer.body).toString('utf8'))
  return isJsonObject(response) && response['object'] === 'response' ? response : undefined
}
