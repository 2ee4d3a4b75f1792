import type { ChatUsage, FinishReason } from '../endpoints/chat/chat-completion.ts'
import { type ServerSentEvent, sseReader } from '../wire/sse.ts'
import { errorOf } from './client-error.ts'

/** One chunk of a streamed chat. */
export interface ChatChunk {
  readonly id: string
  readonly object: 'chat.completion.chunk'
  readonly created: number
  readonly model: string
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
export interface ChatStream extends AsyncIterable<ChatChunk> {
  abort(): void
}

/**
 * Reads a streamed answer.
 * @throws GatewayError while iterating, for an error event, and for a stream that ends without its end mark.
 */
export function chatStream(response: Response): ChatStream {
  const reader = response.body?.getReader()
  let isDone = false
  const pending: ServerSentEvent[] = []
  const events = sseReader((event) => pending.push(event))

  async function* chunks(): AsyncGenerator<ChatChunk> {
    try {
      while (reader !== undefined && !isDone) {
        const { value, done } = await reader.read()
        if (value !== undefined) events.push(value)
        if (done) events.end()
        for (const { data } of pending.splice(0)) {
          if (data === '[DONE]') {
            isDone = true
            break
          }
          const chunk = JSON.parse(data) as ChatChunk | { error: unknown }
          if ('error' in chunk) throw errorOf(chunk, 502)
          yield chunk
        }
        if (done && !isDone) throw errorOf({ message: 'The stream ended before the answer was complete.' }, 502)
      }
    } finally {
      await reader?.cancel()
    }
  }
  return {
    [Symbol.asyncIterator]: chunks,
    abort: () => void reader?.cancel(),
  }
}
