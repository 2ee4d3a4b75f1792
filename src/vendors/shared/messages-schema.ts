import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject } from '../../core/json.ts'
import type { WorkBudget } from '../../core/work-budget.ts'
import { isObjectSchema, SCHEMA_MAPS } from '../../endpoints/json-schema.ts'
import { type JsonSchema, payForVisit, resolveSchema, type SchemaDocument } from './resolve-schema.ts'

/** Members that hold one schema. */
const SCHEMA_MEMBERS: ReadonlySet<string> = new Set(['items'])

/** Members that hold a list of schemas, and their replacement. */
const SCHEMA_LISTS: ReadonlyMap<string, string> = new Map([
  ['anyOf', 'anyOf'],
  ['oneOf', 'anyOf'],
  ['allOf', 'allOf'],
])

/** Members that are copied unchanged. */
const PLAIN_MEMBERS: ReadonlySet<string> = new Set([
  'type',
  'enum',
  'const',
  'default',
  'required',
  'title',
  'description',
  '$ref',
  'pattern',
])

/** Members that describe the schema without constraining values. */
const ANNOTATIONS: ReadonlySet<string> = new Set(['$schema', '$id', '$comment', 'examples', 'additionalProperties'])

const FORMATS: ReadonlySet<unknown> = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
])

/**
 * Merges the `allOf` of a schema, because each part would be closed separately and exclude the others. A lone reference stays;
 * other references are resolved, cycles cut.
 * @param path Path of the schema in the request, for error texts.
 * @throws GatewayError `invalid_request` if the schemas of the request cause too much work.
 */
export function withMergedParts(schema: JsonSchema, path: string, budget: WorkBudget): JsonSchema {
  return merged(schema, [], { root: schema, path, budget })
}

function merged(given: JsonSchema, trail: readonly string[], document: SchemaDocument): JsonSchema {
  const place = Array.isArray(given['allOf']) ? mergedPlace(given, trail, document) : { schema: given, trail }
  payForVisit(place.schema, document)
  const within = (value: unknown): unknown => (isJsonObject(value) ? merged(value, place.trail, document) : value)
  return Object.fromEntries(
    Object.entries(place.schema).map(([member, value]) => {
      if (SCHEMA_LISTS.has(member) && Array.isArray(value)) return [member, value.map(within)]
      if (SCHEMA_MAPS.has(member) && isJsonObject(value)) {
        document.budget.payFor(value, document.path, 1)
        return [member, Object.fromEntries(Object.entries(value).map(([name, one]) => [name, within(one)]))]
      }
      return [member, SCHEMA_MEMBERS.has(member) ? within(value) : value]
    }),
  )
}

function mergedPlace(
  schema: JsonSchema,
  trail: readonly string[],
  document: SchemaDocument,
): ReturnType<typeof resolveSchema> {
  const { allOf, ...own } = schema
  const [part, ...more] = allOf as readonly unknown[]
  const isReference = isJsonObject(part) && typeof part['$ref'] === 'string' && Object.keys(part).length === 1
  if (isReference && more.length === 0 && own['$ref'] === undefined) return { schema: { ...part, ...own }, trail }
  return resolveSchema({ schema, trail }, document)
}

/**
 * Reduces a schema to the subset for structured output (Anthropic, "Structured outputs", limits): every object is closed, `oneOf`
 * becomes `anyOf`, and a limit that the vendor cannot enforce moves to the description, which the model reads.
 */
export function schemaToWire(schema: JsonSchema): JsonSchema {
  const cleaned: JsonSchema = {}
  const limits: string[] = []
  for (const [member, value] of Object.entries(schema)) {
    const list = SCHEMA_LISTS.get(member)
    if (list !== undefined && Array.isArray(value))
      cleaned[list] = [...asList(cleaned[list]), ...value.map(cleanedValue)]
    else if (SCHEMA_MEMBERS.has(member)) cleaned[member] = cleanedValue(value)
    else if (SCHEMA_MAPS.has(member) && isJsonObject(value)) cleaned[member] = cleanedMap(value)
    else if (isTaken(member, value)) cleaned[member] = value
    else if (!ANNOTATIONS.has(member)) limits.push(`${member}: ${exactJsonText(value)}`)
  }
  if (isObjectSchema(cleaned)) cleaned['additionalProperties'] = false
  if (limits.length > 0) cleaned['description'] = describe(cleaned['description'], limits)
  return cleaned
}

/**
 * Whether the schema contains an object that names no members and so allows any. Structured output cannot express that: once
 * closed, such an object is always empty.
 */
export function hasOpenObjects(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.some(hasOpenObjects)
  if (!isJsonObject(schema)) return false
  const { properties, additionalProperties } = schema
  const namesMembers = isJsonObject(properties) && Object.keys(properties).length > 0
  if (isObjectSchema(schema) && !namesMembers && additionalProperties !== false) return true
  return Object.entries(schema).some(([member, value]) => {
    if (SCHEMA_MAPS.has(member)) return isJsonObject(value) && Object.values(value).some(hasOpenObjects)
    return (SCHEMA_MEMBERS.has(member) || SCHEMA_LISTS.has(member)) && hasOpenObjects(value)
  })
}

function isTaken(member: string, value: unknown): boolean {
  if (member === 'format') return FORMATS.has(value)
  if (member === 'minItems') return value === 0 || value === 1
  return PLAIN_MEMBERS.has(member)
}

function cleanedValue(value: unknown): unknown {
  return isJsonObject(value) ? schemaToWire(value) : value
}

function cleanedMap(schemas: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(schemas).map(([name, value]) => [name, cleanedValue(value)]))
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function describe(description: unknown, limits: readonly string[]): string {
  const note = `(${limits.join(', ')})`
  return typeof description === 'string' && description !== '' ? `${description} ${note}` : note
}
