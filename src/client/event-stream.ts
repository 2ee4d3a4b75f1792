import { type ServerSentEvent, sseReader } from '../wire/sse.ts'
import { brokenAnswer, errorOf, foreignType } from './client-error.ts'
import type { OpenAnswer } from './connection.ts'

/** A streamed answer: iterate it once. Leaving the loop, or `abort`, ends the call at the vendor too. */
export interface EventStream<Item> extends AsyncIterable<Item> {
  /** The gateway's id of the request. */
  readonly requestId: string | undefined
  /** Ends the call; the loop then ends without an error. */
  abort(): void
}

/** How the events of a dialect are read. */
export interface EventDialect<Item> {
  /** Is the answer complete with this event? */
  isEnd(event: ServerSentEvent): boolean
  /** Is the event that marks the end an item of its own? */
  readonly givesEnd: boolean
  /** Is this an event that tells of an error? */
  isError(item: Item): boolean
  /** May the body end after this event, without a mark of the end? Default: never. */
  isComplete?(item: Item): boolean
}

/**
 * Reads a streamed answer.
 * @throws ClientError while iterating, for an error event, and for a stream that ends without its end mark; the reason of the
 *   caller's signal.
 */
export function eventStream<Item>(answer: OpenAnswer, dialect: EventDialect<Item>): EventStream<Item> {
  const { response, requestId, isPaidJob, scope, callerSignal } = answer
  scope.stopTimer()
  const reader = response.body?.getReader()
  const hint = foreignType(response, 'event-stream')
  let isAborted = false
  let isRead = false
  let isWhole = false
  const pending: ServerSentEvent[] = []
  const events = sseReader((event) => pending.push(event))

  async function* items(): AsyncGenerator<Item> {
    if (isRead) throw new TypeError('A stream is read once.')
    isRead = true
    try {
      while (!isAborted) {
        const { value, done } = await readFrom(reader)
        if (isAborted) return
        read(value)
        if (done) events.end()
        for (const event of pending.splice(0)) {
          const isEnd = dialect.isEnd(event)
          if (!isEnd || dialect.givesEnd) yield itemOf(event)
          if (isEnd || isAborted) return
        }
        if (done && isWhole) return
        if (done) throw brokenAnswer(`The stream ended before the answer was complete.${hint}`, answer)
      }
    } finally {
      scope.end()
      leave()
    }
  }

  /** Nobody waits for it: some sources never say that they are done. What has failed cannot be left, and was told. */
  function leave(): void {
    reader?.cancel().catch(() => undefined)
  }

  async function readFrom(source: typeof reader): Promise<{ value?: Uint8Array | undefined; done: boolean }> {
    try {
      return source === undefined ? { done: true } : await scope.within(source.read())
    } catch (cause) {
      if (isAborted) return { done: true }
      if (callerSignal?.aborted === true) throw callerSignal.reason
      throw brokenAnswer('The stream broke off.', answer, cause)
    }
  }

  function read(bytes: Uint8Array | undefined): void {
    try {
      if (bytes !== undefined) events.push(bytes)
    } catch (cause) {
      throw brokenAnswer('The stream holds an event that is too large.', answer, cause)
    }
  }

  function itemOf({ data }: ServerSentEvent): Item {
    let item: Item
    try {
      item = JSON.parse(data) as Item
    } catch (cause) {
      throw brokenAnswer('The stream holds an event that is no JSON.', answer, cause)
    }
    if (typeof item !== 'object' || item === null) {
      throw brokenAnswer('The stream holds an event that is no object.', answer)
    }
    if (dialect.isError(item)) throw errorOf(item, { status: 502, requestId, isPaidJob, hasBegun: true })
    isWhole ||= dialect.isComplete?.(item) === true
    return item
  }

  return {
    requestId,
    [Symbol.asyncIterator]: items,
    abort() {
      isAborted = true
      scope.end()
      leave()
    },
  }
}
