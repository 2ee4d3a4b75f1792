import { hash } from 'node:crypto'
import type { Principal } from '../stores/principal.ts'

/**
 * Returns the end user of a request, or `undefined` for none. The principal names it, or the body (`safety_identifier`, `user`,
 * `metadata.user_id`) if the key is trusted to do so. Otherwise a caller could invent a user for each request.
 */
export function endUserOf({ endUser, namesEndUsers }: Principal, body: object): string | undefined {
  if (endUser !== undefined) return endUser
  if (namesEndUsers !== true) return undefined
  const { safety_identifier: identifier, user, metadata } = body as Readonly<Record<string, unknown>>
  const userId = typeof metadata === 'object' && metadata !== null ? (metadata as NamedUser).user_id : undefined
  return [identifier, user, userId].find((name): name is string => typeof name === 'string' && name !== '')
}

const DIGEST_CHARACTERS = 32

/** Returns a digest for shared limits, because names of end users may be e-mail addresses and of any length. */
export function endUserDigest(endUser: string): string {
  return hash('sha256', endUser).slice(0, DIGEST_CHARACTERS)
}

interface NamedUser {
  readonly user_id?: unknown
}
