import { GatewayError } from './errors.ts'
import { countWrittenNames } from './json-names.ts'

/** Deepest nesting of arrays and objects that a caller's JSON may have. */
export const MAX_JSON_DEPTH = 64

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })
// Not a Buffer: the builders of requests import this file too, and run in browsers.
const encoder = new TextEncoder()

/** A caller's JSON body. */
export interface CallerJson {
  readonly value: unknown
  /**
   * A text of that value which all readers read alike. As it came, but where some object in it, at any depth, has two
   * members of one name: others may take the first where `value` holds the last, so it is written again from `value`.
   */
  readonly bytes: Uint8Array
}

/**
 * Reads a caller's JSON body.
 * @throws GatewayError `invalid_json` when it does not parse, `json_too_deep` beyond 64 levels, `invalid_request` for a
 *   `__proto__` member, which would otherwise travel into objects that are copied.
 */
export function readCallerJson(bytes: Uint8Array): CallerJson {
  let text: string
  let value: unknown
  try {
    text = decoder.decode(bytes)
    value = JSON.parse(text)
  } catch (cause) {
    throw new GatewayError('invalid_json', { cause })
  }
  // Parsing leaves one member of each name, so a text with more names than the value has members repeats some.
  const repeatsNames = countWrittenNames(text) !== checkedMembers(value, MAX_JSON_DEPTH)
  return { value, bytes: repeatsNames ? encoder.encode(JSON.stringify(value)) : bytes }
}

/** The value of {@link readCallerJson}, for those who pass on nothing but the value. Throws as it does. */
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
  const names = Object.keys(value)
  let count = names.length
  for (const name of names) {
    if (name === '__proto__') {
      throw new GatewayError('invalid_request', { message: 'The member name __proto__ is not allowed.', param: name })
    }
    const member = (value as Record<string, unknown>)[name]
    if (typeof member === 'object' && member !== null) count += checkedMembers(member, levelsLeft - 1)
  }
  return count
}

/** True for a JSON object (not null, not an array). */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Reads JSON that a vendor sent; undefined when it is not JSON. */
export function parseVendorJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
