import { Buffer } from 'node:buffer'
import { BACKSLASH, COLON, decodedByteLength, QUOTE, SPACE, skipBlanks } from './json-cursor.ts'

const DIGIT_0 = 0x30
const DIGIT_9 = 0x39

/** Maximum number of kinds of events known at a time: for several choices, and for text and reasoning. */
const MAX_KINDS = 4

/** Number of learned events without a match after which the rest of a stream is no longer compared. */
const MAX_MISSES = 16

/** Steps to a value inside of a JSON object. */
export type JsonPath = readonly (string | number)[]

/** Event that occurs repeatedly with the same bytes, except for the values in `holes`. */
interface KnownEvent<Kind> {
  readonly kind: Kind
  /** Bytes before, between and after the values. Quotes of strings belong to them. */
  readonly fixed: readonly Buffer[]
  readonly holes: readonly Hole[]
}

interface Hole {
  readonly path: JsonPath
  readonly isText: boolean
  readonly isNumber: boolean
  readonly start: number
  readonly end: number
}

/**
 * Kinds of events in one stream that differ from an earlier event only in a text, and in a few other strings or whole numbers. They
 * are read without parsing. Other values do not affect the bytes around them, so a conclusion about one event holds for all of
 * them.
 */
export class KnownEvents<Kind> {
  /** Position after the event that matched last. */
  end = 0
  /** Number in the event that matched last, if it has one. */
  number = 0
  readonly #events: KnownEvent<Kind>[] = []
  #misses = 0
  #bytes: Buffer | undefined
  #textStart = 0
  #textEnd = 0
  #isEscaped = false

  /** Returns the kind of the event that begins here, or `undefined` if the event has to be parsed. Texts of other kinds are not empty. */
  match(bytes: Buffer, start: number): Kind | undefined {
    for (let index = 0; index < this.#events.length; index++) {
      const event = this.#events[index]!
      if (!this.#matches(event, bytes, start)) continue
      this.#misses = 0
      this.#bytes = bytes
      return event.kind
    }
    return undefined
  }

  /** Text of the event that matched last, or `undefined` if it is not a valid JSON string. */
  get text(): string | undefined {
    const text = this.#bytes?.toString('utf8', this.#textStart, this.#textEnd)
    if (text === undefined || !this.#isEscaped) return text
    try {
      return JSON.parse(`"${text}"`) as string
    } catch {
      return undefined
    }
  }

  /** UTF-8 length of that text. */
  get textBytes(): number {
    return this.#bytes === undefined ? 0 : decodedByteLength(this.#bytes, this.#textStart, this.#textEnd)
  }

  /** Releases the bytes of the last event, which may be large. */
  release(): void {
    this.#bytes = undefined
  }

  /**
   * Learns the kind of a parsed event with one line of data. Does nothing if a value is written in an unexpected place.
   * @param paths Path of the text, then of other values that may differ. Absent values are skipped.
   * @param fixedBytes Number of bytes at the start of the event that must be the same in all events of the kind. Default 0.
   */
  learn(event: Buffer, value: object, paths: readonly JsonPath[], kind: Kind, fixedBytes = 0): void {
    if (this.#misses >= MAX_MISSES) return
    this.#misses += 1
    const holes = holesIn(event, value, paths)
    if (holes === undefined || holes[0]!.start < fixedBytes) return
    const fixed = fixedBytesOf(event, holes)
    if (!isSameEvent(fixed, holes, value)) return
    this.#events.unshift({ kind, fixed, holes })
    if (this.#events.length > MAX_KINDS) this.#events.pop()
  }

  #matches({ fixed, holes }: KnownEvent<Kind>, bytes: Buffer, start: number): boolean {
    let position = start
    for (let index = 0; index < fixed.length; index++) {
      const piece = fixed[index]!
      if (!isAt(bytes, position, piece)) return false
      position += piece.length
      if (index === holes.length) break
      const { isText, isNumber } = holes[index]!
      const end = isNumber ? this.#numberEnd(bytes, position) : this.#stringEnd(bytes, position, isText)
      if (end === -1) return false
      position = end
    }
    this.end = position
    return true
  }

  #numberEnd(bytes: Buffer, start: number): number {
    let end = start
    this.number = 0
    for (let byte = bytes[end]!; byte >= DIGIT_0 && byte <= DIGIT_9; byte = bytes[end]!) {
      this.number = this.number * 10 + byte - DIGIT_0
      end += 1
    }
    return end === start ? -1 : end
  }

  /** Returns the position of the quote that closes a string, or -1. An event with an empty text is of another kind. */
  #stringEnd(bytes: Buffer, start: number, isText: boolean): number {
    let isEscaped = false
    let position = start
    for (; bytes[position] !== QUOTE; position++) {
      if (position >= bytes.length || bytes[position]! < SPACE) return -1
      if (bytes[position] !== BACKSLASH) continue
      isEscaped = true
      position += 1
      if (bytes[position]! < SPACE) return -1
    }
    if (!isText) return position
    if (position === start) return -1
    this.#textStart = start
    this.#textEnd = position
    this.#isEscaped = isEscaped
    return position
  }
}

/** Length from which a native comparison is faster than a loop, whose first call costs about 100 ns. */
const MIN_NATIVE_LENGTH = 48

function isAt(bytes: Buffer, position: number, piece: Buffer): boolean {
  const end = position + piece.length
  if (piece.length >= MIN_NATIVE_LENGTH)
    return end <= bytes.length && bytes.compare(piece, 0, piece.length, position, end) === 0
  for (let offset = 0; offset < piece.length; offset++) if (bytes[position + offset] !== piece[offset]) return false
  return true
}

/** Returns the places of the values in their order, or `undefined` if one of them is not found. */
function holesIn(event: Buffer, value: object, paths: readonly JsonPath[]): Hole[] | undefined {
  const holes: Hole[] = []
  for (const [index, path] of paths.entries()) {
    const held = valueAt(value, path)
    const isNumber = Number.isSafeInteger(held)
    if (!isNumber && typeof held !== 'string') continue
    const literal = Buffer.from(JSON.stringify(held))
    const found = placeOf(event, String(path.at(-1)), literal)
    if (found === -1) return undefined
    const quote = isNumber ? 0 : 1
    holes.push({ path, isText: index === 0, isNumber, start: found + quote, end: found + literal.length - quote })
  }
  return holes.some(({ isText }) => isText) ? holes.sort((first, second) => first.start - second.start) : undefined
}

/** Returns the position of the value of a member, or -1. */
function placeOf(event: Buffer, name: string, literal: Buffer): number {
  const key = Buffer.from(JSON.stringify(name))
  for (let at = event.indexOf(key); at !== -1; at = event.indexOf(key, at + 1)) {
    const colon = skipBlanks(event, at + key.length)
    const start = skipBlanks(event, colon + 1)
    if (event[colon] === COLON && isAt(event, start, literal)) return start
  }
  return -1
}

function fixedBytesOf(event: Buffer, holes: readonly Hole[]): Buffer[] {
  const ends = [0, ...holes.map(({ end }) => end)]
  return ends.map((end, index) => Buffer.from(event.subarray(end, holes[index]?.start)))
}

/** Whether the event with other values is the same object with these values. Otherwise, the places are those of other members. */
function isSameEvent(fixed: readonly Buffer[], holes: readonly Hole[], value: object): boolean {
  const text = fixed.map((piece, index) => piece.toString('utf8') + otherValue(holes[index])).join('')
  const data = text.split(/\r?\n/).filter((line) => line.startsWith('data:'))
  let other: unknown
  try {
    other = data.length === 1 ? JSON.parse(data[0]!.slice('data:'.length)) : undefined
  } catch {
    return false
  }
  for (const { path, isNumber } of holes) {
    const owner = valueAt(other, path.slice(0, -1)) as Record<string | number, unknown> | undefined
    const last = path.at(-1)!
    if (String(owner?.[last]) !== (isNumber ? OTHER_NUMBER : OTHER_TEXT)) return false
    owner![last] = valueAt(value, path)
  }
  return JSON.stringify(other) === JSON.stringify(value)
}

const OTHER_TEXT = 'other text'
const OTHER_NUMBER = '907'

function otherValue(hole: Hole | undefined): string {
  if (hole === undefined) return ''
  return hole.isNumber ? OTHER_NUMBER : OTHER_TEXT
}

function valueAt(value: unknown, path: JsonPath): unknown {
  let found = value
  for (const step of path) found = (found as Record<string | number, unknown> | null | undefined)?.[step]
  return found
}
