import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'

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

/** Outcome of one request of a batch. */
export interface BatchOutcome {
  /** Position of the request in the batch, counted from 0. */
  readonly line: number
  /** Whether the request was answered. `false` if the text is an error. */
  readonly isAnswered: boolean
  /** JSON text that its caller reads. */
  readonly text: string
  /** Usage that is charged, or `undefined` if nothing is charged. */
  readonly usage: Usage | undefined
  /** Charge in nano-dollars. */
  readonly amount: bigint
}

/** Number of requests of a batch that have ended. */
export interface BatchTally {
  /** Requests that have an answer. */
  readonly answered: number
  /** Requests that ended with an error. */
  readonly failed: number
}

/** Outcomes of the requests of batches, until their batch has ended. */
export interface BatchStore {
  /** Stores an outcome. Returns false if the request has one already, which stays. */
  add(batchId: string, outcome: BatchOutcome, expiresAtMs: number): MaybePromise<boolean>
  /** Returns the number of outcomes of a batch so far; zeros for an unknown batch. */
  tally(batchId: string): MaybePromise<BatchTally>
  /** Returns up to `limit` outcomes after a position, in order; fewer if there are no more. -1 begins with the first one. */
  page(batchId: string, afterLine: number, limit: number): MaybePromise<readonly BatchOutcome[]>
  /** Returns up to `limit` positions after this one that have an outcome, in order; fewer if there are no more. */
  lines(batchId: string, afterLine: number, limit: number): MaybePromise<readonly number[]>
  /** Deletes up to `limit` outcomes of a batch and returns how many were deleted. */
  delete(batchId: string, limit: number): MaybePromise<number>
  /** Deletes up to `limit` expired outcomes and returns how many were deleted. */
  purge(nowMs: number, limit: number): MaybePromise<number>
}
