import { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../wire/json-cursor.ts'
import { TOO_LONG } from './batch-lines.ts'

const SPACE = 0x20
const LONGEST_NAME = 128

/** List of a JSON object to split, and the size limits. */
export interface ListSplit {
  readonly member: string
  /** Maximum size of an item. A larger item becomes {@link TOO_LONG}, without its bytes. */
  readonly maxItemBytes: number
  /** Maximum number of bytes outside of the list. */
  readonly maxRestBytes: number
}

/**
 * Splits a JSON object at one of its lists while its bytes arrive: yields the items one by one, and keeps the rest of the text,
 * with an empty list. The whole text is valid JSON exactly if each item and the rest are; the reader parses both.
 */
export class ListSplitter {
  readonly #split: ListSplit
  #rest: Uint8Array[] = []
  #restBytes = 0
  #item: Uint8Array[] = []
  #itemBytes = 0
  #isBlank = true
  #items = 0
  #depth = 0
  #isInString = false
  #isEscaped = false
  #isInList = false
  #hadList = false
  /** Text of the last string directly inside the object, one character per byte. */
  #name = ''
  /** Whether the value of the member comes next. */
  #isValue = false

  constructor(split: ListSplit) {
    this.#split = split
  }

  /**
   * Yields the items that end in a chunk.
   * @throws GatewayError `invalid_request` for a second list of the name, and for too many bytes outside of the list.
   */
  *push(piece: Uint8Array): Iterable<Uint8Array | typeof TOO_LONG> {
    let start = 0
    for (let at = 0; at < piece.length; at++) {
      if (this.#isInString) {
        // Names are read byte by byte; an overlong string is never a name.
        if (this.#depth !== 1 && !this.#isEscaped) at = endOfPlainText(piece, at)
        if (at < piece.length) this.#inString(piece[at]!)
        continue
      }
      const byte = piece[at]!
      if (byte <= SPACE) continue
      const isItem = this.#isInList && this.#depth === 2
      if (isItem && (byte === COMMA || byte === CLOSE_BRACKET)) {
        this.#keepItem(piece, start, at)
        // An empty list has no item, and `[1,]` has an empty one.
        if (byte === COMMA || this.#items > 0 || !this.#isBlank) yield this.#takeItem()
        start = byte === COMMA ? at + 1 : at
        if (byte === CLOSE_BRACKET) this.#isInList = false
        else continue
      }
      if (this.#isInList) this.#isBlank = false
      if (this.#opensList(byte)) {
        this.#keepRest(piece, start, at + 1)
        start = at + 1
      }
      this.#walk(byte)
    }
    if (this.#isInList) this.#keepItem(piece, start, piece.length)
    else this.#keepRest(piece, start, piece.length)
  }

  /** Returns the text without its items. */
  rest(): Uint8Array {
    return joinChunks(this.#rest)
  }

  #inString(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (byte === BACKSLASH) this.#isEscaped = true
    else if (byte === QUOTE) {
      this.#isInString = false
      return
    }
    if (this.#depth === 1 && this.#name.length < LONGEST_NAME) this.#name += String.fromCharCode(byte)
  }

  #opensList(byte: number): boolean {
    if (!this.#isValue || byte !== OPEN_BRACKET || this.#depth !== 1) return false
    const { member } = this.#split
    if (this.#hadList)
      throw new GatewayError('invalid_request', { message: `${member}: is given twice`, param: member })
    this.#hadList = true
    this.#isInList = true
    return true
  }

  #walk(byte: number): void {
    this.#isValue = false
    switch (byte) {
      case QUOTE:
        this.#isInString = true
        if (this.#depth === 1) this.#name = ''
        break
      case COLON:
        this.#isValue = this.#depth === 1 && nameOf(this.#name) === this.#split.member
        break
      case OPEN_BRACE:
      case OPEN_BRACKET:
        this.#depth++
        break
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        this.#depth--
    }
  }

  #keepItem(piece: Uint8Array, start: number, end: number): void {
    this.#itemBytes += end - start
    // The bytes of an oversized item are not kept.
    if (this.#itemBytes <= this.#split.maxItemBytes) this.#item.push(piece.subarray(start, end))
    else this.#item = []
  }

  #takeItem(): Uint8Array | typeof TOO_LONG {
    const item = this.#itemBytes > this.#split.maxItemBytes ? TOO_LONG : joinChunks(this.#item)
    this.#item = []
    this.#itemBytes = 0
    this.#isBlank = true
    this.#items++
    return item
  }

  #keepRest(piece: Uint8Array, start: number, end: number): void {
    this.#restBytes += end - start
    const { member, maxRestBytes } = this.#split
    if (this.#restBytes > maxRestBytes)
      throw new GatewayError('invalid_request', {
        message: `The body may have at most ${maxRestBytes} bytes outside of ${member}`,
      })
    this.#rest.push(piece.subarray(start, end))
  }
}

/** Position of the next quote or backslash, or the length of the chunk if there is none. */
function endOfPlainText(piece: Uint8Array, start: number): number {
  let at = start
  while (at < piece.length && piece[at] !== QUOTE && piece[at] !== BACKSLASH) at++
  return at
}

/** Decodes the escapes of a member's name. */
function nameOf(written: string): string {
  if (!written.includes('\\')) return written
  try {
    return String(JSON.parse(`"${Buffer.from(written, 'latin1').toString()}"`))
  } catch {
    return written
  }
}
