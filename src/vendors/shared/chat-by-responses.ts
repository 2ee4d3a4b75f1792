import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { asBuffer } from '../../wire/join-chunks.ts'
import type { ChatOperation } from '../vendor.ts'
import { bearerHeaders } from './bearer-headers.ts'
import { CompletionCollector } from './completion-collector.ts'
import { applyFieldRules } from './field-rules.ts'
import type { OpenAIResponsesDialect } from './openai-responses.ts'
import { ResponsesAnswerReader } from './responses-answer-reader.ts'
import { ResponsesChatDecoder } from './responses-chat-decoder.ts'
import { RESPONSES_PROTOCOL, responsesFromChat } from './responses-from-chat.ts'
import { withoutModeration } from './without-moderation.ts'

/**
 * Chat at a vendor that has both dialects: models whose row says that they have Responses only are asked by them, and so are chats
 * that `isRefused` says its chat completions refuse; all others as `chat` does. Nothing is stored at the vendor: the caller carries the
 * conversation, and the vendor's encrypted reasoning in it.
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
    toWire: (call) => at(call).toWire(call),
    fromWire: (answer, call) => at(call).fromWire(answer, call),
    decoder: (call, writer) => at(call).decoder(call, writer),
    reasonsUnseen: (call) => at(call).reasonsUnseen?.(call) ?? false,
    ...(passThrough === undefined
      ? {}
      : { passThrough: { ...passThrough, applies: (call) => at(call) === chat && passThrough.applies(call) } }),
  }
}

/** Chat at a server that has Responses and no chat completions. */
export function translatedChat(dialect: OpenAIResponsesDialect): ChatOperation {
  const { path, query = '', headers = bearerHeaders, allowsVendorObjects } = dialect
  return {
    protocol: RESPONSES_PROTOCOL,
    reasonsUnseen: ({ model, request }) => dialect.reasonsUnseen?.(model.upstream, request.reasoning_effort) ?? false,
    toWire(call) {
      const { request: plain, dropped: unread } =
        dialect.moderates === true ? { request: call.request, dropped: [] } : withoutModeration(call.request)
      const ruled = applyFieldRules(plain, dialect.chatRulesFor?.(call.model.upstream) ?? {})
      const asked = { ...call, request: (ruled.body as ChatRequest | undefined) ?? plain }
      const { request, dropped: lost } = responsesFromChat({ call: asked, allowsVendorObjects })
      const dropped = [...new Set([...unread, ...ruled.dropped, ...lost])]
      const accepted = call.stream ? 'text/event-stream' : 'application/json'
      return {
        path: `${path}${query}`,
        headers: headers(call.apiKey, accepted),
        body: JSON.stringify(request),
        dropped,
      }
    },
    fromWire(answer, call) {
      const response = parseVendorJson(asBuffer(answer.body).toString('utf8'))
      if (!isJsonObject(response) || response['object'] !== 'response' || !Array.isArray(response['output']))
        return undefined
      const { status } = response
      if (status !== 'completed' && status !== 'incomplete') return undefined
      const collector = new CompletionCollector()
      const reader = new ResponsesAnswerReader(collector, call)
      reader.read({ type: `response.${status}`, response })
      const completion = collector.completion(call, reader.usage)
      return completion === undefined ? undefined : { completion, usage: reader.usage }
    },
    decoder: (call, writer) => new ResponsesChatDecoder(call, writer, dialect),
  }
}
