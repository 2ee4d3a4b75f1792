import { Buffer } from 'node:buffer'
import { asBuffer } from './chunks.ts'

export const QUOTE = 0x22
export const COMMA = 0x2c
export const COLON = 0x3a
export const OPEN_BRACKET = 0x5b
export const BACKSLASH = 0x5c
export const CLOSE_BRACKET = 0x5d
export const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d
export const SPACE = 0x20
const NO_BYTES: Buffer = Buffer.alloc(0)
const NO_CHUNKS: readonly Uint8Array[] = []

/** Result of `JsonCursor.peek` after the last byte. */
export const END = -1

// Strings up to this length are scanned byte by byte; longer ones, such as base64 images, are searched natively.
const WALK_BYTES = 64

/** The span of a value: its first byte, and the position after its last one. */
export interface ByteSpan {
  readonly start: number
  readonly end: number
}

/** Returns whether `expected` is at `position`. */
export function startsWith(bytes: Buffer, position: number, expected: Buffer): boolean {
  const end = position + expected.length
  if (end > bytes.length) return false
  if (expected.length > WALK_BYTES) return bytes.compare(expected, 0, expected.length, position, end) === 0
  for (let offset = 0; offset < expected.length; offset++) {
    if (bytes[position + offset] !== expected[offset]) return false
  }
  return true
}

/** Returns whether `bytes[start, end)` is this ASCII text. */
export function isText(bytes: Buffer, start: number, end: number, text: string): boolean {
  const length = end - start
  if (length !== text.length) return false
  for (let offset = 0; offset < length; offset++) if (bytes[start + offset] !== text.charCodeAt(offset)) return false
  return true
}

/** Returns the position of the first byte that is not white space. In valid JSON, bytes up to 0x20 between tokens are blank. */
export function skipBlanks(bytes: Buffer, from: number, end: number = bytes.length): number {
  let position = from
  while (position < end && bytes[position]! <= SPACE) position += 1
  return position
}

/** Returns the position of the quote that closes the string opened at `openQuote`, or -1 if it does not close before `end`. */
export function closingQuote(bytes: Buffer, openQuote: number, end: number): number {
  let position = openQuote + 1
  const walkEnd = Math.min(end, position + WALK_BYTES)
  while (position < walkEnd) {
    const byte = bytes[position]
    if (byte === QUOTE) return position
    position += byte === BACKSLASH ? 2 : 1
  }
  while (position < end) {
    const quote = bytes.indexOf(QUOTE, position)
    if (quote === -1 || quote >= end) return -1
    // Backslashes are counted back to `position`, where no escape can be open.
    if (!endsInEscape(bytes, position, quote)) return quote
    position = quote + 1
  }
  return -1
}

const LETTER_D = 0x64
const LETTER_N = 0x6e
const LETTER_CAPITAL_N = 0x4e
const LETTER_U = 0x75
const DIGIT_0 = 0x30
const DIGIT_8 = 0x38
const LOWER_CASE = 0x20
const UNICODE_ESCAPE_BYTES = 6

/** Returns the UTF-8 length in bytes of the decoded content `bytes[start, end)` of a JSON string. */
export function decodedByteLength(bytes: Buffer, start: number, end: number): number {
  let length = end - start
  for (let position = start; position < end; position++) {
    if (bytes[position] !== BACKSLASH) continue
    if (bytes[position + 1] === LETTER_U) {
      length -= UNICODE_ESCAPE_BYTES - escapedBytes(bytes, position + 2)
      position += UNICODE_ESCAPE_BYTES - 1
    } else {
      length -= 1
      position += 1
    }
  }
  return length
}

/** Returns the UTF-8 length of the code unit whose four digits begin at `position`. Each half of a surrogate pair counts 2. */
function escapedBytes(bytes: Buffer, position: number): number {
  const first = bytes[position]! | LOWER_CASE
  const second = bytes[position + 1]!
  if (first === DIGIT_0 && second < DIGIT_8) return second === DIGIT_0 && bytes[position + 2]! < DIGIT_8 ? 1 : 2
  return first === LETTER_D && second >= DIGIT_8 ? 2 : 3
}

/**
 * Walks JSON text in one or many chunks, without joining, parsing or copying it. Takes linear time; a native search skips long
 * strings. It validates only the parts that it needs: it may accept invalid JSON, but never reads past the end.
 */
export class JsonCursor {
  /** Opening quote of the name that `nextMember` found. Positions count from the first byte of all chunks. */
  memberStart = 0
  /** First byte of the value that `nextMember` found. */
  valueStart = 0
  /** Number of objects directly inside the value skipped last; undefined if it was not a list. */
  items: number | undefined
  /** Whether the text is not JSON, or ended too early. */
  isBroken = false
  #chunks: readonly Uint8Array[]
  #nextIndex = 0
  #bytes = NO_BYTES
  #offset = 0
  /** Number of bytes in the chunks before this one. */
  #base = 0
  #nameBytes = NO_BYTES
  #nameStart = 0
  #nameEnd = 0

  constructor(chunks: readonly Uint8Array[]) {
    this.#chunks = chunks
    this.#nextChunk()
  }

  /** Restarts with other text, or none, and releases the previous text. */
  restart(bytes: Buffer = NO_BYTES): void {
    this.#chunks = NO_CHUNKS
    this.#nextIndex = this.#offset = this.#base = 0
    this.#bytes = bytes
    this.#nameBytes = NO_BYTES
    this.isBroken = false
  }

  /** Position of the next byte. */
  get position(): number {
    return this.#base + this.#offset
  }

  /** The name that `nextMember` found, as written between its quotes, one character for each byte. */
  get name(): string {
    return this.#nameBytes.toString('latin1', this.#nameStart, this.#nameEnd)
  }

  /** Returns whether that name is written as this ASCII text. */
  isNamed(name: string): boolean {
    return isText(this.#nameBytes, this.#nameStart, this.#nameEnd, name)
  }

  /** Moves to the next byte that is not white space, and returns it; {@link END} if there is none. */
  peek(): number {
    do {
      const bytes = this.#bytes
      let offset = this.#offset
      while (offset < bytes.length) {
        const byte = bytes[offset]!
        if (byte > SPACE) {
          this.#offset = offset
          return byte
        }
        offset += 1
      }
    } while (this.#nextChunk())
    return END
  }

  /** Skips this byte if it is the next one that is not white space. */
  enter(byte: number): boolean {
    if (this.peek() !== byte) return false
    this.#offset += 1
    return true
  }

  /** Moves to the value of the next member of an entered object. Returns false after the last member, and if the text is broken. */
  nextMember(): boolean {
    let byte = this.peek()
    if (byte === COMMA) {
      this.#offset += 1
      byte = this.peek()
    }
    if (byte === CLOSE_BRACE) {
      this.#offset += 1
      return false
    }
    if (byte !== QUOTE || !this.#skipName() || this.peek() !== COLON) return this.#break()
    this.#offset += 1
    if (this.peek() === END) return this.#break()
    this.valueStart = this.position
    return true
  }

  /** Enters an object and moves to the value of its first member of this name. */
  seek(name: string): boolean {
    if (!this.enter(OPEN_BRACE)) return false
    while (this.nextMember()) {
      if (this.isNamed(name)) return true
      if (!this.skipValue()) return false
    }
    return false
  }

  /** Skips a value. Returns false if it does not end. */
  skipValue(): boolean {
    const first = this.peek()
    this.items = first === OPEN_BRACKET ? 0 : undefined
    if (first === QUOTE) return this.#skipString()
    let depth = 0
    do {
      let offset = this.#offset
      while (offset < this.#bytes.length) {
        const byte = this.#bytes[offset]!
        if (byte === QUOTE) {
          this.#offset = offset
          if (!this.#skipString()) return false
          offset = this.#offset
          continue
        }
        if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
          if (depth === 1 && byte === OPEN_BRACE && this.items !== undefined) this.items += 1
          depth += 1
        } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
          depth -= 1
          if (depth <= 0) {
            // After a number or a literal: end of the enclosing object or list.
            this.#offset = depth === 0 ? offset + 1 : offset
            return true
          }
        } else if (depth === 0 && (byte === COMMA || byte <= SPACE)) {
          this.#offset = offset
          return true
        }
        offset += 1
      }
      this.#offset = offset
    } while (this.#nextChunk())
    return this.#break()
  }

  /**
   * Skips the rest of an entered list of numbers, with a native search unless they are counted.
   * @returns The number of commas (0 if they are not counted), or -1 if the list does not end or contains `null`, `NaN` or
   *   `Infinity`.
   */
  skipNumbers(isCounted: boolean): number {
    let commas = 0
    do {
      const close = this.#bytes.indexOf(CLOSE_BRACKET, this.#offset)
      const end = close === -1 ? this.#bytes.length : close
      const letter = this.#bytes.indexOf(LETTER_N, this.#offset)
      if (letter !== -1 && letter < end) return -1
      // The rest of the answer may contain no other N, so search only the list.
      if (this.#bytes.subarray(this.#offset, end).indexOf(LETTER_CAPITAL_N) !== -1) return -1
      if (isCounted) for (let at = this.#offset; at < end; at++) if (this.#bytes[at] === COMMA) commas += 1
      if (close === -1) continue
      this.#offset = close + 1
      return commas
    } while (this.#nextChunk())
    this.#break()
    return -1
  }

  #skipName(): boolean {
    const bytes = this.#bytes
    this.memberStart = this.position
    this.#nameStart = this.#offset + 1
    if (!this.#skipString()) return false
    const isInOneChunk = this.#bytes === bytes
    this.#nameBytes = isInOneChunk
      ? bytes
      : Buffer.concat(bytesBetween(this.#chunks, this.memberStart + 1, this.position - 1))
    if (!isInOneChunk) this.#nameStart = 0
    this.#nameEnd = isInOneChunk ? this.#offset - 1 : this.#nameBytes.length
    return true
  }

  #skipString(): boolean {
    let from = this.#offset + 1
    for (;;) {
      const bytes = this.#bytes
      const close = closingQuote(bytes, from - 1, bytes.length)
      if (close !== -1) {
        this.#offset = close + 1
        return true
      }
      const isEscaping = endsInEscape(bytes, from, bytes.length)
      if (!this.#nextChunk()) return this.#break()
      from = isEscaping ? 1 : 0
    }
  }

  /** Moves to the next chunk that is not empty, or past the last one. */
  #nextChunk(): boolean {
    while (this.#nextIndex < this.#chunks.length) {
      this.#base += this.#bytes.length
      this.#bytes = asBuffer(this.#chunks[this.#nextIndex++]!)
      this.#offset = 0
      if (this.#bytes.length > 0) return true
    }
    this.#offset = this.#bytes.length
    return false
  }

  #break(): false {
    this.isBroken = true
    return false
  }
}

/** Returns the chunks between two positions. */
export function bytesBetween(chunks: readonly Uint8Array[], start: number, end: number): Uint8Array[] {
  const pieces: Uint8Array[] = []
  let base = 0
  for (const chunk of chunks) {
    const from = Math.max(0, start - base)
    const to = Math.min(chunk.length, end - base)
    if (from < to) pieces.push(chunk.subarray(from, to))
    base += chunk.length
    if (base >= end) break
  }
  return pieces
}

/** Returns the text between two positions. */
export function textBetween(chunks: readonly Uint8Array[], start: number, end: number): string {
  return Buffer.concat(bytesBetween(chunks, start, end)).toString('utf8')
}

/** Returns whether an escape that begins in `bytes[from, end)` continues after `end`. No escape is open at `from`. */
function endsInEscape(bytes: Buffer, from: number, end: number): boolean {
  let first = end
  while (first > from && bytes[first - 1] === BACKSLASH) first -= 1
  return (end - first) % 2 === 1
}
