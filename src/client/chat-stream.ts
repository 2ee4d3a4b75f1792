import type { ChatUsage, FinishReason } from '../endpoints/chat/chat-completion.ts'
import type { OpenAnswer } from './connection.ts'
import { type EventStream, eventStream } from './event-stream.ts'

/** One chunk of a streamed chat. */
export interface ChatChunk {
  readonly id: string
  readonly object: 'chat.completion.chunk'
  /** Unix seconds. */
  readonly created: number
  readonly model: string
  /** Empty in the last chunk, which carries the usage when `stream_options.include_usage` asks for it. */
  readonly choices: readonly {
    readonly index: number
    readonly delta: {
      readonly role?: 'assistant'
      readonly content?: string | null
      readonly refusal?: string | null
      readonly reasoning_content?: string
      readonly tool_calls?: readonly {
        readonly index: number
        readonly id?: string
        readonly function?: { readonly name?: string; readonly arguments?: string }
      }[]
    }
    readonly finish_reason: FinishReason | null
  }[]
  readonly usage?: ChatUsage | null
}

/** A streamed chat: iterate it once. Leaving the loop, or `abort`, ends the call at the vendor too. */
export type ChatStream = EventStream<ChatChunk>

/** Reads a streamed chat, which ends with `[DONE]`. */
export function chatStream(answer: OpenAnswer): ChatStream {
  return eventStream<ChatChunk>(answer, {
    isEnd: ({ data }) => data === '[DONE]',
    givesEnd: false,
    isError: (chunk) => 'error' in chunk,
  })
}
