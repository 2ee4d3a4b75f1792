import type { CatalogModel } from '../../catalog/model.ts'
import { showsThinking } from '../../endpoints/messages/chat-request-from-messages.ts'
import { type MessageFacts, messageFromCompletion } from '../../endpoints/messages/message-from-completion.ts'
import type { MessagesCall } from '../../endpoints/messages/messages-call.ts'
import type { MessagesRequest } from '../../endpoints/messages/messages-request.ts'
import { MessagesStreamWriter, TranslatedMessagesStream } from '../../endpoints/messages/messages-stream-writer.ts'
import type { ChatOperation, MessagesOperation, Vendor, VendorCall } from '../../vendors/vendor.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import { countTokensExchange } from './count-tokens-exchange.ts'
import { droppedByTranslation, translatedCall } from './messages-translation.ts'
import type { VendorExchange } from './vendor-exchange.ts'

/**
 * Messages at a vendor: bytes through where it speaks the dialect, else by translation into chat and back; and the count of a
 * request's tokens.
 * @throws GatewayError `unsupported_parameter` or `invalid_request` naming what cannot be translated.
 */
export function messagesExchange(vendor: Vendor, call: VendorCall<MessagesCall>): VendorExchange | undefined {
  const { aim, request } = call.request
  const asked = { ...call, request, publicModel: modelAsCalled(call.model, request) }
  if (aim === 'token_count') return countTokensExchange(vendor, asked, call)
  if (vendor.messages !== undefined) return relayed(vendor.messages, asked)
  return vendor.chat === undefined ? undefined : translated(vendor.chat, asked, call)
}

/** Callers read the id that they wrote, be it an alias; of a fallback its own. */
function modelAsCalled(model: CatalogModel, request: MessagesRequest): string {
  return model.aliases.includes(request.model) ? request.model : model.id
}

function relayed(operation: MessagesOperation, call: VendorCall<MessagesRequest>): VendorExchange {
  return {
    requests: [operation.toWire(call)],
    whole: ([answer]) => (answer === undefined ? undefined : operation.fromWire(answer.chunks, call)),
    stream: () => operation.stream(call),
  }
}

function translated(
  chat: ChatOperation,
  asked: VendorCall<MessagesRequest>,
  call: VendorCall<MessagesCall>,
): VendorExchange {
  const { chatCall, dropped } = translatedCall(asked, call)
  const wire = chat.toWire(chatCall)
  const { publicModel: model, nowMs } = asked
  const facts: MessageFacts = { model, nowMs, showsThinking: showsThinking(asked.request) }
  return {
    requests: [{ ...wire, dropped: droppedByTranslation(dropped, wire.dropped) }],
    whole([answer]) {
      if (answer === undefined) return undefined
      const read = chat.fromWire({ ...answer, body: joinChunks(answer.chunks) }, chatCall)
      if (read === undefined) return undefined
      const message = messageFromCompletion(read.completion, read.usage, facts)
      return { chunks: [Buffer.from(JSON.stringify(message))], usage: read.usage }
    },
    stream() {
      const writer = new MessagesStreamWriter(facts)
      return new TranslatedMessagesStream(chat.decoder(chatCall, writer), writer)
    },
  }
}
