import type { JsonSchema } from './resolve-schema.ts'

/** What the vendor's subset can say about a number, and what only the description can. */
export interface NumberBounds {
  readonly rules: { minimum?: number; maximum?: number; format?: string }
  readonly notes: readonly string[]
}

const FORMATS: Readonly<Record<'number' | 'integer', readonly unknown[]>> = {
  number: ['float', 'double'],
  integer: ['int32', 'int64'],
}

/**
 * Bounds of a number. The subset has closed bounds only: an open bound of a whole number moves by one, that of a fraction
 * stays and is told in the description. Both the number form of open bounds and the older boolean form are read.
 */
export function numberBounds(schema: JsonSchema, type: 'number' | 'integer'): NumberBounds {
  const rules: NumberBounds['rules'] = {}
  const notes: string[] = []
  const { multipleOf, format } = schema
  const minimum = bound(schema['minimum'], schema['exclusiveMinimum'], 1)
  const maximum = bound(schema['maximum'], schema['exclusiveMaximum'], -1)
  if (minimum !== undefined) {
    rules.minimum = minimum.open && type === 'integer' ? Math.floor(minimum.value) + 1 : minimum.value
    if (minimum.open && type === 'number') notes.push(`Greater than ${minimum.value}.`)
  }
  if (maximum !== undefined) {
    rules.maximum = maximum.open && type === 'integer' ? Math.ceil(maximum.value) - 1 : maximum.value
    if (maximum.open && type === 'number') notes.push(`Less than ${maximum.value}.`)
  }
  if (typeof multipleOf === 'number') notes.push(`Multiple of ${multipleOf}.`)
  if (typeof format === 'string' && FORMATS[type].includes(format)) rules.format = format
  return { rules, notes }
}

/** The tighter of a closed and an open bound; `direction` is 1 for lower bounds and -1 for upper ones. */
function bound(closed: unknown, open: unknown, direction: 1 | -1): { value: number; open: boolean } | undefined {
  const closedValue = typeof closed === 'number' ? closed : undefined
  if (typeof open === 'number') {
    const closedIsTighter = closedValue !== undefined && closedValue * direction > open * direction
    return closedIsTighter ? { value: closedValue, open: false } : { value: open, open: true }
  }
  return closedValue === undefined ? undefined : { value: closedValue, open: open === true }
}
