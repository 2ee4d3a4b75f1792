import type { JsonSchema } from './resolve-schema.ts'

/** The types of JSON Schema that a value can have, `null` apart. */
export type JsonType = 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object'

const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object'])

/** Keywords that speak of one type only, so that they tell the type where it is not stated. */
const TELLING: readonly (readonly [type: JsonType, keywords: readonly string[]])[] = [
  ['object', ['properties', 'required', 'additionalProperties', 'patternProperties', 'propertyNames']],
  ['array', ['items', 'prefixItems', 'minItems', 'maxItems', 'contains', 'uniqueItems']],
  ['string', ['pattern', 'minLength', 'maxLength', 'format', 'contentEncoding']],
  ['number', ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']],
]

/** The types a schema allows: stated, or told by its values or keywords; empty when it allows anything. */
export function schemaTypes(schema: JsonSchema): JsonType[] {
  const stated = Array.isArray(schema['type']) ? schema['type'] : [schema['type']]
  const known = stated.filter(isJsonType)
  if (known.length > 0) return [...new Set(known)]
  const values = allowedValues(schema)
  if (values !== undefined) return [...new Set(values.map(typeOfValue).filter(isJsonType))]
  const told = TELLING.find(([, keywords]) => keywords.some((keyword) => schema[keyword] !== undefined))
  return told === undefined ? [] : [told[0]]
}

/** The values a schema lists (`enum`, `const`), null included; undefined when it lists none. */
export function allowedValues(schema: JsonSchema): unknown[] | undefined {
  if (schema['const'] !== undefined) return [schema['const']]
  return Array.isArray(schema['enum']) ? schema['enum'] : undefined
}

/** May the value be null? */
export function allowsNull(schema: JsonSchema): boolean {
  const { type, nullable } = schema
  if (nullable === true || type === 'null' || (Array.isArray(type) && type.includes('null'))) return true
  return type === undefined && allowedValues(schema)?.includes(null) === true
}

/** Does a schema allow null and nothing else? */
export function isNullOnly(schema: JsonSchema): boolean {
  const { type } = schema
  if (type === 'null' || (Array.isArray(type) && type.every((one) => one === 'null'))) return true
  return type === undefined && allowedValues(schema)?.every((value) => value === null) === true
}

/** Has a value of the schema this type? Whole numbers are numbers too. */
export function isOfType(value: unknown, type: JsonType): boolean {
  const own = typeOfValue(value)
  return own === type || (type === 'number' && own === 'integer')
}

function typeOfValue(value: unknown): JsonType | 'null' {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  if (typeof value === 'string' || typeof value === 'boolean') return typeof value as 'string' | 'boolean'
  return 'object'
}

function isJsonType(value: unknown): value is JsonType {
  return TYPES.has(value)
}
