import { asList, asObject } from '../model/loose-json.ts'
import { refuseGemini } from './gemini-errors.ts'
import { checkKnownFields } from './gemini-fields.ts'

type Json = Readonly<Record<string, unknown>>

// Google's `Schema`: a part of OpenAPI 3.0. JSON Schema's other keywords are unknown names.
const KEYWORDS = new Set([
  'type',
  'format',
  'title',
  'description',
  'nullable',
  'enum',
  'maxItems',
  'minItems',
  'properties',
  'required',
  'minProperties',
  'maxProperties',
  'minLength',
  'maxLength',
  'pattern',
  'example',
  'anyOf',
  'propertyOrdering',
  'default',
  'items',
  'minimum',
  'maximum',
])
const TYPES = ['STRING', 'NUMBER', 'INTEGER', 'BOOLEAN', 'ARRAY', 'OBJECT', 'NULL']

/** Refuses a schema that is more than Google's part of OpenAPI. `place` is the path for the error text. */
export function checkGeminiSchema(schema: Json, place: string): void {
  checkKnownFields(schema, KEYWORDS, place)
  const { type } = schema
  if (Array.isArray(type)) {
    refuseGemini(
      `Invalid JSON payload received. Unknown name "type" at '${place}': Proto field is not repeating, cannot start list.`,
    )
  }
  if (type !== undefined && !TYPES.includes(String(type).toUpperCase())) {
    refuseGemini(
      `Invalid value at '${place}.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), "${String(type)}"`,
    )
  }
  if (asList(schema['enum']).some((value) => typeof value !== 'string')) {
    refuseGemini(`Invalid value at '${place}.enum[0]' (TYPE_STRING)`)
  }
  Object.values(asObject(schema['properties'])).forEach((property, position) => {
    checkGeminiSchema(asObject(property), `${place}.properties[${position}].value`)
  })
  if (schema['items'] !== undefined) checkGeminiSchema(asObject(schema['items']), `${place}.items`)
  asList(schema['anyOf']).forEach((part, position) => {
    checkGeminiSchema(asObject(part), `${place}.any_of[${position}]`)
  })
  if (String(type).toUpperCase() === 'ARRAY' && schema['items'] === undefined)
    refuseGemini(`* ${place}.items: missing field.`)
}
