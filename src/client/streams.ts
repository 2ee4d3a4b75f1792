import type { ChatUsage, FinishReason } from '../endpoints/chat/chat-completion.ts'
import type { OpenResponse } from './connection.ts'
import { type EventStream, eventStream } from './event-stream.ts'
import type { MessageEvent } from './message-types.ts'
import type { TranscriptionAnswer, TranscriptionUsage } from './models/transcription-models.ts'
import type { ResponseEvent } from './response-types.ts'

/** One chunk of a streamed chat. */
export interface ChatChunk {
  readonly id: string
  readonly object: 'chat.completion.chunk'
  /** Creation time in Unix seconds. */
  readonly created: number
  readonly model: string
  /** Empty in the last chunk, which has the usage if `stream_options.include_usage` requests it. */
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
export function chatStream(answer: OpenResponse): ChatStream {
  return eventStream<ChatChunk>(answer)
}

/** Streamed images: iterate them once. Leaving the loop, or `abort`, ends the call at the vendor too. */
export type ImageStream<Event> = EventStream<Event>

/** Names of events in the two shapes that stream. */
interface NamedEvent {
  readonly type?: unknown
  readonly event_type?: unknown
}

/**
 * Reads streamed images of either shape. The interactions shape ends with `[DONE]`. OpenAI's shape has no end mark, and a vendor may
 * return fewer images than requested, so a stream is complete if it ends after a complete image.
 */
export function imageStream(answer: OpenResponse): ImageStream<NamedEvent> {
  return eventStream<NamedEvent>(answer, {
    isComplete: ({ type, event_type: name = type }) => typeof name === 'string' && name.endsWith('.completed'),
  })
}

/** A streamed message: iterate it once. Leaving the loop, or `abort`, ends the call at the vendor too. */
export type MessageStream = EventStream<MessageEvent>

/** Reads a streamed message, which ends with `message_stop`. */
export function messageStream(answer: OpenResponse): MessageStream {
  return eventStream<MessageEvent>(answer, {
    endEvent: 'message_stop',
    errorIn: (event) => ((event.type as string) === 'error' ? event : undefined),
  })
}

/** A streamed response: iterate it once. Leaving the loop, or `abort`, ends the call at the vendor too. */
export type ResponseStream = EventStream<ResponseEvent>

/** Events that end a response without success. Both are thrown, so callers never see them. */
type FailureEvent =
  | { readonly type: 'error'; readonly code?: unknown; readonly message?: unknown; readonly param?: unknown }
  | { readonly type: 'response.failed'; readonly response: { readonly error?: unknown } }

/** Reads a streamed response. Its body ends after the event with the whole response. */
export function responseStream(answer: OpenResponse): ResponseStream {
  return eventStream<ResponseEvent>(answer, {
    isComplete: ({ type }) => type === 'response.completed' || type === 'response.incomplete',
    errorIn: responseFailure,
  })
}

function responseFailure(event: ResponseEvent | FailureEvent): object | undefined {
  if (event.type === 'response.failed') return { error: event.response?.error ?? {} }
  if (event.type !== 'error') return undefined
  const { type: _name, ...error } = event
  return error
}

/** An event of streamed speech (OpenAI API, "Speech events"): a base64 chunk of the file, or the end. */
export type SpeechEvent =
  | { readonly type: 'speech.audio.delta'; readonly audio: string }
  | {
      readonly type: 'speech.audio.done'
      readonly usage: {
        readonly input_tokens: number
        readonly output_tokens: number
        readonly total_tokens: number
        /** Number of characters that are charged. */
        readonly characters?: number
      }
    }

/** Streamed speech: iterate it once. Leaving the loop, or `abort`, ends the call at the vendor too. */
export type SpeechStream = EventStream<SpeechEvent>

/** Reads speech events, which end with `speech.audio.done`. */
export function speechStream(answer: OpenResponse): SpeechStream {
  return eventStream<SpeechEvent>(answer, {
    isComplete: ({ type }) => type === 'speech.audio.done',
  })
}

/** An event of a streamed transcript (OpenAI API, "Transcription events"). */
export type TranscriptionEvent =
  | { readonly type: 'transcript.text.delta'; readonly delta: string; readonly segment_id?: string }
  | {
      readonly type: 'transcript.text.segment'
      readonly id: string
      /** Seconds from the beginning. */
      readonly start: number
      readonly end: number
      readonly text: string
      readonly speaker: string
    }
  | { readonly type: 'transcript.text.done'; readonly text: string; readonly usage?: TranscriptionUsage }

/** A streamed transcript: iterate it once. Leaving the loop, or `abort`, ends the call at the vendor too. */
export type TranscriptionStream = EventStream<TranscriptionEvent>

/** Reads a streamed transcript, which ends with `transcript.text.done`. A model that does not stream sends only that event. */
export function transcriptionStream(answer: OpenResponse): TranscriptionStream {
  return eventStream<TranscriptionEvent>(answer, {
    isComplete: ({ type }) => type === 'transcript.text.done',
    itemOfWhole: wholeTranscript,
  })
}

function wholeTranscript(text: string, mediaType: string): TranscriptionEvent {
  const type = 'transcript.text.done'
  if (mediaType.includes('json')) {
    const answer = JSON.parse(text) as TranscriptionAnswer
    if (typeof answer.text === 'string') return { ...answer, type }
  } else if (!mediaType.includes('html')) return { type, text }
  throw new SyntaxError('no transcript')
}
