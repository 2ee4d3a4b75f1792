import * as z from 'zod'
import { hintAt } from '../core/known-members.ts'

/** Fault of a value, as zod reports it. */
type Issue = z.core.$ZodIssue

/**
 * Describes faults, one per line, with the nearest known name for an unknown one.
 * @param root Name before every path; may be empty.
 */
export function faultsOf(root: string, schema: z.ZodType, issues: readonly Issue[]): string {
  return issues
    .flatMap((issue) => {
      const place = [root, ...issue.path.map(String)].filter((step) => step !== '').join('.')
      const at = place === '' ? '' : `${place}: `
      if (issue.code !== 'unrecognized_keys') return [`${at}${issue.message}`]
      const known = knownAt(schema, issue.path)
      return issue.keys.map((key) => {
        return `${at}unknown member ${JSON.stringify(key)}; ${hintAt(key, known)}`
      })
    })
    .join('\n')
}

/** Returns the names that the schema knows at a path. */
function knownAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let places: z.ZodType[] = [schema]
  for (const step of path) places = places.flatMap((place) => inside(place, String(step)))
  return [...new Set(places.flatMap((place) => bare(place)).flatMap((one) => Object.keys(shapeOf(one))))]
}

function inside(schema: z.ZodType, step: string): z.ZodType[] {
  return bare(schema).flatMap((one) => {
    if (one instanceof z.ZodRecord) return [one.valueType as z.ZodType]
    if (one instanceof z.ZodArray) return [one.element as z.ZodType]
    const member = shapeOf(one)[step]
    return member === undefined ? [] : [member]
  })
}

function shapeOf(schema: z.ZodType): Readonly<Record<string, z.ZodType>> {
  return schema instanceof z.ZodObject ? (schema.shape as Record<string, z.ZodType>) : {}
}

/** Returns the schema without optional wrappers, and each alternative of a union. */
function bare(schema: z.ZodType): z.ZodType[] {
  if (schema instanceof z.ZodUnion) return (schema.options as z.ZodType[]).flatMap(bare)
  if ('unwrap' in schema && !(schema instanceof z.ZodArray)) return bare((schema as z.ZodOptional<z.ZodType>).unwrap())
  return [schema]
}
