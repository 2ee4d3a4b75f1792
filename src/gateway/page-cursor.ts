import { Buffer } from 'node:buffer'
import { GatewayError } from '../core/errors.ts'
import type { ListPlace } from '../stores/newest-first.ts'

/** Most rows of one page. */
export const MAX_PAGE_SIZE = 1_000

/** Texts as an opaque cursor. */
export function cursorOf(parts: readonly string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

/**
 * The texts of a cursor that {@link cursorOf} made; undefined for no cursor.
 * @throws GatewayError `invalid_request` for anything else.
 */
export function cursorParts(cursor: string | undefined, count: number): readonly string[] | undefined {
  if (cursor === undefined) return undefined
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (Array.isArray(parts) && parts.length === count && parts.every(isPart)) return parts
  } catch {
    // No JSON: no cursor of ours.
  }
  throw badCursor()
}

/** No store has a NUL in an id, and PostgreSQL takes none. */
function isPart(part: unknown): part is string {
  return typeof part === 'string' && !part.includes('\0')
}

/** The error for a text that is no cursor. */
export function badCursor(): GatewayError {
  return new GatewayError('invalid_request', { message: 'this cursor is not one that was given', param: 'cursor' })
}

/** @throws GatewayError `invalid_request` for a limit that is no whole number from 1 to 1,000. */
export function checkPageSize(limit: number): void {
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE_SIZE) return
  const message = `limit must be a whole number from 1 to ${MAX_PAGE_SIZE}, not ${limit}`
  throw new GatewayError('invalid_request', { message, param: 'limit' })
}

/** The same limit. @throws as {@link checkPageSize}. */
export function checkedPageSize(limit: number): number {
  checkPageSize(limit)
  return limit
}

/** A place among the newest first, as a cursor has it. */
export function partsOfPlace({ createdAtMs, id }: ListPlace): readonly string[] {
  return [String(createdAtMs), id]
}

/**
 * The place of a cursor that was made of {@link partsOfPlace}; undefined for no cursor.
 * @throws GatewayError `invalid_request` for anything else.
 */
export function placeOf(cursor: string | undefined): ListPlace | undefined {
  const parts = cursorParts(cursor, 2)
  if (parts === undefined) return undefined
  const [time = '', id = ''] = parts
  const createdAtMs = Number(time)
  // A fraction, or a number beyond all times, would be an error of the store.
  if (time === '' || !Number.isSafeInteger(createdAtMs)) throw badCursor()
  return { createdAtMs, id }
}

/** Cuts a page that was read with one row more than it holds. */
export function pageOf<Row>(
  rows: readonly Row[],
  limit: number,
  partsOf: (last: Row) => readonly string[],
): { readonly rows: readonly Row[]; readonly next: string | undefined } {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return { rows: page, next: rows.length > limit && last !== undefined ? cursorOf(partsOf(last)) : undefined }
}
