import type { GatewayError } from '../core/errors.ts'

/** A batch as its dialect shows it. Times in Unix milliseconds; null: not yet, or not at all. */
export interface InlineBatchState {
  readonly id: string
  readonly createdAtMs: number
  readonly expiresAtMs: number
  readonly cancellingAtMs: number | null
  readonly endedAtMs: number | null
  /** When its results became unavailable, or will not be there again. */
  readonly archivedAtMs: number | null
  /** Null: there are none, or none any more. */
  readonly resultsUrl: string | null
  readonly total: number
  /** How its requests ended; all zero while one of them may still run. */
  readonly ended: InlineBatchCounts
  /** Decimal dollars; undefined: nothing was charged. */
  readonly cost: string | undefined
}

/** How the requests of a batch ended. */
export interface InlineBatchCounts {
  readonly answered: number
  readonly failed: number
  readonly cancelled: number
  readonly expired: number
}

/** How one request of a batch ended; with the JSON text of its answer or error. */
export type InlineResult =
  | { readonly kind: 'answered' | 'failed'; readonly body: string }
  | { readonly kind: 'cancelled' | 'expired' }

/** A request of a batch, or what is wrong with it: the member, and the reason. */
export type InlineRequest =
  | { readonly customId: string; readonly body: Readonly<Record<string, unknown>> }
  | { readonly param: string | null; readonly reason: string }

/** A page of batches. */
export interface InlineBatchPage {
  readonly batches: readonly InlineBatchState[]
  readonly hasMore: boolean
}

/** Batches in an endpoint's own API, whose requests come within the submission. Their requests are those of the endpoint. */
export interface InlineBatches {
  readonly path: string
  /** Prefix of their ids. */
  readonly idPrefix: string
  /** The member of a submission that lists the requests. */
  readonly listMember: string
  /** The member of a request that is sent to the endpoint. */
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
  /** A line of the results, without its end. */
  resultLine(customId: string, result: InlineResult): string
  /** The JSON text of an error within a line of the results. */
  errorText(error: GatewayError, requestId: string): string
}
