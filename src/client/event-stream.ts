import { type ServerSentEvent, sseReader } from '../wire/sse.ts'
import { brokenResponse, errorOf, foreignType } from './client-error.ts'
import type { OpenResponse } from './connection.ts'

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
