import { ChatChunkWriter, TranslatedChatStream } from '../../endpoints/chat/chat-chunk-writer.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type {
  AnswerStream,
  ChatOperation,
  Relay,
  RelayedBody,
  Vendor,
  VendorCall,
  WireRequest,
} from '../../vendors/vendor.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import type { ChunkedAnswer, VendorExchange } from './vendor-exchange.ts'

/** Chat at a vendor: bytes through where it speaks the caller's dialect, else by translation. */
export function chatExchange(vendor: Vendor, call: VendorCall<ChatRequest>): VendorExchange | undefined {
  const chat = vendor.chat
  if (chat === undefined) return undefined
  return new ChatExchange(chat, call)
}

class ChatExchange implements VendorExchange {
  readonly requests: readonly WireRequest[]
  readonly #chat: ChatOperation
  readonly #call: VendorCall<ChatRequest>
  readonly #relay: Relay<ChatRequest> | undefined

  constructor(chat: ChatOperation, call: VendorCall<ChatRequest>) {
    this.requests = [chat.toWire(call)]
    this.#chat = chat
    this.#call = call
    this.#relay = chat.relay?.applies(call) === true ? chat.relay : undefined
  }

  whole([answer]: readonly ChunkedAnswer[]): RelayedBody | undefined {
    if (answer === undefined) return undefined
    if (this.#relay !== undefined) return this.#relay.body(answer.chunks, this.#call)
    const read = this.#chat.fromWire({ ...answer, body: joinChunks(answer.chunks) }, this.#call)
    return read === undefined
      ? undefined
      : { chunks: [Buffer.from(JSON.stringify(read.completion))], usage: read.usage }
  }

  stream(): AnswerStream {
    const call = this.#call
    if (this.#relay?.stream !== undefined) return this.#relay.stream(call)
    const writer = new ChatChunkWriter({ model: call.publicModel, createdSeconds: Math.floor(call.nowMs / 1000) })
    return new TranslatedChatStream({
      decoder: this.#chat.decoder(call, writer),
      writer,
      includeUsage: call.request.stream_options?.include_usage === true,
      costOf: call.costOf,
    })
  }
}
