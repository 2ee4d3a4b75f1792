import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject } from '../../core/json.ts'
import type { WorkBudget } from '../../core/work-budget.ts'
import { type JsonSchema, resolveSchema, type SchemaDocument, type SchemaPlace } from './resolve-schema.ts'

/** Units of work to compare a property with those of other alternatives. */
const UNITS_PER_PROPERTY = 6

const COMBINATIONS = ['allOf', 'anyOf', 'oneOf'] as const

/**
 * Returns the schema of a tool's input as one object, because the vendor rejects others: "input_schema does not support oneOf,
 * allOf, or anyOf at the top level". Alternatives become one object with the members of all, and the description lists what each of
 * them requires. Nested schemas stay unchanged.
 * @param path Path of the schema in the request, for error texts.
 * @throws GatewayError `invalid_request` if the schemas of the request cause too much work.
 */
export function toolInputSchema(schema: JsonSchema, path: string, budget: WorkBudget): JsonSchema {
  const isOneObject = COMBINATIONS.every((name) => !Array.isArray(schema[name]))
  return isOneObject ? schema : oneObject({ schema, trail: [] }, { root: schema, path, budget })
}

function oneObject(given: SchemaPlace, document: SchemaDocument): JsonSchema {
  const { schema, trail } = resolveSchema(given, document)
  const { anyOf, oneOf, ...own } = schema
  const alternatives = [...listOf(anyOf), ...listOf(oneOf)]
    .filter(isJsonObject)
    .map((alternative) => oneObject({ schema: alternative, trail }, document))
  if (alternatives.length === 0) return own
  const needs = alternatives.map(({ required }) => listOf(required))
  const [first = [], ...others] = needs
  let ofAll: readonly unknown[] = first
  for (const names of others.map((list) => new Set(list))) ofAll = ofAll.filter((name) => names.has(name))
  const required = [...new Set([...listOf(own['required']), ...ofAll])]
  return {
    ...own,
    type: 'object',
    properties: unitedProperties([own, ...alternatives], document),
    ...(required.length === 0 ? {} : { required }),
    ...(needs.some((names) => names.length > ofAll.length)
      ? { description: described(own['description'], needs) }
      : {}),
  }
}

/** A member with several different schemas may match any of them. */
function unitedProperties(schemas: readonly JsonSchema[], { budget, path }: SchemaDocument): JsonSchema {
  const found = new Map<string, Map<string, unknown>>()
  for (const { properties } of schemas)
    for (const [name, property] of Object.entries(isJsonObject(properties) ? properties : {})) {
      const kinds = found.get(name) ?? new Map<string, unknown>()
      const written = exactJsonText(property)
      budget.pay(UNITS_PER_PROPERTY, path)
      budget.payForText(written.length, path)
      found.set(name, kinds.set(written, property))
    }
  return Object.fromEntries(
    [...found].map(([name, kinds]) => [
      name,
      kinds.size === 1 ? [...kinds.values()][0] : { anyOf: [...kinds.values()] },
    ]),
  )
}

function described(description: unknown, needs: readonly (readonly unknown[])[]): string {
  const note = `(give the members of one of these lists: ${needs.map((names) => JSON.stringify(names)).join(' or ')})`
  return typeof description === 'string' && description !== '' ? `${description} ${note}` : note
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
