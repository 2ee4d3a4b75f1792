import { z } from 'zod'

/** A JSON Schema as plain data. */
export type JsonSchema = Record<string, unknown>

/**
 * Writes a schema of the gateway as JSON Schema (draft 2020-12, which is the protocol's default, so it is not named). What
 * JSON Schema cannot say, such as rules that compare fields, is left out: the gateway still checks it.
 */
export function jsonSchemaOf(schema: z.ZodType, side: 'input' | 'output'): JsonSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: side, unrepresentable: 'any' })
  return rest
}
