import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { asBuffer } from '../../wire/join-chunks.ts'
import type { ChatOperation } from '../vendor.ts'
import { bearerHeaders } from './bearer-headers.ts'
import { CompletionCollector } from './completion-collector.ts'
import type { OpenAIResponsesDialect } from './openai-responses.ts'
import { ResponsesAnswerReader } from './responses-answer-reader.ts'
import { ResponsesChatDecoder } from './responses-chat-decoder.ts'
import { responsesFromChat } from './responses-from-chat.ts'
import { withoutModeration } from './without-moderation.ts'

/** The `protocol` in the catalog of chat models that their vendor offers by Responses only. */
export const RESPONSES_PROTOCOL = 'responses'

/**
 * Chat at a vendor that has both dialects: models whose row says that they have Responses only are asked by them, all others as
 * `chat` does. Nothing is stored at the vendor: the caller carries the conversation, and the vendor's encrypted reasoning in it.
 */
export function chatByResponses(chat: ChatOperation, dialect: OpenAIResponsesDialect): ChatOperation {
  const translated = translatedChat(dialect)
  const at = ({ model }: Parameters<ChatOperation['toWire']>[0]): ChatOperation =>
    model.protocol === RESPONSES_PROTOCOL ? translated : chat
  const { passThrough, takesCacheControl } = chat
  return {
    ...chat,
    toWire: (call) => at(call).toWire(call),
    fromWire: (answer, call) => at(call).fromWire(answer, call),
    decoder: (call, writer) => at(call).decoder(call, writer),
    reasonsUnseen: (call) => at(call).reasonsUnseen?.(call) ?? false,
    ...(takesCacheControl === undefined
      ? {}
      : { takesCacheControl: (model) => model.protocol !== RESPONSES_PROTOCOL && takesCacheControl(model) }),
    ...(passThrough === undefined
      ? {}
      : { passThrough: { ...passThrough, applies: (call) => at(call) === chat && passThrough.applies(call) } }),
  }
}

function translatedChat(dialect: OpenAIResponsesDialect): ChatOperation {
  const { path, query = '', headers = bearerHeaders, allowsVendorObjects } = dialect
  return {
    reasonsUnseen: ({ model, request }) => dialect.reasonsUnseen?.(model.upstream, request.reasoning_effort) ?? false,
    toWire(call) {
      const unmoderated = dialect.moderates === true ? undefined : withoutModeration(call.request)
      const asked = unmoderated === undefined ? call : { ...call, request: unmoderated.request }
      const { request, dropped: lost } = responsesFromChat({ call: asked, allowsVendorObjects })
      const dropped = unmoderated === undefined ? lost : [...unmoderated.dropped, ...lost]
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
