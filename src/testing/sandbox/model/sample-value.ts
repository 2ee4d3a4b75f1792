import { asList, asObject, asText, isGiven } from '../request-fields.ts'

type Schema = Readonly<Record<string, unknown>>

// Recursive schemas end here; optional members are left out anyway, so real ones never get this deep.
const MAX_DEPTH = 12

const FORMATS: Readonly<Record<string, string>> = {
  date: '2026-01-15',
  'date-time': '2026-01-15T09:30:00Z',
  time: '09:30:00Z',
  email: 'reader@example.com',
  uri: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000001',
}

/**
 * A value that fits a JSON Schema (or Google's OpenAPI subset, upper-case types included), always the same one. Objects
 * get their required members only; `name` is the member the value is for and shows in texts.
 */
export function sampleValue(schema: Schema, name = 'value', root: Schema = schema, depth = 0): unknown {
  if (depth > MAX_DEPTH) return null
  const target = asText(schema['$ref'])
  if (target !== '') return sampleValue(resolve(target, root), name, root, depth + 1)
  if ('const' in schema) return schema['const']
  const [choice] = asList(schema['enum'])
  if (choice !== undefined) return choice
  if (isGiven(schema['default'])) return schema['default']
  const [alternative] = [...asList(schema['anyOf']), ...asList(schema['oneOf'])]
  if (alternative !== undefined) return sampleValue(asObject(alternative), name, root, depth + 1)
  const parts = asList(schema['allOf'])
  if (parts.length > 0) return sampleValue(merge(schema, parts), name, root, depth + 1)
  switch (typeOf(schema)) {
    case 'object':
      return sampleObject(schema, root, depth)
    case 'array': {
      const count = Math.max(1, limit(schema, 'minItems') ?? 1)
      return Array.from({ length: count }, () => sampleValue(asObject(schema['items']), name, root, depth + 1))
    }
    case 'integer':
      return sampleNumber(schema, 1)
    case 'number':
      return sampleNumber(schema, 1.5)
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return sampleText(schema, name)
  }
}

function sampleObject(schema: Schema, root: Schema, depth: number): Record<string, unknown> {
  const properties = asObject(schema['properties'])
  const members = asList(schema['required']).map((name) => asText(name))
  return Object.fromEntries(
    members.map((name) => [name, sampleValue(asObject(properties[name]), name, root, depth + 1)]),
  )
}

function sampleNumber(schema: Schema, usual: number): number {
  const least = limit(schema, 'minimum') ?? (limit(schema, 'exclusiveMinimum') ?? Number.NEGATIVE_INFINITY) + 1
  const most = limit(schema, 'maximum') ?? (limit(schema, 'exclusiveMaximum') ?? Number.POSITIVE_INFINITY) - 1
  return Math.min(Math.max(usual, least), Math.max(most, least))
}

function sampleText(schema: Schema, name: string): string {
  const text = FORMATS[asText(schema['format'])] ?? `sample ${name}`
  return text.padEnd(limit(schema, 'minLength') ?? 0, '.').slice(0, limit(schema, 'maxLength'))
}

// Google writes lengths as strings ("5"), JSON Schema as numbers.
function limit(schema: Schema, keyword: string): number | undefined {
  const value = schema[keyword]
  return value === undefined || Number.isNaN(Number(value)) ? undefined : Number(value)
}

function typeOf(schema: Schema): string {
  const type = schema['type']
  const first = Array.isArray(type) ? type.find((entry) => entry !== 'null') : type
  if (first === undefined && 'properties' in schema) return 'object'
  return asText(first).toLowerCase()
}

function merge(schema: Schema, parts: readonly unknown[]): Schema {
  const { allOf: _, ...own } = schema
  const all = [own, ...parts.map(asObject)]
  return {
    ...Object.assign({}, ...all),
    properties: Object.assign({}, ...all.map((part) => asObject(part['properties']))),
    required: [...new Set(all.flatMap((part) => asList(part['required'])))],
  }
}

function resolve(pointer: string, root: Schema): Schema {
  let place: unknown = root
  for (const step of pointer.replace(/^#\/?/, '').split('/')) {
    if (step !== '') place = asObject(place)[decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')]
  }
  return asObject(place)
}
