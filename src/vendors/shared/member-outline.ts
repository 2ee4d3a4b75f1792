import { Buffer } from 'node:buffer'
import { asBuffer, isJsonBlank } from './json-bytes.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** A top-level member of a JSON object. Positions count from the first byte of all. */
export interface MemberOutline {
  /** As it is written between its quotes, escapes unread. */
  readonly name: string
  /** Its opening quote. */
  readonly start: number
  readonly valueStart: number
  /** Behind the last byte of its value. */
  readonly end: number
  /** Objects that stand directly in its list; undefined when its value is no list. */
  readonly items: number | undefined
}

/**
 * Finds the top-level members of a JSON object without reading their values: strings, such as pictures in base64, are
 * jumped over. Linear, whatever the chunks. Undefined when the text is not one whole object; it is not checked further.
 */
export function outlineMembers(chunks: readonly Uint8Array[]): MemberOutline[] | undefined {
  const walk = new OutlineWalk()
  for (const chunk of chunks) if (!walk.take(asBuffer(chunk))) return undefined
  return walk.isWhole ? walk.members : undefined
}

/** The value of a member, as text. */
export function memberText(chunks: readonly Uint8Array[], member: MemberOutline): string {
  const pieces: Uint8Array[] = []
  let offset = 0
  for (const chunk of chunks) {
    const from = Math.max(0, member.valueStart - offset)
    const to = Math.min(chunk.length, member.end - offset)
    if (from < to) pieces.push(chunk.subarray(from, to))
    offset += chunk.length
    if (offset >= member.end) break
  }
  return Buffer.concat(pieces).toString('utf8')
}

class OutlineWalk {
  readonly members: MemberOutline[] = []
  #depth = 0
  #hasEnded = false
  /** Bytes of the chunks before this one. */
  #offset = 0
  #inString = false
  /** The byte before the next one is a backslash that escapes it. */
  #isEscaping = false
  /** Behind the last byte that is no blank. */
  #inkEnd = 0
  #name: string | undefined
  #isNaming = false
  #start = 0
  #valueStart = -1
  #items: number | undefined

  get isWhole(): boolean {
    return this.#hasEnded
  }

  /** Takes the next chunk; false when the text cannot be an object any more. */
  take(bytes: Buffer): boolean {
    let position = 0
    while (position < bytes.length) {
      if (this.#inString) {
        position = this.#string(bytes, position)
        continue
      }
      const byte = bytes[position] ?? 0
      if (!isJsonBlank(byte)) {
        if (this.#hasEnded || (this.#depth === 0 && byte !== OPEN_BRACE)) return false
        this.#token(byte, this.#offset + position)
        this.#inkEnd = this.#offset + position + 1
      }
      position += 1
    }
    this.#offset += bytes.length
    return true
  }

  #token(byte: number, place: number): void {
    if (this.#depth === 1 && this.#name !== undefined && this.#valueStart === -1 && byte !== COLON) {
      this.#valueStart = place
      this.#items = byte === OPEN_BRACKET ? 0 : undefined
    }
    if (byte === QUOTE) {
      this.#inString = true
      if (this.#depth !== 1 || this.#name !== undefined) return
      this.#isNaming = true
      this.#name = ''
      this.#start = place
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (byte === OPEN_BRACE && this.#depth === 2 && this.#items !== undefined) this.#items += 1
      this.#depth += 1
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      this.#depth -= 1
      if (this.#depth > 0) return
      this.#endMember()
      this.#hasEnded = true
    } else if (byte === COMMA && this.#depth === 1) this.#endMember()
  }

  #endMember(): void {
    if (this.#name !== undefined && this.#valueStart !== -1) {
      const { members } = this
      members.push({
        name: this.#name,
        start: this.#start,
        valueStart: this.#valueStart,
        end: this.#inkEnd,
        items: this.#items,
      })
    }
    this.#name = undefined
    this.#valueStart = -1
    this.#items = undefined
  }

  /** Goes on in a string; gives the position behind its closing quote, or the end of the bytes. */
  #string(bytes: Buffer, from: number): number {
    let position = from
    while (position < bytes.length) {
      if (this.#isEscaping) {
        this.#isEscaping = false
        position += 1
        continue
      }
      const quote = bytes.indexOf(QUOTE, position)
      const end = quote === -1 ? bytes.length : quote
      let first = end
      while (first > position && bytes[first - 1] === BACKSLASH) first -= 1
      const isEscaped = (end - first) % 2 === 1
      position = quote === -1 ? end : end + 1
      if (quote === -1) this.#isEscaping = isEscaped
      else if (!isEscaped) {
        this.#closeString(bytes, from, end, position)
        return position
      }
    }
    if (this.#isNaming) this.#name += bytes.toString('latin1', from)
    return position
  }

  #closeString(bytes: Buffer, from: number, end: number, behind: number): void {
    this.#inString = false
    this.#inkEnd = this.#offset + behind
    if (!this.#isNaming) return
    this.#name += bytes.toString('latin1', from, end)
    this.#isNaming = false
  }
}
