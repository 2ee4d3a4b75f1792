// See docs/decisions/0029-speed.md.

import * as z from 'zod'
import { GatewayError } from '../core/errors.ts'

/** Returns whether a schema accepts a value. Changes nothing. */
export type Acceptance = (value: unknown) => boolean

const compiled = new WeakMap<z.core.$ZodType, Acceptance>()

/** Item schemas of lists whose own check validates their items; see `listOf`. */
const listItems = new WeakMap<object, z.core.$ZodType>()

/** Records that a check validates each item of a list, up to the first invalid one. */
function checksItems(check: object, item: z.core.$ZodType): void {
  listItems.set(check, item)
}

/** Returns the item schema of a list made with `listOf`, or `undefined` for other schemas. */
export function itemOf(list: z.core.$ZodType): z.core.$ZodType | undefined {
  for (const check of list._zod.def.checks ?? []) {
    const item = listItems.get(check._zod.check)
    if (item !== undefined) return item
  }
  return undefined
}

/**
 * Returns a schema's yes or no without the copy that `safeParse` makes of every object, a tenth of the allocations of a small chat.
 * It is derived from the schema itself, so rules are written once. Unknown kinds of schemas use `safeParse`, which also reports the
 * reasons of a no.
 */
export function acceptanceOf(schema: z.core.$ZodType): Acceptance {
  const known = compiled.get(schema)
  if (known !== undefined) return known
  const acceptance = compile(schema as z.core.$ZodTypes)
  compiled.set(schema, acceptance)
  return acceptance
}

function compile(schema: z.core.$ZodTypes): Acceptance {
  const ofType = acceptanceOfType(schema)
  const schemaChecks = schema._zod.def.checks ?? []
  if (ofType === undefined || schemaChecks.some(changesValues))
    return (value) => (schema as unknown as z.ZodType).safeParse(value).success
  const checks = schemaChecks.map(acceptanceOfCheck)
  if (checks.length === 0) return ofType
  return (value) => {
    if (!ofType(value)) return false
    for (const check of checks) if (!check(value)) return false
    return true
  }
}

/** Returns `undefined` for an unknown kind of schema. */
function acceptanceOfType({ _zod: { def } }: z.core.$ZodTypes): Acceptance | undefined {
  switch (def.type) {
    case 'any':
    case 'unknown':
      return () => true
    case 'null':
      return (value) => value === null
    case 'boolean':
      return isUncoerced(def) ? (value) => typeof value === 'boolean' : undefined
    case 'string':
      return isUncoerced(def) && !('format' in def) ? (value) => typeof value === 'string' : undefined
    case 'number':
      return isUncoerced(def) ? acceptanceOfNumber(def) : undefined
    case 'enum':
      return acceptanceOfValues(Object.values(def.entries))
    case 'literal':
      return acceptanceOfValues(def.values)
    case 'optional': {
      const inner = acceptanceOf(def.innerType)
      return (value) => value === undefined || inner(value)
    }
    case 'nullable': {
      const inner = acceptanceOf(def.innerType)
      return (value) => value === null || inner(value)
    }
    case 'union':
      return acceptanceOfUnion(def)
    case 'array': {
      const item = acceptanceOf(def.element)
      return (value) => Array.isArray(value) && areAccepted(value, item)
    }
    case 'object':
      return acceptanceOfObject(def)
    default:
      return undefined
  }
}

function isUncoerced(def: { readonly coerce?: boolean }): boolean {
  return def.coerce !== true
}

function acceptanceOfNumber(def: z.core.$ZodNumberDef & { readonly format?: string }): Acceptance | undefined {
  if (def.format === undefined) return (value) => typeof value === 'number' && Number.isFinite(value)
  return def.format === 'safeint' ? Number.isSafeInteger : undefined
}

function acceptanceOfValues(values: readonly unknown[]): Acceptance {
  const accepted = new Set(values)
  return (value) => accepted.has(value)
}

function acceptanceOfUnion(def: z.core.$ZodUnionDef): Acceptance | undefined {
  // An exclusive union accepts a value that exactly one of its options accepts.
  if ('inclusive' in def && def.inclusive === false) return undefined
  const options = def.options.map(acceptanceOf)
  return (value) => {
    for (const option of options) if (option(value)) return true
    return false
  }
}

function acceptanceOfObject({ shape, catchall }: z.core.$ZodObjectDef): Acceptance | undefined {
  if (catchall !== undefined && catchall._zod.def.type !== 'unknown') return undefined
  const members = new Map(Object.entries(shape).map(([name, member]) => [name, acceptanceOf(member)]))
  // A name that all objects inherit would be read from the prototype.
  if ([...members.keys()].some((name) => name in Object.prototype)) return undefined
  const required = Object.keys(shape).filter((name) => shape[name]?._zod.optin !== 'optional')
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
    const object = value as Readonly<Record<string, unknown>>
    for (const name of required) if (!(name in object)) return false
    // Requests have few of the many members of a schema.
    for (const name in object) {
      const accepts = members.get(name)
      if (accepts !== undefined && !accepts(object[name])) return false
    }
    return true
  }
}

function areAccepted(items: readonly unknown[], accepts: Acceptance): boolean {
  for (const item of items) if (!accepts(item)) return false
  return true
}

function changesValues({ _zod: { def } }: z.core.$ZodCheck<never>): boolean {
  return def.check === 'overwrite'
}

function acceptanceOfCheck(schemaCheck: z.core.$ZodCheck<never>): Acceptance {
  const check = schemaCheck as z.core.$ZodChecks
  const { def } = check._zod
  const item = listItems.get(check._zod.check)
  if (item !== undefined) {
    const accepts = acceptanceOf(item)
    return (value) => areAccepted(value as readonly unknown[], accepts)
  }
  switch (def.check) {
    case 'min_length':
      return (value) => (value as string | readonly unknown[]).length >= def.minimum
    case 'max_length':
      return (value) => (value as string | readonly unknown[]).length <= def.maximum
    case 'greater_than':
      return (value) =>
        def.inclusive ? (value as number) >= (def.value as number) : (value as number) > (def.value as number)
    case 'less_than':
      return (value) =>
        def.inclusive ? (value as number) <= (def.value as number) : (value as number) < (def.value as number)
    default:
      return acceptanceByRunning(schemaCheck)
  }
}

/** Runs any other check. Checks that change the value or are asynchronous never pass here. */
function acceptanceByRunning(check: z.core.$ZodCheck<never>): Acceptance {
  const run = check._zod.check as (payload: z.core.ParsePayload) => unknown
  const when = check._zod.def.when
  return (value) => {
    const payload: z.core.ParsePayload = { value, issues: [] }
    if (when !== undefined && !when(payload)) return true
    const later = run(payload)
    return later === undefined && payload.issues.length === 0 && payload.value === value
  }
}

/** Formats a path into a request as callers write it: `messages[0].content`. */
export function fieldPath(path: readonly PropertyKey[]): string {
  let text = ''
  for (const step of path) {
    text += typeof step === 'number' ? `[${step}]` : text === '' ? String(step) : `.${String(step)}`
  }
  return text
}

/**
 * Checks a request against its schema and returns it unchanged, unknown fields included.
 * @throws GatewayError `invalid_request` whose `param` names the first invalid field.
 */
export function checkRequest<Request>(schema: z.ZodType, body: unknown): Request {
  const result = outcomeOf(schema, body)
  if (result === undefined || result.success) return body as Request
  const issue = mostSpecificIssue(result.error.issues)
  const param = fieldPath(issue.path)
  const isAbsent = issue.isOfUnion && valueAt(body, issue.path) === undefined
  const problem = isAbsent ? 'is required' : issue.message.replace(ABSENT_MEMBER, 'is required: $1')
  throw new GatewayError('invalid_request', {
    message: param === '' ? `The request body: ${problem}` : `${param}: ${problem}`,
    param: param === '' ? undefined : param,
  })
}

/** Message that zod reports for an absent member. */
const ABSENT_MEMBER = /^Invalid input: (expected .*), received undefined$/

/**
 * Returns `undefined` if the schema accepts the body. Some length checks run on values of any type, and a caller's own `length` may
 * make them throw.
 */
function outcomeOf(schema: z.ZodType, body: unknown): ReturnType<z.ZodType['safeParse']> | undefined {
  try {
    if (acceptanceOf(schema)(body)) return undefined
    return schema.safeParse(body)
  } catch (cause) {
    throw new GatewayError('invalid_request', { message: 'The request body: a field has the wrong type', cause })
  }
}

type Issue = z.core.$ZodIssue

interface Fault {
  readonly path: PropertyKey[]
  readonly message: string
  /** Whether a value of the right type exceeds a bound, which is more specific than "expected another type". */
  readonly isBound: boolean
  /** Whether this is only the union's own issue: no branch fits. */
  readonly isOfUnion?: boolean
}

function valueAt(body: unknown, path: readonly PropertyKey[]): unknown {
  let value = body
  for (const step of path) value = (value as Readonly<Record<PropertyKey, unknown>> | null | undefined)?.[step]
  return value
}

/**
 * Returns the issue of the closest branch, because a union itself only reports "invalid input". The closest branch is the deepest,
 * then one that exceeds a bound rather than having the wrong type, then the latest in a list.
 */
function mostSpecificIssue(issues: readonly Issue[]): Fault {
  const first = issues[0]
  if (first === undefined) return { path: [], message: 'is invalid', isBound: false }
  if (first.code !== 'invalid_union')
    return { path: first.path, message: first.message, isBound: first.code !== 'invalid_type' }
  let furthest: Fault = { path: first.path, message: first.message, isBound: false, isOfUnion: true }
  const meant = first.errors.filter((branch) => !branch.some(isOfAnotherKind))
  for (const branch of meant.length === 0 ? first.errors : meant) {
    if (branch.length === 0) continue
    const fault = mostSpecificIssue(branch)
    const candidate = { ...fault, path: [...first.path, ...fault.path] }
    if (matchesDeeper(candidate, furthest)) furthest = candidate
  }
  return furthest
}

/** Whether a branch describes objects of another `type` than the received one. */
function isOfAnotherKind({ code, path }: Issue): boolean {
  return code === 'invalid_value' && path.length === 1 && path[0] === 'type'
}

function matchesDeeper(one: Fault, other: Fault): boolean {
  if (one.path.length !== other.path.length) return one.path.length > other.path.length
  if (one.isBound !== other.isBound) return one.isBound
  return Number(one.path.at(-1)) > Number(other.path.at(-1))
}

/**
 * A list whose items are checked one after the other up to the first invalid one. `z.array(item)` continues and keeps an
 * issue for each item, so a body of megabytes of wrong items would take gigabytes, and more issues than a function call has
 * arguments for. Items are not changed: neither defaults nor transforms of `item` apply. As JSON Schema the list shows its
 * items. A list of more than `maxItems` is rejected before its items are read.
 */
export function listOf<Item extends z.ZodType>(
  item: Item,
  maxItems = Number.POSITIVE_INFINITY,
): z.ZodArray<z.ZodType<z.output<Item>>> {
  const { $schema: _draft, ...shown } = z.toJSONSchema(item, { unrepresentable: 'any' })
  const unchecked: z.ZodType<z.output<Item>> = z.any().meta(shown)
  const checkItems: z.core.CheckFn<z.output<Item>[]> = (context) => {
    if (context.issues.length > 0) return
    for (const [index, value] of context.value.entries()) {
      const result = item.safeParse(value)
      if (result.success) continue
      for (const issue of result.error.issues) {
        context.issues.push({ ...issue, path: [index, ...issue.path], input: value } as z.core.$ZodRawIssue)
      }
      return
    }
  }
  checksItems(checkItems, item)
  const list = z.array(unchecked)
  return (Number.isFinite(maxItems) ? list.max(maxItems) : list).check(checkItems)
}

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
