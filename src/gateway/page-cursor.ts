import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import type { ListPlace } from '../stores/resolution.ts'

/** Maximum number of rows per page. */
export const MAX_PAGE_SIZE = 1_000

/** Selects a page of a list. */
export interface PageOptions {
  /** Value of `next` on the previous page. */
  readonly cursor?: string | undefined
  /** Maximum number of entries per page, from 1 to 1,000. Default 100. */
  readonly limit?: number | undefined
}

/** Encodes strings as an opaque cursor. */
export function cursorOf(parts: readonly string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

/**
 * Decodes the strings of a cursor from {@link cursorOf}; returns `undefined` without a cursor.
 * @throws GatewayError `invalid_request` for anything else.
 */
export function cursorParts(cursor: string | undefined, count: number): readonly string[] | undefined {
  if (cursor === undefined) return undefined
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (Array.isArray(parts) && parts.length === count && parts.every(isPart)) return parts
  } catch {
    // Text that is not JSON is not a cursor of the gateway.
  }
  throw badCursor()
}

/** No id contains a NUL, and PostgreSQL does not accept one. */
function isPart(part: unknown): part is string {
  return typeof part === 'string' && !part.includes('\0')
}

/** Creates the error for an invalid cursor. */
export function badCursor(): GatewayError {
  return new GatewayError('invalid_request', { message: 'this cursor is not one that was given', param: 'cursor' })
}

/** @throws GatewayError `invalid_request` unless the limit is an integer from 1 to 1,000. */
export function checkPageSize(limit: number): void {
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE_SIZE) return
  const message = `limit must be a whole number from 1 to ${MAX_PAGE_SIZE}, not ${limit}`
  throw new GatewayError('invalid_request', { message, param: 'limit' })
}

/** Returns the limit after its check. @throws as {@link checkPageSize}. */
export function checkedPageSize(limit: number): number {
  checkPageSize(limit)
  return limit
}

/** Converts a place in a list, newest first, to parts of a cursor. */
export function partsOfPlace({ createdAtMs, id }: ListPlace): readonly string[] {
  return [String(createdAtMs), id]
}

/**
 * Decodes the place of a cursor from {@link partsOfPlace}; returns `undefined` without a cursor.
 * @throws GatewayError `invalid_request` for anything else.
 */
export function placeOf(cursor: string | undefined): ListPlace | undefined {
  const parts = cursorParts(cursor, 2)
  if (parts === undefined) return undefined
  const [time = '', id = ''] = parts
  const createdAtMs = Number(time)
  // A fraction, or a number beyond all times, would cause an error in the store.
  if (time === '' || !Number.isSafeInteger(createdAtMs)) throw badCursor()
  return { createdAtMs, id }
}

/** Cuts a page that was read with one additional row. */
export function pageOf<Row>(
  rows: readonly Row[],
  limit: number,
  partsOf: (last: Row) => readonly string[],
): { readonly rows: readonly Row[]; readonly next: string | undefined } {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return { rows: page, next: rows.length > limit && last !== undefined ? cursorOf(partsOf(last)) : undefined }
}
