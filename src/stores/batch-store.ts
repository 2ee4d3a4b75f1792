import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'

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
  /** Returns outcomes after a position, in order; -1 begins with the first one. */
  page(batchId: string, afterLine: number, limit: number): MaybePromise<readonly BatchOutcome[]>
  /** Returns the positions after this one that have an outcome, in order. */
  lines(batchId: string, afterLine: number, limit: number): MaybePromise<readonly number[]>
  /** Deletes up to `limit` outcomes of a batch and returns how many were deleted. */
  delete(batchId: string, limit: number): MaybePromise<number>
  /** Deletes up to `limit` expired outcomes and returns how many were deleted. */
  purge(nowMs: number, limit: number): MaybePromise<number>
}
