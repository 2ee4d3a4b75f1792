// See docs/decisions/0022-sign-in-and-options.md.

import * as z from 'zod'
import { pathText, unknownMember } from './known-members.ts'

const POSITIVE = 'must be a positive number'

/** Finite number above 0. */
export const positive = z.number(POSITIVE).positive(POSITIVE).optional()
export const flag = z.boolean('must be true or false').optional()
export const texts = z.array(z.string('must be a string'), 'must be a list of strings').optional()
/** Value that is checked where it is used. */
export const anything = z.unknown().optional()
export const callable = z.custom((value) => typeof value === 'function', 'must be a function').optional()
/** Any object, such as a row that is checked separately. */
export const anyObject = z.looseObject({}, 'must be an object')

/** Whole number of at least `least`. */
export function wholeNumber(least: number, text = `must be a whole number of at least ${least}`) {
  return z.int(text).min(least, text).optional()
}

/** Number of at least `least`, which may be infinite. */
export function atLeast(least: number, text = `must be at least ${least}`) {
  return z.custom<number>((value) => typeof value === 'number' && value >= least, text).optional()
}

/** String of at least `length` characters. */
export function secret(length: number) {
  const text = `must have at least ${length} characters`
  return z.string(text).min(length, text).optional()
}

/** Schema of one of several words. */
export function oneOf<const Word extends string>(...words: readonly Word[]) {
  return z.enum(words, `must be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}`).optional()
}

/** Object with members of these types. */
export function withMembers(
  types: Readonly<Record<string, 'string' | 'list' | 'function'>>,
  error: string | ((issue: { readonly input: unknown }) => string),
) {
  const isMember = (value: unknown, [name, type]: readonly [string, string]): boolean => {
    const member: unknown = Object(value)[name]
    return type === 'list' ? Array.isArray(member) : typeof member === type
  }
  return z.custom((value) => Object.entries(types).every((entry) => isMember(value, entry)), { error })
}

/**
 * Object with methods that are called later. Without this check the first call would fail.
 * @param example Likely intended value if the part has the wrong type.
 */
export function withMethods(methods: readonly string[], example?: string) {
  const missing = (part: unknown): string | undefined =>
    methods.find((method) => typeof Object(part)[method] !== 'function')
  return z
    .custom((part) => part === null || missing(part) === undefined, {
      error: ({ input }) =>
        `must be an object with the method ${missing(input)}${example === undefined ? '' : `, ${example}`}`,
    })
    .optional()
}

type Issue = z.core.$ZodIssue

/**
 * Checks options by their schema. An unknown member is reported before other faults.
 * @param owner Name of the called function for the message: `createGateway`. May be empty.
 * @param path Path of the options below their owner: `cache`. Empty for the options themselves.
 * @throws TypeError with the path of the fault, and the nearest known name of an unknown member.
 */
export function checkBySchema(schema: z.ZodType, value: unknown, owner: string, path = ''): void {
  // Options are checked once, so compiled checks would not pay off.
  const result = schema.safeParse(value, { jitless: true })
  if (result.success) return
  const issues = result.error.issues.map(innerIssue)
  const fault = issues.find((issue) => issue.code === 'unrecognized_keys') ?? issues[0]!
  const at = pathText(path, fault.path)
  if (fault.code === 'unrecognized_keys') throw unknownMember(fault.keys[0]!, knownAt(schema, fault.path), owner, at)
  const text = fault.code === 'invalid_type' && fault.expected === 'object' ? 'must be an object' : fault.message
  throw new TypeError(`${owner === '' ? '' : `${owner}: `}${at || 'options'} ${text}`)
}

/** Returns the fault inside the alternative of a union that has the type of the value, or the issue itself. */
function innerIssue(issue: Issue): Issue {
  if (issue.code !== 'invalid_union') return issue
  const meant = issue.errors.find((errors) =>
    errors.every(({ code, path }) => code === 'unrecognized_keys' || path.length > 0),
  )
  const [inner] = meant?.map(innerIssue) ?? []
  return inner === undefined ? issue : { ...inner, path: [...issue.path, ...inner.path] }
}

/** Returns the names that a schema knows at a path. */
export function knownAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let places: z.ZodType[] = [schema]
  for (const step of path) places = places.flatMap((place) => inside(place, String(step)))
  return [...new Set(places.flatMap(bare).flatMap((one) => Object.keys(shapeOf(one))))]
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
