import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject } from '../../core/json.ts'
import type { WorkBudget } from '../../core/work-budget.ts'
import { type JsonSchema, resolveSchema, type SchemaDocument, type SchemaPlace } from './resolve-schema.ts'

/** Units of a property that is compared with those of other alternatives. */
const UNITS_PER_PROPERTY = 6

const COMBINATIONS = ['allOf', 'anyOf', 'oneOf'] as const

/**
 * The schema of a tool's input as one object, because the vendor refuses all others: "input_schema does not support oneOf, allOf, or anyOf
 * at the top level". Alternatives become one object with the members of all; what each of them requires stands in the description, where
 * the model reads it. Schemas further inside stay as they are.
 * @param path Of the schema in the request, for error texts.
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

/** A member that several schemas describe in different ways may be as any of them says. */
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
