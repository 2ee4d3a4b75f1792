import type { WorkBudget } from '../../core/calls-in-flight.ts'
import { ExactNumber, exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject, objectOf } from '../../core/json.ts'
import {
  type JsonSchema,
  mergeSchemas,
  resolveSchema,
  type SchemaDocument,
  type SchemaPlace,
} from '../shared/resolve-schema.ts'

/** The subset of OpenAPI's schema that the vendor accepts (Gemini API, "Schema"). It answers other keywords with 400. */
export interface OpenApiSchema {
  type?: 'STRING' | 'NUMBER' | 'INTEGER' | 'BOOLEAN' | 'ARRAY' | 'OBJECT'
  description?: string
  nullable?: boolean
  enum?: string[]
  format?: string
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number | ExactNumber
  maximum?: number | ExactNumber
  items?: OpenApiSchema
  minItems?: number
  maxItems?: number
  properties?: Record<string, OpenApiSchema>
  required?: string[]
  anyOf?: OpenApiSchema[]
}

/**
 * Writes a JSON Schema in the vendor's subset. References are resolved (cycles cut), `oneOf` becomes `anyOf`, `allOf` is merged,
 * null becomes `nullable`. Rules outside the subset are added to the description (values, defaults, formats, open bounds) or
 * dropped, so the result never allows less than the schema.
 * @param path Path of the schema in the request, for error texts.
 * @throws GatewayError `invalid_request` if the schemas of the request cause too much work.
 */
export function schemaToWire(schema: unknown, path: string, budget: WorkBudget): OpenApiSchema {
  return convert(schema, [], { root: schema, path, budget })
}

/**
 * Converts the parameters of a function, which must be an object with properties. Returns `undefined` if there are none.
 * Alternatives at the top become one object that requires only the members required by all of them.
 * @throws GatewayError as {@link schemaToWire}.
 */
export function parametersToWire(schema: unknown, path: string, budget: WorkBudget): OpenApiSchema | undefined {
  const converted = schemaToWire(schema, path, budget)
  const parameters = converted.anyOf === undefined ? converted : unitedObject(converted.anyOf)
  if (parameters.type === 'OBJECT' && parameters.properties === undefined) return undefined
  return parameters
}

function convert(node: unknown, trail: readonly string[], document: SchemaDocument): OpenApiSchema {
  const place = resolveSchema({ schema: objectOf(node), trail }, document)
  const { schema } = place
  const alternatives = alternativesOf(schema)
  if (alternatives !== undefined) return convertAlternatives(place, alternatives, document)
  const types = schemaTypes(schema)
  const [type] = types
  if (types.length > 1) {
    const alternativesByType = types.map((one) => ({ type: one }))
    return convertAlternatives(place, alternativesByType, document)
  }
  // The vendor requires a type. A string can carry any value as JSON text.
  const converted = convertType(type ?? 'string', place, document)
  if (allowsNull(schema)) converted.nullable = true
  return converted
}

function alternativesOf(schema: JsonSchema): unknown[] | undefined {
  const { anyOf, oneOf } = schema
  const members = [...(Array.isArray(anyOf) ? anyOf : []), ...(Array.isArray(oneOf) ? oneOf : [])]
  return members.length === 0 ? undefined : members
}

/** The vendor allows no other rule next to `anyOf`, so sibling rules move into each alternative. */
function convertAlternatives(place: SchemaPlace, members: unknown[], document: SchemaDocument): OpenApiSchema {
  const { anyOf: _anyOf, oneOf: _oneOf, description, nullable: _nullable, default: _default, ...shared } = place.schema
  let nullable = allowsNull(place.schema)
  const distinct = new Map<string, OpenApiSchema>()
  for (const member of members) {
    const resolved = resolveSchema({ schema: objectOf(member), trail: place.trail }, document)
    if (isNullOnly(resolved.schema)) {
      nullable = true
      continue
    }
    const converted = convert(mergeSchemas(shared, resolved.schema, document), resolved.trail, document)
    if (converted.nullable === true) nullable = true
    delete converted.nullable
    const written = exactJsonText(converted)
    document.budget.payForText(written.length, document.path)
    distinct.set(written, converted)
  }
  const [only, ...others] = distinct.values()
  const united: OpenApiSchema = only !== undefined && others.length === 0 ? only : { anyOf: [...distinct.values()] }
  if (united.anyOf?.length === 0) return { type: 'STRING', ...described(description, []), nullable: true }
  Object.assign(united, described(description ?? united.description, defaultNotes(place.schema)))
  if (nullable) united.nullable = true
  return united
}

function convertType(type: JsonType, place: SchemaPlace, document: SchemaDocument): OpenApiSchema {
  const { schema } = place
  const notes: string[] = []
  const converted: OpenApiSchema = { type: type.toUpperCase() as NonNullable<OpenApiSchema['type']> }
  if (type === 'object') Object.assign(converted, objectRules(place, document))
  if (type === 'array') Object.assign(converted, arrayRules(place, document))
  if (type === 'string') Object.assign(converted, textRules(schema))
  if (type === 'number' || type === 'integer') {
    const bounds = numberBounds(schema, type)
    Object.assign(converted, bounds.rules)
    notes.push(...bounds.notes)
  }
  const values = allowedValues(schema)?.filter((value) => isOfType(value, type))
  if (values !== undefined && values.length > 0) {
    const texts = values.filter((value): value is string => typeof value === 'string' && value !== '')
    if (texts.length === values.length) converted.enum = texts
    else notes.push(`Allowed values: ${values.map(exactJsonText).join(', ')}.`)
  }
  const { format } = schema
  if (typeof format === 'string' && converted.format === undefined) notes.push(`Format: ${format}.`)
  notes.push(...defaultNotes(schema))
  return Object.assign(converted, described(schema['description'], notes))
}

function defaultNotes(schema: JsonSchema): string[] {
  const value = schema['default']
  const isShown = value !== undefined && (typeof value !== 'object' || isNumber(value))
  return isShown ? [`Default: ${exactJsonText(value)}.`] : []
}

function described(description: unknown, notes: readonly string[]): { description?: string } {
  const text = [...(typeof description === 'string' && description !== '' ? [description] : []), ...notes].join(' ')
  return text === '' ? {} : { description: text }
}

function objectRules(place: SchemaPlace, document: SchemaDocument): OpenApiSchema {
  const { properties, required } = place.schema
  // `false` stands for a property that must be absent.
  const entries = isJsonObject(properties) ? Object.entries(properties).filter(([, value]) => value !== false) : []
  // The vendor rejects an empty list of properties, and required names without a property.
  if (entries.length === 0) return {}
  const names = new Set(entries.map(([name]) => name))
  const requiredNames = Array.isArray(required) ? required.filter((name): name is string => names.has(name)) : []
  return {
    properties: Object.fromEntries(entries.map(([name, value]) => [name, convert(value, place.trail, document)])),
    ...(requiredNames.length === 0 ? {} : { required: requiredNames }),
  }
}

function arrayRules(place: SchemaPlace, document: SchemaDocument): OpenApiSchema {
  const { schema, trail } = place
  const { items, prefixItems } = schema
  const positions = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : undefined
  // Positions cannot be expressed, so every item may match the schema of any position.
  const item = positions === undefined || positions.length === 0 ? items : { anyOf: positions }
  return { items: convert(item, trail, document), ...counts(schema, ['minItems', 'maxItems']) }
}

function textRules(schema: JsonSchema): OpenApiSchema {
  const { format, pattern } = schema
  return {
    ...(format === 'date-time' ? { format } : {}),
    ...(typeof pattern === 'string' ? { pattern } : {}),
    ...counts(schema, ['minLength', 'maxLength']),
  }
}

function counts(schema: JsonSchema, keywords: readonly (keyof OpenApiSchema & string)[]): OpenApiSchema {
  return Object.fromEntries(
    keywords.flatMap((keyword) => (Number.isSafeInteger(schema[keyword]) ? [[keyword, schema[keyword]]] : [])),
  )
}

function unitedObject(alternatives: readonly OpenApiSchema[]): OpenApiSchema {
  const properties: Record<string, OpenApiSchema> = {}
  let required: string[] | undefined
  for (const alternative of alternatives) {
    Object.assign(properties, alternative.properties)
    const names = new Set(alternative.required)
    required = required === undefined ? [...names] : required.filter((name) => names.has(name))
  }
  return {
    type: 'OBJECT',
    ...(Object.keys(properties).length === 0 ? {} : { properties }),
    ...(required === undefined || required.length === 0 ? {} : { required }),
  }
}

/** Number rules of the vendor's subset, and rules that only the description can express. */
interface NumberBounds {
  readonly rules: Pick<OpenApiSchema, 'minimum' | 'maximum' | 'format'>
  readonly notes: readonly string[]
}

const FORMATS: Readonly<Record<'number' | 'integer', readonly unknown[]>> = {
  number: ['float', 'double'],
  integer: ['int32', 'int64'],
}

/**
 * Returns the bounds of a number. The subset has only closed bounds: an open bound of an integer moves by one, an open bound of a
 * fraction stays and is added to the description. Both the number form and the older boolean form of open bounds are read.
 */
function numberBounds(schema: JsonSchema, type: 'number' | 'integer'): NumberBounds {
  const rules: NumberBounds['rules'] = {}
  const notes: string[] = []
  const { multipleOf, format } = schema
  const minimum = bound(schema['minimum'], schema['exclusiveMinimum'], 1)
  const maximum = bound(schema['maximum'], schema['exclusiveMaximum'], -1)
  if (minimum !== undefined) {
    rules.minimum = minimum.open && type === 'integer' ? nextInteger(minimum.value, 1) : minimum.value
    if (minimum.open && type === 'number') notes.push(`Greater than ${minimum.value}.`)
  }
  if (maximum !== undefined) {
    rules.maximum = maximum.open && type === 'integer' ? nextInteger(maximum.value, -1) : maximum.value
    if (maximum.open && type === 'number') notes.push(`Less than ${maximum.value}.`)
  }
  if (isNumber(multipleOf)) notes.push(`Multiple of ${multipleOf}.`)
  if (typeof format === 'string' && FORMATS[type].includes(format)) rules.format = format
  return { rules, notes }
}

/** Returns the tighter of a closed and an open bound. `direction` is 1 for lower bounds and -1 for upper ones. */
function bound(
  closed: unknown,
  open: unknown,
  direction: 1 | -1,
): { value: number | ExactNumber; open: boolean } | undefined {
  const closedValue = isNumber(closed) ? closed : undefined
  if (isNumber(open)) {
    const closedIsTighter = closedValue !== undefined && Number(closedValue) * direction > Number(open) * direction
    return closedIsTighter ? { value: closedValue, open: false } : { value: open, open: true }
  }
  return closedValue === undefined ? undefined : { value: closedValue, open: open === true }
}

const EXACT_INTEGER = /^-?\d{1,40}$/

/** Returns the closest integer above (1) or below (-1) a number. */
function nextInteger(value: number | ExactNumber, direction: 1 | -1): number | ExactNumber {
  if (value instanceof ExactNumber && EXACT_INTEGER.test(value.text))
    return new ExactNumber(String(BigInt(value.text) + BigInt(direction)))
  const number = Number(value)
  return direction === 1 ? Math.floor(number) + 1 : Math.ceil(number) - 1
}

function isNumber(value: unknown): value is number | ExactNumber {
  return typeof value === 'number' || value instanceof ExactNumber
}

/** The types of JSON Schema except `null`. */
type JsonType = 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object'

const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object'])

/** Keywords of a single type, which imply the type if it is not stated. */
const KEYWORDS_BY_TYPE: readonly (readonly [type: JsonType, keywords: readonly string[]])[] = [
  ['object', ['properties', 'required', 'additionalProperties', 'patternProperties', 'propertyNames']],
  ['array', ['items', 'prefixItems', 'minItems', 'maxItems', 'contains', 'uniqueItems']],
  ['string', ['pattern', 'minLength', 'maxLength', 'format', 'contentEncoding']],
  ['number', ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']],
]

/** Returns the types that a schema states or implies by its values or keywords. Empty if it allows anything. */
function schemaTypes(schema: JsonSchema): JsonType[] {
  const stated = Array.isArray(schema['type']) ? schema['type'] : [schema['type']]
  const known = stated.filter(isJsonType)
  if (known.length > 0) return [...new Set(known)]
  const values = allowedValues(schema)
  if (values !== undefined) return [...new Set(values.map(typeOfValue).filter(isJsonType))]
  const implied = KEYWORDS_BY_TYPE.find(([, keywords]) => keywords.some((keyword) => schema[keyword] !== undefined))
  return implied === undefined ? [] : [implied[0]]
}

/** Returns the values that a schema lists (`enum`, `const`), null included, or `undefined` if it lists none. */
function allowedValues(schema: JsonSchema): unknown[] | undefined {
  if (schema['const'] !== undefined) return [schema['const']]
  return Array.isArray(schema['enum']) ? schema['enum'] : undefined
}

/** Whether the value may be null. */
function allowsNull(schema: JsonSchema): boolean {
  const { type, nullable } = schema
  if (nullable === true || type === 'null' || (Array.isArray(type) && type.includes('null'))) return true
  return type === undefined && allowedValues(schema)?.includes(null) === true
}

/** Whether a schema allows only null. */
function isNullOnly(schema: JsonSchema): boolean {
  const { type } = schema
  if (type === 'null' || (Array.isArray(type) && type.every((one) => one === 'null'))) return true
  return type === undefined && allowedValues(schema)?.every((value) => value === null) === true
}

/** Whether a value has this type. Integers are numbers too. */
function isOfType(value: unknown, type: JsonType): boolean {
  const own = typeOfValue(value)
  return own === type || (type === 'number' && own === 'integer')
}

function typeOfValue(value: unknown): JsonType | 'null' {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (isNumber(value)) return Number.isInteger(Number(value)) ? 'integer' : 'number'
  if (typeof value === 'string' || typeof value === 'boolean') return typeof value as 'string' | 'boolean'
  return 'object'
}

function isJsonType(value: unknown): value is JsonType {
  return TYPES.has(value)
}
