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
 * Where the values of an object's own members of these names stand in its text. Left out: a member that is not there, or whose
 * name is written with escapes. For JSON that has been parsed before, and in which no object has two members of one name, as
 * `VendorCall.bytes` promises. One pass, which ends behind the last of them.
 */
export function memberSpans<Name extends string>(
  json: Buffer,
  names: readonly Name[],
): Partial<Record<Name, ByteSpan>> {
  const spans: Partial<Record<Name, ByteSpan>> = {}
  let missing = names.length
  let position = behindBlanks(json, 0)
  if (json[position] !== OPEN_BRACE) return spans
  position += 1
  while (missing > 0) {
    position = behindBlanks(json, position)
    if (json[position] === COMMA) position = behindBlanks(json, position + 1)
    if (json[position] !== QUOTE) return spans
    const nameStart = position + 1
    const close = closingQuote(json, position, json.length)
    const colon = behindBlanks(json, close + 1)
    if (close === -1 || json[colon] !== COLON) return spans
    const start = behindBlanks(json, colon + 1)
    const end = endOfValue(json, start)
    if (end === undefined) return spans
    const found = names.find((name) => isNamed(json, nameStart, close, name))
    if (found !== undefined) {
      spans[found] = { start, end }
      missing -= 1
    }
    position = end
  }
  return spans
}

function isNamed(json: Buffer, start: number, end: number, name: string): boolean {
  if (end - start !== name.length) return false
  for (let index = 0; index < name.length; index++) if (json[start + index] !== name.charCodeAt(index)) return false
  return true
}

/** Undefined for a value that does not end. */
function endOfValue(json: Buffer, start: number): number | undefined {
  let depth = 0
  let position = start
  while (position < json.length) {
    const byte = json[position]
    if (byte === QUOTE) {
      const close = closingQuote(json, position, json.length)
      if (close === -1) return undefined
      position = close
      if (depth === 0) return position + 1
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth += 1
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      // Behind a number or a word: the end of the object in which it stands.
      if (depth === 0) return position
      depth -= 1
      if (depth === 0) return position + 1
    } else if (depth === 0 && (byte === COMMA || isJsonBlank(byte))) return position
    position += 1
  }
  return undefined
}

function behindBlanks(json: Buffer, from: number): number {
  let position = from
  while (isJsonBlank(json[position])) position += 1
  return position
}
