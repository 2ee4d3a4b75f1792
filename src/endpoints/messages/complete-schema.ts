import { isJsonObject } from '../../core/json.ts'
import { SCHEMA_MAPS } from '../json-schema.ts'
import { VALUE_MEMBERS } from './strict-schema.ts'

/** Members that other vendors require of a schema by its type. Empty ones allow what a schema without them allows. */
const REQUIRED = { object: 'properties', array: 'items' } as const

/**
 * Adds empty `properties` to objects and empty `items` to arrays that lack them, nested ones included. Messages do not require them.
 * OpenAI answers 400: "object schema missing properties", "array schema missing items". Unchanged parts are not copied.
 */
export function completeSchema<Value>(schema: Value): Value {
  if (Array.isArray(schema)) return changedMembers(schema, Object.entries(schema.map(completeSchema)))
  if (!isJsonObject(schema)) return schema
  const members = Object.entries(schema).map(([name, value]): [string, unknown] => {
    if (VALUE_MEMBERS.has(name)) return [name, value]
    if (!SCHEMA_MAPS.has(name) || !isJsonObject(value)) return [name, completeSchema(value)]
    const named = Object.entries(value).map(([key, one]): [string, unknown] => [key, completeSchema(one)])
    return [name, changedMembers(value, named)]
  })
  const types = Array.isArray(schema['type']) ? schema['type'] : [schema['type']]
  for (const type of ['object', 'array'] as const)
    if (types.includes(type) && schema[REQUIRED[type]] === undefined) members.push([REQUIRED[type], {}])
  return changedMembers(schema, members)
}

function changedMembers<Value extends object>(given: Value, members: readonly (readonly [string, unknown])[]): Value {
  const isSame = members.every(([name, value]) => (given as Record<string, unknown>)[name] === value)
  if (isSame) return given
  return (Array.isArray(given) ? members.map(([, value]) => value) : Object.fromEntries(members)) as Value
}
