import { isJsonObject } from '../../core/json.ts'
import { invalidParameter } from './parameter-errors.ts'

/** A JSON Schema as a caller wrote it. */
export type JsonSchema = Record<string, unknown>

/** References put in place multiply; real schemas stay far below this. */
const MAX_SUBSCHEMAS = 5000

/** Deepest chain of references within references. */
const MAX_REFERENCES = 32

/** One conversion: the document that references point into, and how much of it may still be written. */
export interface SchemaDocument {
  readonly root: unknown
  /** Path of the schema in the request, for error texts. */
  readonly path: string
  subschemasLeft: number
}

/** A place in a document: the schema there and the references that led to it. */
export interface SchemaPlace {
  readonly schema: JsonSchema
  readonly trail: readonly string[]
}

/** Begins a conversion. */
export function schemaDocument(root: unknown, path: string): SchemaDocument {
  return { root, path, subschemasLeft: MAX_SUBSCHEMAS }
}

/**
 * A schema with its `$ref` and `allOf` resolved in place; their sibling members are merged in. A circular reference is cut:
 * only the type and description of its target remain.
 * @throws GatewayError `invalid_request` if resolving references makes the schema too large.
 */
export function resolveSchema(place: SchemaPlace, document: SchemaDocument): SchemaPlace {
  countSubschema(document)
  const followed = followReference(place, document)
  const { allOf, ...own } = followed.schema
  if (!Array.isArray(allOf)) return followed
  let trail = followed.trail
  let merged: JsonSchema = {}
  for (const member of allOf) {
    if (!isJsonObject(member)) continue
    const resolved = resolveSchema({ schema: member, trail: followed.trail }, document)
    trail = [...new Set([...trail, ...resolved.trail])]
    merged = mergeSchemas(merged, resolved.schema)
  }
  return { schema: mergeSchemas(merged, own), trail }
}

/** Two schemas that hold at once: properties and required names add up, for all else the second one counts. */
export function mergeSchemas(first: JsonSchema, second: JsonSchema): JsonSchema {
  const merged: JsonSchema = { ...first, ...second }
  if (isJsonObject(first['properties']) && isJsonObject(second['properties'])) {
    merged['properties'] = { ...first['properties'], ...second['properties'] }
  }
  if (Array.isArray(first['required']) && Array.isArray(second['required'])) {
    merged['required'] = [...new Set([...first['required'], ...second['required']])]
  }
  return merged
}

function followReference(place: SchemaPlace, document: SchemaDocument): SchemaPlace {
  const { $ref: reference, ...siblings } = place.schema
  if (typeof reference !== 'string') return place
  const target = referencedSchema(document.root, reference)
  if (target === undefined) return { schema: { type: 'object', ...siblings }, trail: place.trail }
  if (place.trail.includes(reference) || place.trail.length >= MAX_REFERENCES) {
    const { type = 'object', description } = target
    return {
      schema: { type, ...(description === undefined ? {} : { description }), ...siblings },
      trail: place.trail,
    }
  }
  return resolveSchema({ schema: mergeSchemas(target, siblings), trail: [...place.trail, reference] }, document)
}

function countSubschema(document: SchemaDocument): void {
  document.subschemasLeft -= 1
  if (document.subschemasLeft >= 0) return
  const { path } = document
  throw invalidParameter(
    path,
    `${path}: the schema has more than ${MAX_SUBSCHEMAS} pieces once its references are put in place.`,
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
