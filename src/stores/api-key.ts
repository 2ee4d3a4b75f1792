import { hash } from 'node:crypto'
import { secretBytes, toBase62 } from '../core/ids.ts'

const PREFIX = 'sk-'
const SECRET_BYTES = 32
const SECRET_CHARACTERS = 43
const CHECK_BYTES = 4
const CHECK_CHARACTERS = 6

const SHAPE = new RegExp(`^${PREFIX}[0-9A-Za-z]{${SECRET_CHARACTERS + CHECK_CHARACTERS}}$`)

/**
 * Creates an API key: `sk-`, 32 random bytes in base62 (43 characters), and 6 check characters, with which a secret scanner or a
 * form can detect a mistyped key.
 *
 * @param random Returns this many random bytes. Defaults to the system's source.
 */
export function createApiKey(random: (length: number) => Uint8Array = secretBytes): string {
  const secret = toBase62(random(SECRET_BYTES), SECRET_CHARACTERS)
  return `${PREFIX}${secret}${checkCharacters(secret)}`
}

/**
 * Whether a text has the length and check characters of {@link createApiKey}. Only a hint for readers: operators may choose keys
 * of any form, so no request is rejected by it.
 */
export function isWellFormedApiKey(text: string): boolean {
  if (!SHAPE.test(text)) return false
  const secret = text.slice(PREFIX.length, PREFIX.length + SECRET_CHARACTERS)
  return text.endsWith(checkCharacters(secret))
}

/** Returns the stored form of a key: the SHA-256 of its UTF-8 bytes in lower-case hexadecimal. */
export function hashApiKey(text: string): string {
  return hash('sha256', text)
}

function checkCharacters(secret: string): string {
  const digest = Buffer.from(hash('sha256', secret), 'hex')
  return toBase62(digest.subarray(0, CHECK_BYTES), CHECK_CHARACTERS)
}
