import { Buffer } from 'node:buffer'
import { asBuffer } from './chunks.ts'
import type { ByteSpan } from './json-cursor.ts'
import { MAX_EVENT_BYTES } from './sse.ts'

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
