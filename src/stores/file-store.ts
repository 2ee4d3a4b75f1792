import type { MaybePromise } from '../core/maybe-promise.ts'

/** What is known of a caller's file; its bytes are in the blob store, by the same id. */
export interface FileRecord {
  /** `file_…`; unique in the store. */
  readonly id: string
  /** The account that may read it. */
  readonly accountId: string
  /** What it is for: `batch`, `batch_output`. */
  readonly purpose: string
  /** As the caller named it. */
  readonly filename: string
  /** Media type in lower case, without parameters. If omitted, the file has JSON lines: `application/jsonl`. */
  readonly mimeType?: string | undefined
  /** Size of its bytes. */
  readonly byteLength: number
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Unix milliseconds after which it reads as unknown. */
  readonly expiresAtMs: number
}

/** Which files of an account to give. */
export interface FileQuery {
  /** Most files. */
  readonly limit: number
  /** By creation, then id. */
  readonly order: 'asc' | 'desc'
  /** Only files behind this one; an unknown id gives an empty page. */
  readonly after?: string | undefined
  /** Only files for it; absent: all. */
  readonly purpose?: string | undefined
}

/** A page of files. */
export interface FilePage {
  /** In the order of the query. */
  readonly files: readonly FileRecord[]
  /** Are there files behind the last one? */
  readonly hasMore: boolean
}

/** Who owns which file. Unknown, foreign and expired ids read alike. */
export interface FileStore {
  /** Notes a file; one of the same id and account is replaced. */
  save(file: FileRecord): MaybePromise<void>
  /** An account's own file, unless it has expired. */
  find(accountId: string, id: string, nowMs: number): MaybePromise<FileRecord | undefined>
  /** A page of an account's files that have not expired. */
  list(accountId: string, query: FileQuery, nowMs: number): MaybePromise<FilePage>
  /** False for an unknown or foreign id. */
  delete(accountId: string, id: string): MaybePromise<boolean>
  /** Deletes at most `limit` that have expired; gives their ids, by which their bytes can be deleted. */
  purge(nowMs: number, limit: number): MaybePromise<readonly string[]>
}
