import { Buffer } from 'node:buffer'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20

/**
 * An event of a stream whose like are expected: the same bytes, but for the JSON strings in one or two places, the first of which is
 * the text. Like events are read by their bytes alone. A JSON string does not change what stands around it, so whatever is said of
 * one such event is said of all, but for these strings.
 */
export class EventTemplate {
  /** Set by {@link match}: position after the event. */
  end = 0
  #textStart = 0
  #textEnd = 0
  #isEscaped = false
  /** Of the string that was read last. */
  #hasEscape = false
  readonly #fixed: readonly Buffer[]

  /** @param fixed What stands before, between and after the strings, with the quotes. Two or three pieces. */
  constructor(fixed: readonly Buffer[]) {
    this.#fixed = fixed
  }

  /** Splits the bytes of an event at these JSON strings, which stand in it in this order; undefined where one is not in it. */
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

  /** The event with other strings in its places; they stand between quotes, as JSON has them. */
  filled(strings: readonly string[]): string {
    return this.#fixed.map((bytes, index) => bytes.toString('utf8') + (strings[index] ?? '')).join('')
  }

  /** Does such an event begin here? Then {@link end} and {@link text} are those of this one. */
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
        // What adds nothing is another kind of event.
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

  /** Position of the quote that closes a JSON string; -1 for one that does not end, or is none. */
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

  /** The text of the event that was matched; undefined where it is no JSON string after all. */
  text(bytes: Buffer): string | undefined {
    if (!this.#isEscaped) return bytes.toString('utf8', this.#textStart, this.#textEnd)
    try {
      return JSON.parse(bytes.toString('utf8', this.#textStart - 1, this.#textEnd + 1)) as string
    } catch {
      return undefined
    }
  }
}
