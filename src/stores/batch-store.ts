import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'

/** How one request of a batch ended. */
export interface BatchOutcome {
  /** Its place in the batch, counted from 0. */
  readonly line: number
  /** Was it answered, or is it an error? */
  readonly isAnswered: boolean
  /** JSON text that its caller reads. */
  readonly text: string
  /** What is charged for; undefined: nothing is. */
  readonly usage: Usage | undefined
  /** Nano-dollars. */
  readonly amount: bigint
}

/** How many requests of a batch have ended. */
export interface BatchTally {
  /** Requests that have an answer. */
  readonly answered: number
  /** Requests that ended with an error. */
  readonly failed: number
}

/** What became of the requests of batches, until their batch has ended. */
export interface BatchStore {
  /** Keeps an outcome. False: the request has one already, which stays. */
  add(batchId: string, outcome: BatchOutcome, expiresAtMs: number): MaybePromise<boolean>
  /** How many outcomes a batch has so far; zeros for an unknown one. */
  tally(batchId: string): MaybePromise<BatchTally>
  /** Outcomes behind a place, in order, -1 being before the first one. */
  page(batchId: string, afterLine: number, limit: number): MaybePromise<readonly BatchOutcome[]>
  /** The places behind one that have an outcome, in order. */
  lines(batchId: string, afterLine: number, limit: number): MaybePromise<readonly number[]>
  /** Deletes at most `limit` outcomes of a batch; gives their number. */
  delete(batchId: string, limit: number): MaybePromise<number>
  /** Deletes at most `limit` outcomes that have expired; gives their number. */
  purge(nowMs: number, limit: number): MaybePromise<number>
}
