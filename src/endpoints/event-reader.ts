import { Buffer } from 'node:buffer'
import { isJsonObject } from '../core/json.ts'
import type { Usage } from '../core/usage.ts'
import { asBuffer } from '../wire/chunks.ts'
import { type JsonPath, KnownEvents } from '../wire/event-template.ts'
import { type ByteSpan, startsWith } from '../wire/json-cursor.ts'
import { ByteEdits, findKnownString } from '../wire/json-edits.ts'
import { MAX_EVENT_BYTES } from '../wire/sse.ts'
import { type ArgumentsMember, parseAnswerJson } from './answer-json.ts'
import type { StreamTransform, VendorFailure } from './stream-transform.ts'

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const DATA_FIELD = Buffer.from('data:')
const EVENT_FIELD = Buffer.from('event:')
const SPACE = 0x20
const LINE_BREAK = Buffer.from('\n')
const BLANK_LINE = Buffer.from('\n\n')
const BYTE_ORDER_MARK = Buffer.from('\uFEFF')
const END_MARK = '[DONE]'
const NO_BYTES = Buffer.alloc(0)

/** Maximum number of lines per event. An event with more lines, and everything after it in the same bytes, cannot be read. */
const MAX_EVENT_LINES = 4_096

/**
 * Splits a body of server-sent events at event borders, without decoding it. Complete events are returned together; the rest is
 * kept until its end arrives. Every byte is scanned once and joined at most once, whatever the chunks. Lines end in LF or CRLF;
 * if a body ends its lines in CR only, they are returned with LF. A byte order mark at the start of a body is removed, as clients
 * do, so that the first event is read.
 */
export class EventSplitter {
  readonly #maxEventBytes: number
  // Emptied instead of replaced: V8 moves arrays that live as long as a stream into its old space, together with their contents.
  readonly #held: Uint8Array[] = []
  #heldBytes = 0
  #hasBegun = false
  // The last two bytes held. Between events, as at the start, a line break would close an (empty) event.
  #last = LINE_FEED
  #beforeLast = LINE_FEED

  constructor(maxEventBytes: number = MAX_EVENT_BYTES) {
    this.#maxEventBytes = maxEventBytes
  }

  /** Bytes of the unfinished event; 0 between events. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  /** Whether the unfinished event exceeded the limit. It was dropped, and the rest of the stream cannot be read. */
  get isOversize(): boolean {
    return this.#heldBytes > this.#maxEventBytes
  }

  /** Processes one network read. Returns all events that are complete now, each with its blank line, or undefined. */
  take(chunk: Uint8Array): Buffer | undefined {
    const bytes = asBuffer(chunk)
    const border = this.#lastBorder(bytes)
    if (border > 0) return this.#complete(bytes, border)
    const bareBorder = this.#lastBareBorder(bytes)
    if (bareBorder > 0) return withLineFeeds(this.#complete(bytes, bareBorder))
    this.#hold(bytes)
    return undefined
  }

  /** Returns the rest after the end of the body, closed by a blank line, or undefined if there is none. */
  rest(): Buffer | undefined {
    const held = this.#heldBytes === 0 || this.isOversize ? undefined : this.#withoutMark(Buffer.concat(this.#held))
    // Another body may follow.
    this.#hasBegun = false
    if (held === undefined) return undefined
    this.#reset()
    return Buffer.concat([held.includes(LINE_FEED) ? held : withLineFeeds(held), BLANK_LINE])
  }

  #complete(bytes: Buffer, border: number): Buffer {
    const head = border === bytes.length ? bytes : bytes.subarray(0, border)
    let complete = head
    if (this.#heldBytes > 0) {
      complete = Buffer.concat([...this.#held, head])
      this.#reset()
    }
    if (border < bytes.length) this.#hold(bytes.subarray(border))
    return this.#withoutMark(complete)
  }

  #withoutMark(bytes: Buffer): Buffer {
    if (this.#hasBegun) return bytes
    this.#hasBegun = true
    return isField(bytes, 0, BYTE_ORDER_MARK) ? bytes.subarray(BYTE_ORDER_MARK.length) : bytes
  }

  /** Returns the position after the last blank line, or 0 if there is none. */
  #lastBorder(bytes: Buffer): number {
    const { length } = bytes
    // Most reads end with an event.
    if (length > 1 && bytes[length - 1] === LINE_FEED && bytes[length - 2] === LINE_FEED) return length
    let lineFeed = bytes.lastIndexOf(LINE_FEED)
    while (lineFeed !== -1) {
      let before = this.#byteBefore(bytes, lineFeed)
      if (before === CARRIAGE_RETURN) before = this.#byteBefore(bytes, lineFeed - 1)
      if (before === LINE_FEED) return lineFeed + 1
      lineFeed = lineFeed === 0 ? -1 : bytes.lastIndexOf(LINE_FEED, lineFeed - 1)
    }
    return 0
  }

  /** Returns the position after the last blank line if lines end in CR only. */
  #lastBareBorder(bytes: Buffer): number {
    let carriageReturn = bytes.lastIndexOf(CARRIAGE_RETURN)
    while (carriageReturn !== -1) {
      if (this.#byteBefore(bytes, carriageReturn) === CARRIAGE_RETURN) return carriageReturn + 1
      carriageReturn = carriageReturn === 0 ? -1 : bytes.lastIndexOf(CARRIAGE_RETURN, carriageReturn - 1)
    }
    return 0
  }

  #byteBefore(bytes: Buffer, position: number): number | undefined {
    if (position > 0) return bytes[position - 1]
    return position === 0 ? this.#last : this.#beforeLast
  }

  #hold(bytes: Uint8Array): void {
    if (bytes.length === 0 || this.isOversize) return
    this.#held.push(bytes)
    this.#heldBytes += bytes.length
    this.#beforeLast = bytes.length > 1 ? (bytes[bytes.length - 2] ?? 0) : this.#last
    this.#last = bytes[bytes.length - 1] ?? 0
    if (this.isOversize) this.#held.length = 0
  }

  #reset(): void {
    this.#held.length = 0
    this.#heldBytes = 0
    this.#last = LINE_FEED
    this.#beforeLast = LINE_FEED
  }
}

/** Splits complete events at event borders into chunks of a minimum size, except for the last one. */
export function eventPieces(bytes: Buffer, leastBytes: number): Buffer[] {
  const pieces: Buffer[] = []
  for (let start = 0; start < bytes.length; ) {
    const border = bytes.length - start > leastBytes ? bytes.indexOf(BLANK_LINE, start + leastBytes) : -1
    const end = border === -1 ? bytes.length : border + BLANK_LINE.length
    pieces.push(bytes.subarray(start, end))
    start = end
  }
  return pieces
}

/** In JSON a CR can only be white space, so it is unambiguous here. */
function withLineFeeds(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString('latin1').replaceAll('\r\n', '\n').replaceAll('\r', '\n'), 'latin1')
}

/** Server-sent event that is located in its bytes without decoding. Reusable, because a stream has many. */
export class EventLines {
  bytes: Buffer = NO_BYTES
  start = 0
  /** Position after the blank line that closes it. */
  end = 0
  /** Value of its first `data:` line; -1 when it has none. */
  dataStart = -1
  dataEnd = -1
  #nameStart = -1
  #nameEnd = -1
  #furtherData: ByteSpan[] | undefined
  #isOverlong = false

  /** Reads the event that begins at `start`. The bytes must contain the complete event with its blank line. */
  read(bytes: Buffer, start: number): void {
    this.bytes = bytes
    this.start = start
    this.dataStart = -1
    this.#nameStart = -1
    this.#furtherData = undefined
    this.#isOverlong = false
    let line = start
    for (let count = 0; ; count++) {
      if (count === MAX_EVENT_LINES) {
        this.#isOverlong = true
        this.dataStart = start
        this.end = bytes.length
        return
      }
      // Detects the blank line without a search.
      const lineFeed = bytes[line] === LINE_FEED ? line : bytes.indexOf(LINE_FEED, line)
      const lineEnd = lineFeed > line && bytes[lineFeed - 1] === CARRIAGE_RETURN ? lineFeed - 1 : lineFeed
      if (lineEnd <= line) {
        this.end = lineFeed === -1 ? bytes.length : lineFeed + 1
        return
      }
      if (isField(bytes, line, DATA_FIELD)) this.#addData(behindSpace(bytes, line + DATA_FIELD.length), lineEnd)
      else if (isField(bytes, line, EVENT_FIELD)) {
        this.#nameStart = behindSpace(bytes, line + EVENT_FIELD.length)
        this.#nameEnd = lineEnd
      }
      line = lineFeed + 1
    }
  }

  /** Releases the bytes, which may be large. */
  release(): void {
    this.bytes = NO_BYTES
  }

  /** Whether the event has data. False for a comment. */
  get hasData(): boolean {
    return this.dataStart !== -1
  }

  /** Whether the data is one line, as usual. */
  get hasOneLine(): boolean {
    return this.dataStart !== -1 && this.#furtherData === undefined && !this.#isOverlong
  }

  /** Value of the `event:` line. */
  get name(): string | undefined {
    return this.#nameStart === -1 ? undefined : this.bytes.toString('utf8', this.#nameStart, this.#nameEnd)
  }

  /** Value of the data, in its original chunks. */
  get data(): Uint8Array[] {
    if (!this.hasData || this.#isOverlong) return []
    const pieces: Uint8Array[] = [this.bytes.subarray(this.dataStart, this.dataEnd)]
    for (const { start, end } of this.#furtherData ?? []) pieces.push(LINE_BREAK, this.bytes.subarray(start, end))
    return pieces
  }

  /** Value of the data. Empty if the event has too many lines. */
  get text(): string {
    return this.hasOneLine
      ? this.bytes.toString('utf8', this.dataStart, this.dataEnd)
      : Buffer.concat(this.data).toString('utf8')
  }

  /** Whether the event is the `[DONE]` of OpenAI's dialect. */
  get isEndMark(): boolean {
    return this.hasOneLine && this.dataEnd - this.dataStart <= 16 && this.text.trim() === END_MARK
  }

  #addData(start: number, end: number): void {
    if (this.dataStart === -1) {
      this.dataStart = start
      this.dataEnd = end
    } else {
      this.#furtherData ??= []
      this.#furtherData.push({ start, end })
    }
  }
}

function isField(bytes: Buffer, position: number, name: Buffer): boolean {
  for (let offset = 0; offset < name.length; offset++) if (bytes[position + offset] !== name[offset]) return false
  return true
}

/** One space after the colon belongs to neither field nor value. */
function behindSpace(bytes: Buffer, position: number): number {
  return bytes[position] === SPACE ? position + 1 : position
}

// Shared by all streams, because each one reads its events synchronously and lives long.
const edits = new ByteEdits()
const event = new EventLines()

/**
 * Reads a vendor's stream of server-sent events, one event at a time, at any chunk borders. Nothing is read after the end or a
 * failure. Events that differ from an earlier one only in a text may be read without parsing.
 * @typeParam Kind Facts of a dialect about such events.
 */
abstract class EventReader<Kind> {
  failure: VendorFailure | undefined
  readonly #splitter: EventSplitter
  /** Created with the first event that is learned, because a stream lives long. */
  #known: KnownEvents<Kind> | undefined
  #isOver = false

  /** @param maxEventBytes Maximum event size. By default, a 4K image fits. */
  constructor(maxEventBytes?: number) {
    this.#splitter = new EventSplitter(maxEventBytes)
  }

  /** True between events. Dialects must copy what they keep of an event. */
  get holdsNoBytes(): boolean {
    return this.#splitter.heldBytes === 0
  }

  /** Whether the answer is complete. */
  abstract readonly isComplete: boolean

  /** Whether nothing more is read. */
  protected get isOver(): boolean {
    return this.#isOver
  }

  /** Member in which the dialect sends the arguments of a tool call as an object, if any. */
  protected readonly argumentsMember: ArgumentsMember | undefined = undefined

  /** Reads the data of one event. The bytes of the event are valid only during the call. */
  protected readValue(_value: Record<string, unknown>, _event: EventLines): void {}

  /**
   * Reads one event that has data. Dialects override it if they do not parse all data.
   * @param isRest Whether this is the remainder at the end of the body, which may be torn.
   */
  protected readEvent(event: EventLines, isRest: boolean): void {
    const value = parseAnswerJson(event.text, this.argumentsMember)
    if (isJsonObject(value)) this.readValue(value, event)
    else if (event.isEndMark) this.readEndMark()
    else this.failUnreadable(event, isRest)
  }

  /** Reads the end mark of OpenAI's dialect, which proxies also add to other dialects. */
  protected readEndMark(): void {}

  /** Reads an event like one that was learned. Returns false if it must be parsed. */
  protected readKnown(_known: KnownEvents<Kind>, _kind: Kind, _start: number): boolean {
    return false
  }

  /** Whether learned events may now pass without being parsed. */
  protected get readsKnown(): boolean {
    return true
  }

  /** Called if the event has no data. */
  protected readComment(_isRest: boolean): void {}

  /** Called if the vendor's body has ended and the stream neither ended nor failed. Returns bytes to add. */
  protected bodyEnded(): Buffer | undefined {
    return undefined
  }

  /** Ends the stream. */
  protected finish(): void {
    this.#isOver = true
  }

  /** Ends the stream with a failure. A complete answer stays complete. */
  protected fail(failure: VendorFailure): void {
    this.#isOver = true
    if (!this.isComplete) this.failure = failure
  }

  /** Ends the stream, because the vendor's data is malformed. */
  protected failInvalid(message: string): void {
    this.fail({ kind: 'invalid_response', status: 0, message })
  }

  /** Handles an event that is not a JSON object. A torn last event is ignored: the body was cut, and `isComplete` is false. */
  protected failUnreadable(_event: EventLines, isRest: boolean): void {
    if (!isRest) this.failInvalid('The vendor sent an event that is not a JSON object.')
  }

  /** Learns the current event; see {@link KnownEvents}. */
  protected learn(value: object, paths: readonly JsonPath[], kind: Kind, fixedBytes?: number): void {
    if (!event.hasOneLine) return
    this.#known ??= new KnownEvents()
    this.#known.learn(event.bytes.subarray(event.start, event.end), value, paths, kind, fixedBytes)
  }

  protected readChunk(chunk: Uint8Array): Buffer | undefined {
    if (this.#isOver) return undefined
    const complete = this.#splitter.take(chunk)
    const given = complete === undefined ? undefined : this.readAll(complete, false)
    // Bytes after the end are ignored, however many.
    if (this.#splitter.isOversize && !this.#isOver && !this.isComplete)
      this.failInvalid('The vendor sent an event that is too large.')
    return given
  }

  protected readRest(): Buffer | undefined {
    if (this.#isOver) return undefined
    const rest = this.#splitter.rest()
    const given = rest === undefined ? undefined : this.readAll(rest, true)
    const added = this.#isOver ? undefined : this.bodyEnded()
    return given === undefined || added === undefined ? (given ?? added) : Buffer.concat([given, added])
  }

  /** Reads whole events. Returns the bytes that pass on, if any. */
  protected readAll(bytes: Buffer, isRest: boolean): Buffer | undefined {
    this.readEvents(bytes, isRest)
    return undefined
  }

  /** Returns the position after the last event that was read. */
  protected readEvents(bytes: Buffer, isRest: boolean): number {
    event.bytes = bytes
    let position = 0
    while (position < bytes.length && !this.#isOver) {
      const behind = isRest ? -1 : this.#behindKnown(bytes, position)
      if (behind !== -1) {
        position = behind
        continue
      }
      event.read(bytes, position)
      if (event.dataStart !== -1) this.readEvent(event, isRest)
      else this.readComment(isRest)
      position = event.end
    }
    event.release()
    this.#known?.release()
    return position
  }

  /** Returns the position after an event like one that was learned, or -1. */
  #behindKnown(bytes: Buffer, start: number): number {
    const known = this.#known
    if (known === undefined || !this.readsKnown) return -1
    const kind = known.match(bytes, start)
    return kind !== undefined && this.readKnown(known, kind, start) ? known.end : -1
  }
}

/** Decodes a vendor's stream of server-sent events, for dialects that are translated. */
export abstract class EventDecoder<Kind = never> extends EventReader<Kind> {
  push(chunk: Uint8Array): void {
    this.readChunk(chunk)
  }

  end(): void {
    this.readRest()
  }

  protected override readEvent(event: EventLines, isRest: boolean): void {
    // Some servers send events without data to keep a connection open.
    if (event.dataEnd > event.dataStart || !event.hasOneLine) super.readEvent(event, isRest)
  }
}

/**
 * Passes a stream of server-sent events through as bytes. A dialect reads each complete event, and may edit it, remove it, end the
 * stream or fail it. Other events pass unchanged, including comments. Nothing is returned after the end or a failure.
 */
export abstract class PassThroughStream<Kind = never> extends EventReader<Kind> implements StreamTransform {
  hasContent = false
  isComplete = false
  outputBytesSeen = 0
  abstract readonly usage: Usage | undefined
  #isWithheld = false

  /** Overridden by dialects that know it. */
  get hasTextEnded(): boolean {
    return false
  }

  get atBoundary(): boolean {
    return this.holdsNoBytes
  }

  push(chunk: Uint8Array): Uint8Array | undefined {
    return this.readChunk(chunk)
  }

  end(): Uint8Array | undefined {
    return this.readRest()
  }

  /** Whether comments are removed from here on. */
  protected get dropsComments(): boolean {
    return false
  }

  protected override readEndMark(): void {
    this.drop()
  }

  protected override readComment(isRest: boolean): void {
    if (isRest || this.dropsComments) this.drop()
  }

  /** Sends the current event and nothing after it. */
  protected override finish(): void {
    this.isComplete = true
    super.finish()
  }

  /** Sends neither the current event nor anything after it. A complete answer stays complete. */
  protected override fail(failure: VendorFailure): void {
    this.#isWithheld = true
    super.fail(failure)
  }

  protected override failUnreadable(event: EventLines, isRest: boolean): void {
    if (isRest) this.drop()
    super.failUnreadable(event, isRest)
  }

  /** Removes the current event. */
  protected drop(): void {
    edits.replace(event.start, event.end, undefined)
  }

  /** Sends other bytes in place of the current event. */
  protected replaceEvent(replacement: Buffer): void {
    this.edit(event.start, event.end, replacement)
  }

  /** Replaces a span of the current event. Spans must be in order. */
  protected edit(start: number, end: number, replacement: Buffer): void {
    if (end - start === replacement.length && startsWith(event.bytes, start, replacement)) return
    edits.replace(start, end, replacement)
  }

  /**
   * Replaces a string in the current event, found by its path and value. Returns its span, counted from the start of the event, or
   * `undefined` if it cannot be found reliably.
   */
  protected editString(path: readonly string[], value: unknown, replacement: Buffer): ByteSpan | undefined {
    const { bytes, start, dataStart, dataEnd } = event
    const span = event.hasOneLine ? findKnownString(bytes, path, value, dataStart, dataEnd) : undefined
    if (span === undefined) return undefined
    this.edit(span.start, span.end, replacement)
    return { start: span.start - start, end: span.end - start }
  }

  /** @param textBytes Bytes of generated text in the event. */
  protected countContent(textBytes = 0): void {
    this.hasContent = true
    this.outputBytesSeen += textBytes
  }

  protected override readAll(bytes: Buffer, isRest: boolean): Buffer | undefined {
    edits.clear()
    const position = this.readEvents(bytes, isRest)
    // The edits so far precede an event that failed.
    const given = edits.apply(bytes, this.#isWithheld ? event.start : position)
    return given.length === 0 ? undefined : given
  }
}
