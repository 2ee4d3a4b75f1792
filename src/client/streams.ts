import type { ChatUsage, FinishReason } from '../endpoints/chat/chat-completion.ts'
import { type ServerSentEvent, sseReader } from '../wire/sse.ts'
import { brokenResponse, errorOf, foreignType } from './client-error.ts'
import type { OpenResponse } from './connection.ts'
import type { MessageEvent } from './message-types.ts'
import type { TranscriptionAnswer, TranscriptionUsage } from './models/audio-models.ts'
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

/** Streamed answer: iterate it once. Leaving the loop, or `abort`, ends the call at the vendor too. */
export interface EventStream<Item> extends AsyncIterable<Item> {
  /** Request id of the gateway. */
  readonly requestId: string | undefined
  /** Ends the call. The loop then ends without an error. */
  abort(): void
}

/** Rules for the events of a dialect. The defaults describe OpenAI's dialect. */
export interface EventDialect<Item> {
  /** Name of the last event, which is also an item. By default the data `[DONE]` ends the stream and is not an item. */
  readonly endEvent?: string
  /** Returns the error that the event reports, or `undefined` if it reports none. By default an event with a member `error` is one. */
  errorIn?(item: Item): object | undefined
  /** Whether the body may end after this event, without an end mark. Never by default. */
  isComplete?(item: Item): boolean
  /**
   * Returns the only item of an answer that is not a stream, because the model does not stream. By default such an answer is an
   * error.
   * @throws SyntaxError if the answer is invalid.
   */
  itemOfWhole?(text: string, mediaType: string): Item
}

/**
 * Reads a streamed answer.
 * @throws ClientError while iterating, for an error event, or if a stream ends without its end mark; the reason of the caller's
 *   signal.
 */
export function eventStream<Item extends object>(
  answer: OpenResponse,
  dialect: EventDialect<Item> = {},
): EventStream<Item> {
  const { response, requestId, isPaidJob, scope, callerSignal } = answer
  const { endEvent, errorIn = (item) => ('error' in item ? item : undefined), isComplete = () => false } = dialect
  scope.stopTimer()
  const reader = response.body?.getReader()
  const hint = foreignType(response, 'event-stream')
  const mediaType = response.headers.get('content-type') ?? ''
  let isAborted = false
  let isRead = false
  let isWhole = false
  const pending: ServerSentEvent[] = []
  const events = sseReader((event) => pending.push(event))

  async function* items(): AsyncGenerator<Item> {
    if (isRead) throw new TypeError('A stream is read once.')
    isRead = true
    try {
      if (dialect.itemOfWhole !== undefined && hint !== '') {
        const item = await wholeItem(dialect.itemOfWhole)
        if (item !== undefined) yield item
        return
      }
      while (!isAborted) {
        const { value, done } = await readFrom(reader)
        if (isAborted) return
        read(value)
        if (done) events.end()
        for (const event of pending.splice(0)) {
          if (endEvent === undefined && event.data === '[DONE]') return
          yield itemOf(event)
          if (isAborted || (endEvent !== undefined && event.event === endEvent)) return
        }
        if (done && isWhole) return
        if (done) throw brokenResponse(`The stream ended before the answer was complete.${hint}`, answer)
      }
    } finally {
      release()
    }
  }

  /** Returns `undefined` if the caller has ended the call. */
  async function wholeItem(itemOfWhole: NonNullable<typeof dialect.itemOfWhole>): Promise<Item | undefined> {
    const decoder = new TextDecoder()
    let text = ''
    for (let isDone = false; !isDone; ) {
      const { value, done } = await readFrom(reader)
      if (isAborted) return undefined
      isDone = done
      text += decoder.decode(value, { stream: !done })
    }
    try {
      return itemOfWhole(text, mediaType)
    } catch (cause) {
      throw brokenResponse(`The answer is not a stream.${hint}`, answer, cause)
    }
  }

  /** The cancellation is not awaited, because some sources never settle it; a failed source was reported before. */
  function release(): void {
    scope.end()
    reader?.cancel().catch(() => undefined)
  }

  async function readFrom(source: typeof reader): Promise<{ value?: Uint8Array | undefined; done: boolean }> {
    try {
      return source === undefined ? { done: true } : await scope.within(source.read())
    } catch (cause) {
      if (isAborted) return { done: true }
      if (callerSignal?.aborted === true) throw callerSignal.reason
      throw brokenResponse('The stream broke off.', answer, cause)
    }
  }

  function read(bytes: Uint8Array | undefined): void {
    try {
      if (bytes !== undefined) events.push(bytes)
    } catch (cause) {
      throw brokenResponse('The stream holds an event that is too large.', answer, cause)
    }
  }

  function itemOf({ data }: ServerSentEvent): Item {
    let item: Item
    try {
      item = JSON.parse(data) as Item
    } catch (cause) {
      throw brokenResponse('The stream holds an event that is not JSON.', answer, cause)
    }
    if (typeof item !== 'object' || item === null) {
      throw brokenResponse('The stream holds an event that is not an object.', answer)
    }
    const error = errorIn(item)
    if (error !== undefined) throw errorOf(error, { status: 502, requestId, isPaidJob, hasBegun: true })
    isWhole ||= isComplete(item)
    return item
  }

  return {
    requestId,
    [Symbol.asyncIterator]: items,
    abort() {
      isAborted = true
      release()
    },
  }
}
