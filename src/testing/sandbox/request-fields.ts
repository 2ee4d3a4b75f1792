import { isJsonObject } from '../../core/json.ts'

/** Members of a JSON object that has not been checked. */
export type Fields = Readonly<Record<string, unknown>>

/** Returns the object, or an empty one. */
export function asObject(value: unknown): Fields {
  return isJsonObject(value) ? value : {}
}

/** Returns the list, or an empty one. */
export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Returns the string, or an empty one. */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Returns the number, or `undefined` for anything else. */
export function asNumber(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

/** Whether the field was sent with a value. Vendors read null like an absent field. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** A row of a vendor's table: the accepted values of a field, and the vendor's error for others. */
export interface FieldRule {
  readonly field: string
  readonly takes: (value: unknown) => boolean
  readonly text: string | ((value: unknown) => string)
}

/** Creates a row. */
export function rule(field: string, takes: FieldRule['takes'], text: FieldRule['text']): FieldRule {
  return { field, takes, text }
}

/** Rejects the first field, in the order of the rows, with an unaccepted value. `refuse` throws. */
export function checkFields(
  fields: Fields,
  rules: readonly FieldRule[],
  refuse: (text: string, field: string) => never,
): void {
  for (const { field, takes, text } of rules) {
    const value = fields[field]
    if (isGiven(value) && !takes(value)) refuse(typeof text === 'string' ? text : text(value), field)
  }
}

/** Accepts the listed values. */
export function oneOf(...values: readonly unknown[]): FieldRule['takes'] {
  return (value) => values.includes(value)
}

/** Accepts integers from `least` to `most`. */
export function wholeNumber(least: number, most: number): FieldRule['takes'] {
  return (value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= most
}

/** Accepts numbers from `least` to `most`, and values that are not numbers. */
export function inRange(least: number, most: number): FieldRule['takes'] {
  return (value) => typeof value !== 'number' || (value >= least && value <= most)
}

/** Accepts a JavaScript type. */
export function ofType(type: 'string' | 'number' | 'boolean'): FieldRule['takes'] {
  return (value) => typeof value === type
}

/** Accepts no value. */
export function nothing(): boolean {
  return false
}

/** Returns the names in a text, separated by white space. */
export function names(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}
