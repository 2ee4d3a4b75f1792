import type { WorkBudget } from '../../core/calls-in-flight.ts'
import { isJsonObject } from '../../core/json.ts'

/** A JSON Schema as a caller wrote it. */
export type JsonSchema = Record<string, unknown>

/**
 * Levels that a visit reads of members with schemas, each of which is paid for when it is visited itself. Definitions are not read: their
 * schemas are visited through references.
 */
const LEVELS_READ: ReadonlyMap<string, number> = new Map([
  ...['properties', 'items', 'anyOf', 'oneOf', 'allOf'].map((name) => [name, 1] as const),
  ...['$defs', 'definitions'].map((name) => [name, 0] as const),
])

/** Units of a visit in addition to what it reads, because each schema is written as a separate object. */
const VISIT_UNITS = 8

/** Deepest chain of references within references. */
const MAX_REFERENCES = 32

/** One conversion: the document that references point into, and the budget that each step pays from. */
export interface SchemaDocument {
  readonly root: unknown
  /** Path of the schema in the request, for error texts. */
  readonly path: string
  /** Shared by all schemas of the request. */
  readonly budget: WorkBudget
}

/** A place in a document: the schema there and the references that led to it. */
export interface SchemaPlace {
  readonly schema: JsonSchema
  readonly trail: readonly string[]
}

/**
 * Pays for a visit of a schema: its own members and values, and the number of its subschemas.
 * @throws GatewayError `invalid_request` if the schemas of the request cause too much work.
 */
export function payForVisit(schema: JsonSchema, { budget, path }: SchemaDocument): void {
  budget.pay(VISIT_UNITS, path)
  for (const name in schema) {
    budget.payFor(name, path)
    budget.payFor(schema[name], path, LEVELS_READ.get(name))
  }
}

/**
 * A schema with its `$ref` and `allOf` resolved in place; their sibling members are merged in. A circular reference is cut:
 * only the type and description of its target remain.
 * @throws GatewayError `invalid_request` if the schemas of the request cause too much work.
 */
export function resolveSchema(place: SchemaPlace, document: SchemaDocument): SchemaPlace {
  payForVisit(place.schema, document)
  const followed = followReference(place, document)
  if (!Array.isArray(followed.schema['allOf'])) return followed
  const { allOf, ...own } = followed.schema
  const trail = new Set(followed.trail)
  let merged: JsonSchema = {}
  for (const member of allOf as readonly unknown[]) {
    if (!isJsonObject(member)) continue
    const resolved = resolveSchema({ schema: member, trail: followed.trail }, document)
    document.budget.pay(resolved.trail.length, document.path)
    for (const reference of resolved.trail) trail.add(reference)
    merged = mergeSchemas(merged, resolved.schema, document)
  }
  return { schema: mergeSchemas(merged, own, document), trail: [...trail] }
}

/** Merges two schemas that both apply: properties and required names are joined; for everything else the second one counts. */
export function mergeSchemas(first: JsonSchema, second: JsonSchema, document: SchemaDocument): JsonSchema {
  payForCopy(first, document)
  payForCopy(second, document)
  const merged: JsonSchema = { ...first, ...second }
  if (isJsonObject(first['properties']) && isJsonObject(second['properties'])) {
    merged['properties'] = { ...first['properties'], ...second['properties'] }
  }
  if (Array.isArray(first['required']) && Array.isArray(second['required'])) {
    merged['required'] = [...new Set([...first['required'], ...second['required']])]
  }
  return merged
}

/** Charges the budget for a copy of a schema's own members and of what {@link mergeSchemas} copies with them. */
function payForCopy(schema: JsonSchema, { budget, path }: SchemaDocument): void {
  const { properties, required } = schema
  budget.pay(Object.keys(schema).length, path)
  if (isJsonObject(properties)) budget.pay(Object.keys(properties).length, path)
  if (Array.isArray(required)) budget.pay(required.length, path)
}

function followReference(place: SchemaPlace, document: SchemaDocument): SchemaPlace {
  if (typeof place.schema['$ref'] !== 'string') return place
  const { $ref: reference, ...siblings } = place.schema as { readonly $ref: string }
  document.budget.pay(place.trail.length + reference.length / 4, document.path)
  const target = referencedSchema(document.root, reference)
  if (target === undefined) return { schema: { type: 'object', ...siblings }, trail: place.trail }
  if (place.trail.includes(reference) || place.trail.length >= MAX_REFERENCES) {
    const { type = 'object', description } = target
    const schema = { type, ...(description === undefined ? {} : { description }), ...siblings }
    payForVisit(schema, document)
    return { schema, trail: place.trail }
  }
  return resolveSchema(
    { schema: mergeSchemas(target, siblings, document), trail: [...place.trail, reference] },
    document,
  )
}

/**
 * The target of a local JSON pointer (`#`, `#/$defs/Node`) in a schema; undefined for anything else, such as a pointer into
 * another document. Only own members are followed.
 */
function referencedSchema(root: unknown, reference: string): Record<string, unknown> | undefined {
  if (reference !== '#' && !reference.startsWith('#/')) return undefined
  let target: unknown = root
  for (const step of reference.split('/').slice(1)) {
    const name = memberName(step)
    if (typeof target !== 'object' || target === null || !Object.hasOwn(target, name)) return undefined
    target = (target as Record<string, unknown>)[name]
  }
  return isJsonObject(target) ? target : undefined
}

function memberName(step: string): string {
  return percentDecoded(step).replaceAll('~1', '/').replaceAll('~0', '~')
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // A lone percent sign is part of the name.
    return text
  }
}
