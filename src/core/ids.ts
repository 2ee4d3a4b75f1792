import { randomBytes, randomFillSync } from 'node:crypto'

/** Source of identifiers. Tests pass a counting source. */
export interface Ids {
  /** A unique id such as `req_019e…`: the prefix, an underscore, 32 hexadecimal digits. */
  next(prefix: string): string
}

const RANDOM_BYTES = 10

/** One system call creates random bytes for 256 ids. */
const pool = Buffer.alloc(RANDOM_BYTES * 256)
let used = pool.length

/** Time in the latest id, and its digits. */
let writtenMs = 0
let timeDigits = ''

/**
 * Ids of the time in milliseconds and 80 random bits, like version 7 UUIDs (RFC 9562, section 5.7). Rows inserted together are
 * adjacent in a database index, while random ids would touch one index page per row.
 */
export const timeOrderedIds: Ids = {
  next(prefix) {
    if (used === pool.length) {
      randomFillSync(pool)
      used = 0
    }
    const nowMs = Date.now()
    if (nowMs !== writtenMs) {
      writtenMs = nowMs
      timeDigits = nowMs.toString(16).padStart(12, '0')
    }
    used += RANDOM_BYTES
    return `${prefix}_${timeDigits}${pool.toString('hex', used - RANDOM_BYTES, used)}`
  },
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Encodes bytes as a base62 number of fixed width. */
export function toBase62(bytes: Uint8Array, width: number): string {
  let value = 0n
  for (const byte of bytes) value = (value << 8n) | BigInt(byte)
  let text = ''
  for (let position = 0; position < width; position++) {
    text = BASE62.charAt(Number(value % 62n)) + text
    value /= 62n
  }
  return text
}

/** Returns random bytes for secrets. */
export function secretBytes(length: number): Uint8Array {
  return randomBytes(length)
}
