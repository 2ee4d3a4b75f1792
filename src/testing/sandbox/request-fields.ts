import { isJsonObject } from '../../core/json.ts'

/** Readers of JSON that has not been checked: they give something empty where the shape is another. */

/** The object, or an empty one. */
export function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return isJsonObject(value) ? value : {}
}

/** The list, or an empty one. */
export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The text, or an empty one. */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The number; undefined for anything else. */
export function asNumber(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

/** True when the field was sent with a value; vendors read null like an absent field. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}
