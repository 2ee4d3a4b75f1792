/**
 * Reads an amount of dollars; undefined when the field is absent or null.
 * @throws TypeError naming entry and field.
 */
export function dollarsOf(key: string, entry: Readonly<Record<string, unknown>>, field: string): number | undefined {
  const value = entry[field]
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) throw priceError(key, field, value)
  return value
}

/**
 * Reads a JSON object.
 * @throws TypeError naming it when it is none.
 */
export function objectOf(name: string, value: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(value)) throw new TypeError(`${name}: must be an object`)
  return value
}

/** Is this a JSON object, and neither list nor null? */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The error for a price that is no amount of dollars, naming entry and field. */
export function priceError(key: string, field: string, value: unknown): TypeError {
  return new TypeError(`${JSON.stringify(key)}.${field}: ${JSON.stringify(value)} is not a price in dollars`)
}
