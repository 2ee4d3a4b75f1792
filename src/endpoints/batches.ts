import type { GatewayError } from '../core/errors.ts'
import type { WireAnswer, WireRequest } from './operation.ts'

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

/**
 * A body with the requests of a batch, each as a {@link NativeBatches.line}: `before`, the lines separated by `between`, `after`.
 * The gateway sends it with its `content-length` and never holds it completely in memory.
 */
export interface LinesBody {
  readonly before: string
  readonly between: string
  readonly after: string
}

/** A call to a vendor's batch API, at the vendor's origin. */
export interface NativeCall {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Path and query below the vendor's origin. */
  readonly path: string
  /** Flat list: name, value, name, value; credentials and content type included, `content-length` not. */
  readonly headers: readonly string[]
  /** Body of the call. Only the call that carries the requests has a {@link LinesBody}: the upload, or else the creation. */
  readonly body: string | LinesBody | null
}

/** Data that a batch is created from. */
export interface NativeBatchInput {
  /** File id from {@link NativeBatches.upload}; `undefined` at vendors without files, whose creation carries the requests. */
  readonly fileId: string | undefined
  /** Path of all requests below the vendor's origin, as their translator returned it. */
  readonly path: string
  /** The vendor's own id of the model of all requests. */
  readonly upstream: string
  /** Unique name of the batch, of letters, digits and `_`, with which the gateway finds it again. */
  readonly name: string
}

/** Status of a batch that the vendor reports. */
export interface NativeReport {
  /**
   * `running`: the batch or its cancellation is in progress. `ended`: the existing results can be read. `failed`: the
   * vendor ran and bills nothing, such as for a model without batch support.
   */
  readonly state: 'running' | 'ended' | 'failed'
  /** Whether an ended batch timed out at the vendor, so that requests without a result were not run. */
  readonly isExpired: boolean
  /** Whether the batch was cancelled, so that requests without a result were not run. */
  readonly isCancelled: boolean
  /** Where the results are, in terms that {@link NativeBatches.results} understands. Empty if there are none. */
  readonly results: readonly string[]
  /** Redacted error of a failed batch, for the operator's log. */
  readonly failure: { readonly code: string; readonly message: string } | undefined
}

/** Result of one request of a batch. */
export type NativeResult =
  /** Answer of the request, as to a single call. A status of 400 or more is an error. */
  | {
      readonly customId: string
      readonly kind: 'answered'
      readonly status: number
      /** JSON text, as the translator of the endpoint reads it. */
      readonly body: string
    }
  /** The request was not run and is not billed. */
  | { readonly customId: string; readonly kind: 'expired' | 'cancelled' }

/** How a vendor finds a batch whose creation got no answer. */
export interface NativeSearch {
  /** Lists a page of the operator's batches, newest first. @param after Cursor of the previous page. */
  call(after: string | undefined, apiKey: string): NativeCall
  /**
   * Reads a 2xx answer. Returns `batchId` if found, `after` to continue, neither if there is no such batch, and `undefined` if
   * malformed.
   * @param sought Batches created before `sinceMs` (Unix milliseconds) cannot match, so the search ends there.
   */
  read(
    answer: WireAnswer,
    sought: { readonly name: string; readonly sinceMs: number },
  ): { readonly batchId?: string | undefined; readonly after?: string | undefined } | undefined
}

/**
 * A vendor's batch API: many requests together, for less money, with later answers. All functions are pure. Each `…ed`, `read` and
 * `report` reads a 2xx answer and returns `undefined` if malformed. The vendor's `errorFrom` reads other answers.
 */
export interface NativeBatches {
  /** Maximum number of requests, maximum bytes of their lines including line breaks, and maximum bytes of one line. */
  readonly limits: { readonly maxRequests: number; readonly maxBytes: number; readonly maxLineBytes: number }
  /**
   * Whether a translated request can join a batch, by its path and by headers that only a single call can have. All
   * requests of a batch have the same path.
   */
  takes(request: Pick<WireRequest, 'path' | 'headers'>): boolean
  /**
   * Returns one request as JSON text without line breaks.
   * @param request `customId` has letters and digits and is repeated in the result. `body` is JSON text without line breaks.
   */
  line(request: { readonly customId: string; readonly path: string; readonly body: string }): string
  /** If omitted, the creation carries the requests. */
  readonly upload?: {
    call(name: string, apiKey: string): NativeCall
    /** Returns the vendor's id of the file. */
    uploaded(answer: WireAnswer): string | undefined
  }
  create(input: NativeBatchInput, apiKey: string): NativeCall
  /** Returns the vendor's id of the batch. */
  created(answer: WireAnswer): string | undefined
  /**
   * If omitted, a batch cannot be found by its name. If a process then dies during the creation, the requests end with
   * an error, because repeating them could be paid twice.
   */
  readonly search?: NativeSearch
  read(batchId: string, apiKey: string): NativeCall
  report(answer: WireAnswer): NativeReport | undefined
  /** Creates a call that returns JSON lines. @param results One of {@link NativeReport.results}. */
  results(results: string, apiKey: string): NativeCall
  /** Reads a line of results. Returns `undefined` for an empty or malformed line. */
  result(line: string): NativeResult | undefined
  cancel(batchId: string, apiKey: string): NativeCall
  /**
   * Creates calls that delete a finished batch at the vendor, because it contains callers' data. An answer 404 counts as deleted.
   * @param kept `batchId` is `undefined` if the batch was not created. `results` are those of the last report.
   */
  remove(
    kept: {
      readonly fileId: string | undefined
      readonly batchId: string | undefined
      readonly results: readonly string[]
    },
    apiKey: string,
  ): readonly NativeCall[]
}
