import { createHmac } from 'node:crypto'
import type { EndUserMembers } from '../../endpoints/operation.ts'

/** Paths whose requests contain the member (OpenAI API reference, "Safety best practices"). */
const PATHS = /\/(?:chat\/completions|responses)(?:\?|$)/

/** Shortest key in characters. */
const MIN_KEY_LENGTH = 16

/**
 * Returns the members that name an end user to a vendor: an HMAC-SHA-256 of account and end user as 64 hexadecimal digits. Returns
 * `undefined` without a key.
 * @throws TypeError if the key has fewer than 16 characters.
 */
export function safetyIdentifiers(factory: string, key: string | undefined): EndUserMembers | undefined {
  if (key === undefined) return undefined
  if (typeof key !== 'string' || key.length < MIN_KEY_LENGTH)
    throw new TypeError(`${factory}: safetyIdentifierKey must be a string of at least ${MIN_KEY_LENGTH} characters`)
  return (path, { accountId, endUser, request }) => {
    if (!PATHS.test(path)) return undefined
    const name = JSON.stringify([accountId, endUser ?? null])
    const identifier = createHmac('sha256', key).update(name).digest('hex')
    const hasUser = 'user' in request && request.user !== undefined
    return { safety_identifier: identifier, ...(hasUser ? { user: identifier } : {}) }
  }
}
