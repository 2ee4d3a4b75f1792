import { isJsonObject } from '../../core/json.ts'
import { isObjectSchema, SCHEMA_MAPS } from '../json-schema.ts'

/** Members that hold values, which contain no schemas. */
export const VALUE_MEMBERS: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples', 'required'])

/** Members that strict schemas must not have. */
const REFUSED: ReadonlySet<string> = new Set([
  'allOf',
  'not',
  'if',
  'dependentRequired',
  'dependentSchemas',
  'patternProperties',
  // Not in the guide's list, but rejected: "'oneOf' is not permitted", and likewise below.
  'oneOf',
  'propertyNames',
  'contains',
  'uniqueItems',
  'minLength',
  'maxLength',
])

/**
 * Whether a chat may call a schema strict: every object must name its members, require all of them and allow no others
 * (OpenAI, "Structured outputs"). In Messages, members may be optional.
 */
export function isStrictSchema(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.every(isStrictSchema)
  if (!isJsonObject(schema)) return true
  if (isObjectSchema(schema) && !requiresAll(schema)) return false
  return Object.entries(schema).every(([member, value]) => {
    if (REFUSED.has(member)) return false
    if (VALUE_MEMBERS.has(member)) return true
    return isStrictSchema(SCHEMA_MAPS.has(member) && isJsonObject(value) ? Object.values(value) : value)
  })
}

function requiresAll({ properties, required, additionalProperties }: Record<string, unknown>): boolean {
  const names = isJsonObject(properties) ? Object.keys(properties) : []
  const needed = new Set(Array.isArray(required) ? required : [])
  return additionalProperties === false && names.every((name) => needed.has(name))
}
