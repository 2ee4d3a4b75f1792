import { GatewayError } from './errors.ts'
import { ALWAYS_FITTING_LENGTH, closingQuoteOf, membersWithinBounds } from './json-size.ts'

/** Maximum depth of arrays and objects in a caller's JSON. */
export const MAX_JSON_DEPTH = 64

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })
// Not a Buffer, because the request builders import this file and run in browsers.
const encoder = new TextEncoder()

const COLON = 0x3a
const SPACE = 0x20

/** A caller's JSON body. */
export interface CallerJson {
  readonly value: unknown
  /**
   * JSON text of `value` that every parser reads the same way. The original bytes, or `value` serialized again if an object in
   * them repeats a member name: other parsers may use the first of the repeated members, while `value` has the last.
   */
  readonly bytes: Uint8Array
}

/**
 * Reads a caller's JSON body.
 * @param onText Receives the text of the body after it was parsed.
 * @throws GatewayError `invalid_json` if it does not parse, `json_too_deep` beyond 64 levels, `invalid_request` for a `__proto__`
 *   member, which would reach copied objects, and for more values or members than {@link membersWithinBounds} allows.
 */
export function readCallerJson(bytes: Uint8Array, onText?: (text: string) => void): CallerJson {
  let text: string
  let value: unknown
  let names: number | undefined
  try {
    text = decoder.decode(bytes)
    if (text.length > ALWAYS_FITTING_LENGTH) names = membersWithinBounds(text)
    value = JSON.parse(text)
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? cause : new GatewayError('invalid_json', { cause })
  }
  onText?.(text)
  // The parser keeps one member of each name, so a text with more names than members repeats some names.
  const repeatsNames = (names ?? countWrittenNames(text)) !== checkedMembers(value, MAX_JSON_DEPTH)
  return { value, bytes: repeatsNames ? encoder.encode(JSON.stringify(value)) : bytes }
}

/** Returns the `value` of {@link readCallerJson}, without the bytes. Throws the same errors. */
export function parseCallerJson(bytes: Uint8Array): unknown {
  return readCallerJson(bytes).value
}

/**
 * Checks an already parsed JSON value for depth and forbidden member names.
 * @throws GatewayError `json_too_deep` or `invalid_request`.
 */
export function assertPlainJson(value: unknown, levelsLeft: number = MAX_JSON_DEPTH): void {
  checkedMembers(value, levelsLeft)
}

/** Checks a value, and counts the members of all objects in it. */
function checkedMembers(value: unknown, levelsLeft: number): number {
  if (typeof value !== 'object' || value === null) return 0
  if (levelsLeft === 0) throw new GatewayError('json_too_deep')
  if (Array.isArray(value)) {
    let count = 0
    for (const item of value) {
      if (typeof item === 'object' && item !== null) count += checkedMembers(item, levelsLeft - 1)
    }
    return count
  }
  let count = 0
  // `for in` needs no list of names and is safe here, because parsed JSON inherits no members.
  for (const name in value) {
    count += 1
    if (name === '__proto__') {
      throw new GatewayError('invalid_request', { message: 'The member name __proto__ is not allowed.', param: name })
    }
    const member = (value as Record<string, unknown>)[name]
    if (typeof member === 'object' && member !== null) count += checkedMembers(member, levelsLeft - 1)
  }
  return count
}

/** Returns whether a value is a JSON object (not null, not an array). */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Parses JSON that a vendor sent; returns `undefined` if it is not JSON. */
export function parseVendorJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/**
 * Counts the member names in a valid JSON text at all depths, including repeated ones. Checks only quotes: in valid JSON a string
 * is a name if a colon follows it. Takes linear time.
 */
function countWrittenNames(text: string): number {
  let count = 0
  let open = text.indexOf('"')
  while (open !== -1) {
    let behind = closingQuoteOf(text, open) + 1
    while (text.charCodeAt(behind) <= SPACE) behind += 1
    if (text.charCodeAt(behind) === COLON) count += 1
    open = text.indexOf('"', behind)
  }
  return count
}
