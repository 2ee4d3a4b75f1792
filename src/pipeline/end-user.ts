import { hash } from 'node:crypto'
import type { Principal } from '../stores/principal.ts'

/**
 * The end user that a request is made for, of those that their account names: by the principal, or in the body (`safety_identifier`,
 * `user`, `metadata.user_id`) if the key is trusted to. Else a caller could invent a user for each request. Undefined: none.
 */
export function endUserOf({ endUser, namesEndUsers }: Principal, body: object): string | undefined {
  if (endUser !== undefined) return endUser
  if (namesEndUsers !== true) return undefined
  const { safety_identifier: identifier, user, metadata } = body as Readonly<Record<string, unknown>>
  const userId = typeof metadata === 'object' && metadata !== null ? (metadata as NamedUser).user_id : undefined
  return [identifier, user, userId].find((name): name is string => typeof name === 'string' && name !== '')
}

const DIGEST_CHARACTERS = 32

/** Stands for an end user in shared limits: end users may be called by their addresses, and as long as they like. */
export function endUserDigest(endUser: string): string {
  return hash('sha256', endUser).slice(0, DIGEST_CHARACTERS)
}

interface NamedUser {
  readonly user_id?: unknown
}
