import type * as z from 'zod'
import { GatewayError } from '../core/errors.ts'
import { acceptanceOf } from './schema-acceptance.ts'

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
  const problem = isAbsent ? 'is required' : issue.message.replace(OF_NOTHING, 'is required: $1')
  throw new GatewayError('invalid_request', {
    message: param === '' ? `The request body: ${problem}` : `${param}: ${problem}`,
    param: param === '' ? undefined : param,
  })
}

/** Message that zod reports for an absent member. */
const OF_NOTHING = /^Invalid input: (expected .*), received undefined$/

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
    if (cameFurther(candidate, furthest)) furthest = candidate
  }
  return furthest
}

/** Whether a branch describes objects of another `type` than the received one. */
function isOfAnotherKind({ code, path }: Issue): boolean {
  return code === 'invalid_value' && path.length === 1 && path[0] === 'type'
}

function cameFurther(one: Fault, other: Fault): boolean {
  if (one.path.length !== other.path.length) return one.path.length > other.path.length
  if (one.isBound !== other.isBound) return one.isBound
  return Number(one.path.at(-1)) > Number(other.path.at(-1))
}
