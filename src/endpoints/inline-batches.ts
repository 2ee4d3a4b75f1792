import type { GatewayError } from '../core/errors.ts'

/** A batch as its dialect shows it. Times are in Unix milliseconds, or null if they have not occurred. */
export interface InlineBatchState {
  readonly id: string
  readonly createdAtMs: number
  readonly expiresAtMs: number
  readonly cancellingAtMs: number | null
  readonly endedAtMs: number | null
  /** Time at which the results became or will become unavailable. */
  readonly archivedAtMs: number | null
  /** Null if there are no results, or no results any more. */
  readonly resultsUrl: string | null
  readonly total: number
  /** How the requests ended; all zero while one of them may still run. */
  readonly ended: InlineBatchCounts
  /** Cost in decimal dollars, or `undefined` if nothing was charged. */
  readonly cost: string | undefined
}

/** How the requests of a batch ended. */
export interface InlineBatchCounts {
  readonly answered: number
  readonly failed: number
  readonly cancelled: number
  readonly expired: number
}

/** How one request of a batch ended, with the JSON text of its answer or error. */
export type InlineResult =
  | { readonly kind: 'answered' | 'failed'; readonly body: string }
  | { readonly kind: 'cancelled' | 'expired' }

/** A request of a batch, or the invalid member and the reason. */
export type InlineRequest =
  | { readonly customId: string; readonly body: Readonly<Record<string, unknown>> }
  | { readonly param: string | null; readonly reason: string }

/** A page of batches. */
export interface InlineBatchPage {
  readonly batches: readonly InlineBatchState[]
  readonly hasMore: boolean
}

/** Batches in an endpoint's own API, whose submissions contain the requests themselves. */
export interface InlineBatches {
  readonly path: string
  /** Prefix of batch ids. */
  readonly idPrefix: string
  /** Member of a submission that lists the requests. */
  readonly listMember: string
  /** Member of a request that is sent to the endpoint. */
  readonly bodyMember: string
  /** Names of the query parameters of lists. */
  readonly cursors: { readonly after: string; readonly before: string }
  readonly maxPage: number
  /** Media type of the results. */
  readonly resultsType: string
  readRequest(value: unknown): InlineRequest
  record(batch: InlineBatchState): object
  list(page: InlineBatchPage): object
  deleted(id: string): object
  /** Returns a line of the results, without its line end. */
  resultLine(customId: string, result: InlineResult): string
  /** Returns the JSON text of an error within a line of the results. */
  errorText(error: GatewayError, requestId: string): string
}
