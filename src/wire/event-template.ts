import { Buffer } from 'node:buffer'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20

/**
 * Template of an event that occurs repeatedly in a stream with the same bytes, except for JSON strings in one or two places. The
 * first string is the text. Matching events are read without parsing. A JSON string does not affect the bytes around it, so a
 * conclusion about one event holds for all of them.
 */
export class EventTemplate {
  /** Set by {@link match}: position after the event. */
  end = 0
  #textStart = 0
  #textEnd = 0
  #isEscaped = false
  /** Whether the string that was read last has an escape. */
  #hasEscape = false
  readonly #fixed: readonly Buffer[]

  /** @param fixed The bytes before, between and after the strings, including the quotes. Two or three pieces. */
  constructor(fixed: readonly Buffer[]) {
    this.#fixed = fixed
  }

  /** Splits the bytes of an event at these JSON strings, in their order; `undefined` if one of them is missing. */
  static of(event: Buffer, literals: readonly string[]): EventTemplate | undefined {
    const fixed: Buffer[] = []
    let start = 0
    for (const literal of literals) {
      const bytes = Buffer.from(literal)
      const at = event.indexOf(bytes, start)
      if (at === -1) return undefined
      fixed.push(Buffer.from(event.subarray(start, at + 1)))
      start = at + bytes.byteLength - 1
    }
    fixed.push(Buffer.from(event.subarray(start)))
    return new EventTemplate(fixed)
  }

  /** Returns the event with other strings, which must be JSON-escaped and without quotes. */
  filled(strings: readonly string[]): string {
    return this.#fixed.map((bytes, index) => bytes.toString('utf8') + (strings[index] ?? '')).join('')
  }

  /** Whether a matching event begins here. If so, {@link end} and {@link text} describe it. */
  match(bytes: Buffer, start: number): boolean {
    const fixed = this.#fixed
    let position = start
    for (let index = 0; index < fixed.length; index++) {
      const piece = fixed[index]!
      const { length } = piece
      const end = position + length
      if (end > bytes.length || bytes.compare(piece, 0, length, position, end) !== 0) return false
      position = end
      if (index === fixed.length - 1) break
      const close = this.#stringEnd(bytes, position)
      if (close === -1) return false
      if (index === 0) {
        // An empty text is another kind of event.
        if (close === position) return false
        this.#textStart = position
        this.#textEnd = close
        this.#isEscaped = this.#hasEscape
      }
      position = close
    }
    this.end = position
    return true
  }

  /** Returns the position of the quote that closes a JSON string, or -1 if there is no string or it does not end. */
  #stringEnd(bytes: Buffer, start: number): number {
    this.#hasEscape = false
    for (let position = start; position < bytes.length; position++) {
      const byte = bytes[position]!
      if (byte === QUOTE) return position
      if (byte < SPACE) return -1
      if (byte === BACKSLASH) {
        this.#hasEscape = true
        position++
      }
    }
    return -1
  }

  /** Returns the text of the matched event, or `undefined` if it is not a valid JSON string. */
  text(bytes: Buffer): string | undefined {
    if (!this.#isEscaped) return bytes.toString('utf8', this.#textStart, this.#textEnd)
    try {
      return JSON.parse(bytes.toString('utf8', this.#textStart - 1, this.#textEnd + 1)) as string
    } catch {
      return undefined
    }
  }
}
