import type { OpenAnswer } from './connection.ts'
import { type EventStream, eventStream } from './event-stream.ts'

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
