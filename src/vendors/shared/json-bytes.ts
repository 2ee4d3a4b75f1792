import { Buffer } from 'node:buffer'

const SPACE = 0x20
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

// Short strings are cheaper to walk in place; long ones (base64 pictures) to search natively.
const WALK_BYTES = 64

export { asBuffer, joinChunks } from '../../wire/join-chunks.ts'

/** True when `expected` stands at `position`. */
export function startsWith(bytes: Buffer, position: number, expected: Buffer): boolean {
  const end = position + expected.length
  if (end > bytes.length) return false
  if (expected.length > WALK_BYTES) return bytes.compare(expected, 0, expected.length, position, end) === 0
  for (let offset = 0; offset < expected.length; offset++) {
    if (bytes[position + offset] !== expected[offset]) return false
  }
  return true
}

/** True for a blank between tokens: in JSON no other byte up to the space may stand there. False behind the end. */
export function isJsonBlank(byte: number | undefined): boolean {
  return byte !== undefined && byte <= SPACE
}

/** Position of the quote that closes the string opened at `openQuote`; -1 when it does not close before `end`. */
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
    // Backslashes counted no further back than `position`, where an escape cannot be under way.
    let first = quote
    while (first > position && bytes[first - 1] === BACKSLASH) first -= 1
    if ((quote - first) % 2 === 0) return quote
    position = quote + 1
  }
  return -1
}

/** Where a value stands: the first byte, and the one behind the last. */
export interface ByteSpan {
  readonly start: number
  readonly end: number
}

/**
 * Finds the value of the first top-level member called `name` in the text of a JSON object. Only string values are found:
 * undefined for any other value, a name written with escapes, a missing member, or text that is not an object.
 * Members of nested objects, and text inside strings, are never taken for it. Linear, and stops at the find.
 */
export function findTopLevelString(
  bytes: Buffer,
  name: string,
  start = 0,
  end: number = bytes.length,
): ByteSpan | undefined {
  let depth = 0
  let position = start
  while (position < end) {
    const byte = bytes[position]
    if (byte === QUOTE) {
      const close = closingQuote(bytes, position, end)
      if (close === -1) return undefined
      if (depth === 1 && close - position - 1 === name.length) {
        const colon = skipBlanks(bytes, close + 1, end)
        if (bytes[colon] === COLON && bytes.toString('latin1', position + 1, close) === name) {
          return stringAt(bytes, skipBlanks(bytes, colon + 1, end), end)
        }
      }
      position = close
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth += 1
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1
    else if (depth === 0 && !isJsonBlank(byte)) return undefined
    position += 1
  }
  return undefined
}

/** Bytes with one span replaced. */
export function spliceBytes(bytes: Buffer, span: ByteSpan, replacement: Uint8Array | string): Buffer {
  const middle = typeof replacement === 'string' ? Buffer.from(replacement) : replacement
  return Buffer.concat([bytes.subarray(0, span.start), middle, bytes.subarray(span.end)])
}

/**
 * Text of a JSON object with the value of one top-level member replaced. Undefined when the first member called `name`
 * is not the string `from`: where a name stands twice, which of the two counts is the reader's choice.
 */
export function replaceTopLevelString(bytes: Buffer, name: string, from: string, to: string): Buffer | undefined {
  const span = findTopLevelString(bytes, name)
  if (span === undefined || bytes.toString('utf8', span.start, span.end) !== JSON.stringify(from)) return undefined
  return from === to ? bytes : spliceBytes(bytes, span, JSON.stringify(to))
}

function skipBlanks(bytes: Buffer, from: number, end: number): number {
  let position = from
  while (position < end && isJsonBlank(bytes[position])) position += 1
  return position
}

function stringAt(bytes: Buffer, start: number, end: number): ByteSpan | undefined {
  if (bytes[start] !== QUOTE) return undefined
  const close = closingQuote(bytes, start, end)
  return close === -1 ? undefined : { start, end: close + 1 }
}
