import { GatewayError } from '../core/errors.ts'
import type { FilePage, FileRecord } from '../stores/file-store.ts'

/** Page of files that a caller asks for. */
export interface FileListRequest {
  /** Maximum number of files. */
  readonly limit: number
  /** Order by time of creation. */
  readonly order: 'asc' | 'desc'
  /** Cursor: lists the files after this one. */
  readonly after?: string | undefined
  /** Cursor: lists the files before this one. Not combined with `after`. */
  readonly before?: string | undefined
  /** If omitted, files of all purposes are listed. */
  readonly purpose?: string | undefined
  /** Lists only these files, in one page. The other members do not apply then. */
  readonly ids?: readonly string[] | undefined
}

/** Files in the API of one family of clients. All families share the files of an account. */
export interface FileDialect {
  /**
   * Reads the text fields of an upload. Without `lifetimeMs` the file is kept as long as the operator keeps files.
   * @throws GatewayError `invalid_request`.
   */
  readUpload(field: (name: string) => string | undefined): {
    readonly purpose: string
    readonly lifetimeMs?: number | undefined
  }
  /**
   * Reads the query of a list.
   * @throws GatewayError `invalid_request`.
   */
  readList(parameters: URLSearchParams): FileListRequest
  /** Returns a file as callers read it. */
  record(file: FileRecord): object
  /** Returns a page of files as callers read it. */
  list(page: FilePage): object
  /** Returns the answer to a deletion. */
  deleted(id: string): object
}

/** Media type of files that have none of their own: requests and results of batches. */
export const DEFAULT_FILE_TYPE = 'application/jsonl'

/**
 * Returns the page size of a list.
 * @throws GatewayError `invalid_request`.
 */
export function pageSizeOf(parameters: URLSearchParams, usual: number, most: number): number {
  const text = parameters.get('limit')
  if (text === null) return usual
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= most) return limit
  throw new GatewayError('invalid_request', { message: `limit: must be from 1 to ${most}`, param: 'limit' })
}
