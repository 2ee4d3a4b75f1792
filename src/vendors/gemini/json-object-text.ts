import { GatewayError } from '../../core/errors.ts'
import { assertPlainJson, isJsonObject, parseVendorJson } from '../../core/json.ts'

/**
 * Reads text that may be a JSON object, such as arguments a model wrote. Undefined when it is something else or nests too
 * deep to be written again.
 */
export function jsonObjectText(text: string): Record<string, unknown> | undefined {
  if (!text.trimStart().startsWith('{')) return undefined
  const value = parseVendorJson(text)
  return isJsonObject(value) && isPlain(value) ? value : undefined
}

/** Does a JSON value hold a whole number that a double cannot hold exactly, such as a 19-digit id? */
export function holdsInexactInteger(value: unknown): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value)
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsInexactInteger)
}

function isPlain(value: unknown): boolean {
  try {
    assertPlainJson(value)
    return true
  } catch (error) {
    if (GatewayError.isInstance(error)) return false
    throw error
  }
}
