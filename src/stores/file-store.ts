import type { MaybePromise } from '../core/maybe-promise.ts'

/** Record of a caller's file. The blob store has its bytes under the same id. */
export interface FileRecord {
  /** Id such as `file_…`; unique in the store. */
  readonly id: string
  /** Account that may read it. */
  readonly accountId: string
  /** Purpose of the file: `batch`, `batch_output`. */
  readonly purpose: string
  /** File name chosen by the caller. */
  readonly filename: string
  /** Media type in lower case, without parameters. If omitted, the file has JSON lines: `application/jsonl`. */
  readonly mimeType?: string | undefined
  /** Size of its bytes. */
  readonly byteLength: number
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Unix milliseconds after which it counts as unknown. */
  readonly expiresAtMs: number
}

/** Query for files of an account. */
export interface FileQuery {
  /** Maximum number of files. */
  readonly limit: number
  /** Order by creation time, then id. */
  readonly order: 'asc' | 'desc'
  /** Cursor: lists the files after this one. An unknown id returns an empty page. */
  readonly after?: string | undefined
  /** Purpose of the files. If omitted, all purposes are listed. */
  readonly purpose?: string | undefined
}

/** Page of files. */
export interface FilePage {
  /** Files in the order of the query. */
  readonly files: readonly FileRecord[]
  /** Whether more files follow. */
  readonly hasMore: boolean
}

/** Owners of files. Unknown, foreign and expired ids have the same result. */
export interface FileStore {
  /** Stores a file record, replacing one of the same id and account. */
  save(file: FileRecord): MaybePromise<void>
  /** Returns an account's own file, unless it has expired. */
  find(accountId: string, id: string, nowMs: number): MaybePromise<FileRecord | undefined>
  /** Returns a page of an account's files that have not expired. */
  list(accountId: string, query: FileQuery, nowMs: number): MaybePromise<FilePage>
  /** Deletes a file record. Returns false for an unknown or foreign id. */
  delete(accountId: string, id: string): MaybePromise<boolean>
  /** Deletes up to `limit` expired records and returns their ids, so that their bytes can be deleted. */
  purge(nowMs: number, limit: number): MaybePromise<readonly string[]>
}
