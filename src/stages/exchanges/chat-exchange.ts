import { ChatChunkWriter } from '../../endpoints/chat/chat-chunk-writer.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { TranslatedChatStream } from '../../endpoints/chat/translated-chat-stream.ts'
import type { Vendor, VendorCall } from '../../vendors/vendor.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import type { VendorExchange } from './vendor-exchange.ts'

/** Chat at a vendor: bytes through where it speaks the caller's dialect, else by translation. */
export function chatExchange(vendor: Vendor, call: VendorCall<ChatRequest>): VendorExchange | undefined {
  const chat = vendor.chat
  if (chat === undefined) return undefined
  const requests = [chat.toWire(call)]
  const relay = chat.relay?.applies(call) === true ? chat.relay : undefined
  return {
    requests,
    whole([answer]) {
      if (answer === undefined) return undefined
      if (relay !== undefined) return relay.body(answer.chunks, call)
      const read = chat.fromWire({ ...answer, body: joinChunks(answer.chunks) }, call)
      return read === undefined
        ? undefined
        : { chunks: [Buffer.from(JSON.stringify(read.completion))], usage: read.usage }
    },
    stream() {
      if (relay?.stream !== undefined) return relay.stream(call)
      const writer = new ChatChunkWriter({ model: call.publicModel, createdSeconds: Math.floor(call.nowMs / 1000) })
      const includeUsage = call.request.stream_options?.include_usage === true
      return new TranslatedChatStream({
        decoder: chat.decoder(call, writer),
        writer,
        includeUsage,
        costOf: call.costOf,
      })
    },
  }
}
