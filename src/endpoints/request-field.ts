import type { z } from 'zod'
import { GatewayError } from '../core/errors.ts'

/** Writes a path into a request as callers write it: `messages[0].content`. */
export function fieldPath(path: readonly PropertyKey[]): string {
  let text = ''
  for (const step of path) {
    text += typeof step === 'number' ? `[${step}]` : text === '' ? String(step) : `.${String(step)}`
  }
  return text
}

/**
 * Checks a request against its schema and gives it back as it came, unknown fields included.
 * @throws GatewayError `invalid_request` whose `param` names the first field at fault.
 */
export function checkRequest<Request>(schema: z.ZodType, body: unknown): Request {
  const result = schema.safeParse(body)
  if (result.success) return body as Request
  const issue = mostSpecificIssue(result.error.issues)
  const param = fieldPath(issue.path)
  throw new GatewayError('invalid_request', {
    message: param === '' ? `The request body: ${issue.message}` : `${param}: ${issue.message}`,
    param: param === '' ? undefined : param,
  })
}

type Issue = z.core.$ZodIssue

/** A union's issue says only that nothing fitted; the issue of the branch that came furthest says what is wrong. */
function mostSpecificIssue(issues: readonly Issue[]): { path: PropertyKey[]; message: string } {
  const first = issues[0]
  if (first === undefined) return { path: [], message: 'is invalid' }
  if (first.code !== 'invalid_union') return first
  let deepest: { path: PropertyKey[]; message: string } = first
  for (const branch of first.errors) {
    if (branch.length === 0) continue
    const candidate = mostSpecificIssue(branch)
    if (candidate.path.length > 0 && candidate.path.length + first.path.length > deepest.path.length) {
      deepest = { path: [...first.path, ...candidate.path], message: candidate.message }
    }
  }
  return deepest
}
