import type { OpenAnswer } from './connection.ts'
import { type EventStream, eventStream } from './event-stream.ts'

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
