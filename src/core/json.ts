import { GatewayError } from './errors.ts'

/** Deepest nesting of arrays and objects that a caller's JSON may have. */
export const MAX_JSON_DEPTH = 64

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/**
 * Reads a caller's JSON body.
 * @throws GatewayError `invalid_json` when it does not parse, `json_too_deep` beyond 64 levels, `invalid_request` for a
 *   `__proto__` member, which would otherwise travel into objects that are copied.
 */
export function parseCallerJson(bytes: Uint8Array): unknown {
  let value: unknown
  try {
    value = JSON.parse(decoder.decode(bytes))
  } catch (cause) {
    throw new GatewayError('invalid_json', { cause })
  }
  assertPlainJson(value, MAX_JSON_DEPTH)
  return value
}

/**
 * Checks an already parsed JSON value for depth and forbidden member names.
 * @throws GatewayError `json_too_deep` or `invalid_request`.
 */
export function assertPlainJson(value: unknown, levelsLeft: number = MAX_JSON_DEPTH): void {
  if (typeof value !== 'object' || value === null) return
  if (levelsLeft === 0) throw new GatewayError('json_too_deep')
  if (Array.isArray(value)) {
    for (const item of value) {
      if (typeof item === 'object' && item !== null) assertPlainJson(item, levelsLeft - 1)
    }
    return
  }
  for (const name of Object.keys(value)) {
    if (name === '__proto__') {
      throw new GatewayError('invalid_request', { message: 'The member name __proto__ is not allowed.', param: name })
    }
    const member = (value as Record<string, unknown>)[name]
    if (typeof member === 'object' && member !== null) assertPlainJson(member, levelsLeft - 1)
  }
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
