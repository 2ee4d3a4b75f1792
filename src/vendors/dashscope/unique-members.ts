import type { Buffer } from 'node:buffer'
import { type ByteSpan, closingQuote, isJsonBlank } from '../shared/json-bytes.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/**
 * Where the values of an object's own members stand, by name. Undefined when the text is no object, or when any object in
 * it, at any depth, has two members of one name: which of the two counts is the reader's choice, so that what was checked
 * may not be what another reader finds. For JSON that has been parsed before, and so is valid and not deep. Linear.
 */
export function uniqueMembers(json: Buffer): ReadonlyMap<string, ByteSpan> | undefined {
  return new MemberWalk(json).object()
}

class MemberWalk {
  readonly #json: Buffer
  #position = 0

  constructor(json: Buffer) {
    this.#json = json
  }

  object(): Map<string, ByteSpan> | undefined {
    this.#skipBlanks()
    if (this.#json[this.#position] !== OPEN_BRACE) return undefined
    this.#position += 1
    const members = new Map<string, ByteSpan>()
    for (;;) {
      this.#skip(COMMA)
      const start = this.#position
      if (this.#json[start] === CLOSE_BRACE) {
        this.#position += 1
        return members
      }
      if (!this.#string()) return undefined
      const name = JSON.parse(this.#json.toString('utf8', start, this.#position)) as string
      if (members.has(name)) return undefined
      this.#skip(COLON)
      const valueStart = this.#position
      if (!this.#value()) return undefined
      members.set(name, { start: valueStart, end: this.#position })
    }
  }

  #list(): boolean {
    this.#position += 1
    for (;;) {
      this.#skip(COMMA)
      if (this.#json[this.#position] === CLOSE_BRACKET) {
        this.#position += 1
        return true
      }
      if (!this.#value()) return false
    }
  }

  /** Steps behind one value; false when it repeats a name or does not end. */
  #value(): boolean {
    const byte = this.#json[this.#position]
    if (byte === QUOTE) return this.#string()
    if (byte === OPEN_BRACE) return this.object() !== undefined
    if (byte === OPEN_BRACKET) return this.#list()
    const start = this.#position
    while (this.#isWord(this.#json[this.#position])) this.#position += 1
    return this.#position > start
  }

  #string(): boolean {
    if (this.#json[this.#position] !== QUOTE) return false
    const close = closingQuote(this.#json, this.#position, this.#json.length)
    this.#position = close + 1
    return close !== -1
  }

  /** Steps behind blanks, and one mark among them if it is there. */
  #skip(mark: number): void {
    this.#skipBlanks()
    if (this.#json[this.#position] !== mark) return
    this.#position += 1
    this.#skipBlanks()
  }

  #skipBlanks(): void {
    while (isJsonBlank(this.#json[this.#position])) this.#position += 1
  }

  /** A byte of a number, `true`, `false` or `null`. */
  #isWord(byte: number | undefined): boolean {
    return byte !== undefined && !isJsonBlank(byte) && byte !== COMMA && byte !== CLOSE_BRACE && byte !== CLOSE_BRACKET
  }
}
