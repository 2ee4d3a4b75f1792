import { randomBytes, randomUUID } from 'node:crypto'

/** Where identifiers come from. Tests pass a counting source. */
export interface Ids {
  /** A unique id such as `req_3f1c…`: the prefix, an underscore, 32 hexadecimal digits. */
  next(prefix: string): string
}

/** Ids from the system's random source. */
export const randomIds: Ids = {
  next: (prefix) => `${prefix}_${randomUUID().replaceAll('-', '')}`,
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
