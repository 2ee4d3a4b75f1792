import { randomBytes, randomFillSync } from 'node:crypto'

/** Where identifiers come from. Tests pass a counting source. */
export interface Ids {
  /** A unique id such as `req_3f1c…`: the prefix, an underscore, 32 hexadecimal digits. */
  next(prefix: string): string
}

const ID_BYTES = 16

/** Random bytes are drawn in blocks: one call of the system for 256 ids. */
const pool = Buffer.alloc(ID_BYTES * 256)
let used = pool.length

/** Ids from the system's random source. */
export const randomIds: Ids = {
  next(prefix) {
    if (used === pool.length) {
      randomFillSync(pool)
      used = 0
    }
    used += ID_BYTES
    return `${prefix}_${pool.toString('hex', used - ID_BYTES, used)}`
  },
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Writes bytes as a base62 number of fixed width, so that equal lengths give equal widths. */
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

/** Random bytes for secrets. */
export function secretBytes(length: number): Uint8Array {
  return randomBytes(length)
}
