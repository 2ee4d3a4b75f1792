import { createParser } from 'eventsource-parser'

/** One server-sent event. */
export interface ServerSentEvent {
  /** Value of the `event:` line, or undefined if there is none. */
  readonly event: string | undefined
  /** Joined `data:` lines. */
  readonly data: string
}

/** Maximum size of an event from a vendor: room for a 4K image in base64, in one line. */
export const MAX_EVENT_BYTES = 64 * 1024 * 1024

/** Thrown when an event exceeds the limit. The rest of the stream cannot be read. */
export class OversizeEventError extends Error {
  override readonly name = 'OversizeEventError'
}

/** Reads server-sent events from bytes, at any chunk borders. */
interface SseReader {
  /**
   * Processes the next bytes and reports the events that they complete, in order.
   * @throws OversizeEventError if one event exceeds the limit.
   */
  push(chunk: Uint8Array): void
  /** Ends the body: reports a last event whose closing blank line is missing. */
  end(): void
}

/** Creates a reader that skips comments, ids and retry lines. */
export function sseReader(
  onEvent: (event: ServerSentEvent) => void,
  maxEventBytes: number = MAX_EVENT_BYTES,
): SseReader {
  const decoder = new TextDecoder('utf-8')
  let pendingBytes = 0
  const parser = createParser({
    onEvent: (message) => {
      pendingBytes = 0
      onEvent({ event: message.event, data: message.data })
    },
  })
  return {
    push(chunk) {
      pendingBytes += chunk.byteLength
      parser.feed(decoder.decode(chunk, { stream: true }))
      if (pendingBytes > maxEventBytes)
        throw new OversizeEventError(`a server-sent event exceeds ${maxEventBytes} bytes`)
    },
    end() {
      parser.feed(`${decoder.decode()}\n\n`)
    },
  }
}

/** Writes one event without a name. `json` must not contain a line break; JSON text never does. */
export function sseData(json: string): string {
  return `data: ${json}\n\n`
}

/** Writes one event with a name. */
export function sseEvent(event: string, json: string): string {
  return `event: ${event}\ndata: ${json}\n\n`
}

/** Comment line, which clients ignore; keeps idle connections open. */
export const SSE_COMMENT = ': keep-alive\n\n'

/** End mark of a stream in OpenAI's dialect. */
export const SSE_DONE = 'data: [DONE]\n\n'
