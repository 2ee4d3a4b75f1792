import type { ChatUsage, FinishReason } from '../endpoints/chat/chat-completion.ts'
import type { OpenAnswer } from './connection.ts'
import { type EventStream, eventStream } from './event-stream.ts'
import type { MessageEvent } from './message-types.ts'

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

/** Streamed pictures: iterate them once. Leaving the loop, or `abort`, ends the call at the vendor too. */
export type ImageStream<Event> = EventStream<Event>

/** The names by which the two shapes that stream call their events. */
interface NamedEvent {
  readonly type?: unknown
  readonly event_type?: unknown
}

/**
 * Reads streamed pictures of either shape. The interactions shape ends with `[DONE]`. OpenAI's has no mark of its end, and a
 * vendor may make fewer pictures than were asked for, so it is whole when it ends after a complete one.
 */
export function imageStream(answer: OpenAnswer): ImageStream<NamedEvent> {
  return eventStream<NamedEvent>(answer, {
    isEnd: ({ data }) => data === '[DONE]',
    givesEnd: false,
    isError: (event) => 'error' in event,
    isComplete: ({ type, event_type: name = type }) => typeof name === 'string' && name.endsWith('.completed'),
  })
}

/** A streamed message: iterate it once. Leaving the loop, or `abort`, ends the call at the vendor too. */
export type MessageStream = EventStream<MessageEvent>

/** Reads a streamed message, which ends with `message_stop`. */
export function messageStream(answer: OpenAnswer): MessageStream {
  return eventStream<MessageEvent>(answer, {
    isEnd: ({ event }) => event === 'message_stop',
    givesEnd: true,
    isError: (event) => (event.type as string) === 'error',
  })
}

/** An event of streamed speech (OpenAI API, "Speech events"): a piece of the file in base64, and the end. */
export type SpeechEvent =
  | { readonly type: 'speech.audio.delta'; readonly audio: string }
  | {
      readonly type: 'speech.audio.done'
      readonly usage: {
        readonly input_tokens: number
        readonly output_tokens: number
        readonly total_tokens: number
        /** Characters of the text: what is charged for. */
        readonly characters?: number
      }
    }

/** Streamed speech: iterate it once. Leaving the loop, or `abort`, ends the call at the vendor too. */
export type SpeechStream = EventStream<SpeechEvent>

/** Reads speech that comes in events, which end with `speech.audio.done`. */
export function speechStream(answer: OpenAnswer): SpeechStream {
  return eventStream<SpeechEvent>(answer, {
    isEnd: ({ data }) => data === '[DONE]',
    givesEnd: false,
    isError: (event) => 'error' in event,
    isComplete: ({ type }) => type === 'speech.audio.done',
  })
}
