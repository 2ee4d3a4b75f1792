import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import type { MessagesRequest } from '../../endpoints/messages/messages-request.ts'
import { MAX_EVENT_BYTES, sseEvent } from '../../wire/sse.ts'
import { ByteEdits } from '../shared/byte-edits.ts'
import { EventFrames } from '../shared/event-frames.ts'
import { type FrameLines, readFrame } from '../shared/frame-lines.ts'
import { invalidResponse } from '../shared/invalid-response.ts'
import { type ByteSpan, findTopLevelString, startsWith } from '../shared/json-bytes.ts'
import type { AnswerStream, VendorCall, VendorFailure } from '../vendor.ts'
import { latestUsage, normalisedUsage, readMessagesUsage } from './usage-from.ts'

/** Reads a `type: "error"` object that came inside a stream. */
type StreamErrorReader = (event: unknown) => VendorFailure

/** The event that makes up nearly all of a stream; it is passed on unread. */
const DELTA_EVENT = 'content_block_delta'
/** How the vendor begins such an event; one that is written otherwise is read like any other. */
const DELTA_START = Buffer.from(`event: ${DELTA_EVENT}\ndata: `)
const LINE_FEED = 0x0a
const MESSAGE_NAME = Buffer.from('"message"')
/** Of the events at hand. One for all streams, because each works on its events in one go and a stream lives long. */
const edits = new ByteEdits()

/**
 * Relays a streamed message (Anthropic, "Streaming messages"): the vendor's bytes pass event by event, pings, comments and
 * events unknown to the gateway included, and only the value of `model` in `message_start` is replaced. Errors are taken out,
 * and so is an end mark of another dialect, which proxies add and clients cannot read.
 */
export class MessagesStreamRelay implements AnswerStream {
  hasContent = false
  isComplete = false
  failure: VendorFailure | undefined
  outputTokensSeen = 0
  readonly #publicModel: string
  readonly #readError: StreamErrorReader
  readonly #frames: EventFrames
  #counts = readMessagesUsage(undefined)

  constructor(
    call: Pick<VendorCall<MessagesRequest>, 'publicModel'>,
    readError: StreamErrorReader,
    maxEventBytes: number = MAX_EVENT_BYTES,
  ) {
    this.#publicModel = call.publicModel
    this.#readError = readError
    this.#frames = new EventFrames(maxEventBytes)
  }

  /** Whole events only are given. */
  get atBoundary(): boolean {
    return true
  }

  get usage(): Usage | undefined {
    return normalisedUsage(this.#counts)
  }

  push(chunk: Uint8Array): Uint8Array | undefined {
    if (this.#isOver) return undefined
    const complete = this.#frames.take(chunk)
    const given = complete === undefined ? undefined : this.#relay(complete, false)
    if (this.#frames.isOversize && !this.#isOver)
      this.failure = invalidResponse('The vendor sent an event that is too large.')
    return given
  }

  end(): Uint8Array | undefined {
    if (this.#isOver) return undefined
    const rest = this.#frames.rest()
    return rest === undefined ? undefined : this.#relay(rest, true)
  }

  get #isOver(): boolean {
    return this.isComplete || this.failure !== undefined
  }

  #relay(bytes: Buffer, isRest: boolean): Buffer | undefined {
    edits.clear()
    let position = 0
    while (position < bytes.length && !this.#isOver) {
      const behindDelta = isRest ? undefined : endOfDelta(bytes, position)
      if (behindDelta !== undefined) {
        this.#countContent()
        position = behindDelta
        continue
      }
      const frame = readFrame(bytes, position)
      this.#read(bytes, position, frame, isRest)
      if (this.failure !== undefined) break
      position = frame.end
    }
    const relayed = edits.apply(bytes, position)
    return relayed.length === 0 ? undefined : relayed
  }

  #read(bytes: Buffer, start: number, frame: FrameLines, isRest: boolean): void {
    const { event, data, end } = frame
    if (data === undefined) {
      if (isRest) edits.replace(start, end, undefined)
      return
    }
    if (event === DELTA_EVENT && !isRest) {
      this.#countContent()
      return
    }
    const text = Buffer.concat(data).toString('utf8')
    const value = parseVendorJson(text)
    if (isJsonObject(value)) this.#readEvent(value, { bytes, start, frame })
    // A torn last event is no fault of its own: the body was cut, and `isComplete` says so.
    else if (isRest || text.trim() === '[DONE]') edits.replace(start, end, undefined)
    else if (event === 'error') this.failure = this.#readError({})
    else this.failure = invalidResponse('The vendor sent an event that is not a JSON object.')
  }

  #readEvent(value: Record<string, unknown>, place: Place): void {
    switch (value['type'] ?? place.frame.event) {
      case 'message_start':
        this.#readStart(value, place)
        return
      case 'content_block_start':
        if (startsWithContent(value['content_block'])) this.#countContent()
        return
      case DELTA_EVENT:
        this.#countContent()
        return
      case 'message_delta':
        this.#counts = latestUsage(this.#counts, readMessagesUsage(value['usage']))
        this.hasContent = true
        return
      case 'message_stop':
        this.isComplete = true
        return
      case 'error':
        this.failure = this.#readError(value)
    }
  }

  #readStart(value: Record<string, unknown>, { bytes, start, frame }: Place): void {
    const { message } = value
    if (!isJsonObject(message)) return
    this.#counts = latestUsage(this.#counts, readMessagesUsage(message['usage']))
    if (message['model'] === this.#publicModel) return
    const span = modelSpan(bytes, frame, message['model'])
    if (span !== undefined) {
      edits.replace(span.start, span.end, Buffer.from(JSON.stringify(this.#publicModel)))
      return
    }
    const renamed = { ...value, message: { ...message, model: this.#publicModel } }
    edits.replace(start, frame.end, Buffer.from(sseEvent('message_start', JSON.stringify(renamed))))
  }

  #countContent(): void {
    this.hasContent = true
    this.outputTokensSeen += 1
  }
}

/** An event in the bytes at hand. */
interface Place {
  readonly bytes: Buffer
  readonly start: number
  readonly frame: FrameLines
}

/** Position behind a plain delta of one data line that begins here; undefined for anything else. */
function endOfDelta(bytes: Buffer, start: number): number | undefined {
  if (!startsWith(bytes, start, DELTA_START)) return undefined
  const lineEnd = bytes.indexOf(LINE_FEED, start + DELTA_START.length)
  return lineEnd !== -1 && bytes[lineEnd + 1] === LINE_FEED ? lineEnd + 2 : undefined
}

/** Where the model stands inside the `message` of an event; undefined when that cannot be told for certain. */
function modelSpan(bytes: Buffer, { data }: FrameLines, model: unknown): ByteSpan | undefined {
  const [only] = data ?? []
  if (data?.length !== 1 || only === undefined) return undefined
  const start = only.byteOffset - bytes.byteOffset
  const end = start + only.byteLength
  const name = bytes.indexOf(MESSAGE_NAME, start)
  const brace = name === -1 ? -1 : bytes.indexOf('{', name)
  if (brace === -1 || brace >= end) return undefined
  const span = findTopLevelString(bytes, 'model', brace, end)
  return span !== undefined && bytes.toString('utf8', span.start, span.end) === JSON.stringify(model) ? span : undefined
}

/** Text and thinking begin empty; tool calls and blocks that arrive whole are content at once. */
function startsWithContent(block: unknown): boolean {
  return isJsonObject(block) && block['type'] !== 'text' && block['type'] !== 'thinking'
}
