import * as z from 'zod'

/** A JSON Schema of draft 2020-12, without `$schema`. */
export type JsonSchema = Readonly<Record<string, unknown>>

/**
 * Converts a schema to JSON Schema (draft 2020-12, the default of MCP and of OpenAPI 3.1, so `$schema` is omitted).
 * Rules that JSON Schema cannot express, such as comparisons of fields, are omitted; the gateway still checks them.
 */
export function jsonSchemaOf(schema: z.ZodType, side: 'input' | 'output'): Record<string, unknown> {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: side, unrepresentable: 'any' })
  return rest
}

/** Members of a schema that map names to schemas. */
export const SCHEMA_MAPS: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions'])

/** Whether a schema describes an object. */
export function isObjectSchema(schema: JsonSchema): boolean {
  const type = schema['type']
  return type === 'object' || (Array.isArray(type) && type.includes('object')) || 'properties' in schema
}
