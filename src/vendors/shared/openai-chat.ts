import type { ChatOperation } from '../vendor.ts'
import { relayChatBody } from './openai-chat-body-relay.ts'
import { OpenAIChatDecoder } from './openai-chat-decoder.ts'
import type { OpenAIChatDialect } from './openai-chat-dialect.ts'
import { openaiChatFromWire } from './openai-chat-from-wire.ts'
import { openaiChatToWire } from './openai-chat-request.ts'
import { OpenAIChatStreamRelay } from './openai-chat-stream-relay.ts'

/** Chat at a server that speaks OpenAI's chat completions dialect: relayed to callers of the same dialect. */
export function openaiChat(dialect: OpenAIChatDialect): ChatOperation {
  return {
    toWire: (call) => openaiChatToWire(call, dialect),
    fromWire: openaiChatFromWire,
    decoder: (call, writer) => new OpenAIChatDecoder(call, writer, dialect),
    relay: {
      applies: () => true,
      body: relayChatBody,
      stream: (call) => new OpenAIChatStreamRelay(call, dialect),
    },
  }
}
