import type { WireAnswer, WireRequest } from './operation.ts'

/**
 * A body that holds the requests of a batch, each as {@link NativeBatches.line} wrote it: `before`, the lines with `between` between each
 * two of them, `after`. The gateway sends it with its `content-length` and never has it whole in memory.
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
  /** A {@link LinesBody} only for the one call that carries the requests: the upload, or else the creation. Null: none. */
  readonly body: string | LinesBody | null
}

/** What a batch is created from. */
export interface NativeBatchInput {
  /** What {@link NativeBatches.upload} gave; undefined for a vendor that takes no files: its call carries the requests. */
  readonly fileId: string | undefined
  /** Path of all requests below the vendor's origin, as their translator made it. */
  readonly path: string
  /** The vendor's own id of the model of all requests. */
  readonly upstream: string
  /** A text of ours that only this batch has, letters, digits and `_`; by it the batch is found again. */
  readonly name: string
}

/** What a vendor says of a batch. */
export interface NativeReport {
  /**
   * `running`: it, or its cancellation, is under way. `ended`: what was made can be read. `failed`: the vendor made nothing of it and
   * bills nothing, such as for a model that it does not take in batches.
   */
  readonly state: 'running' | 'ended' | 'failed'
  /** Of one that has ended: did the vendor's time run out, so that requests without a result were not made? */
  readonly isExpired: boolean
  /** Was it cancelled, so that requests without a result were not made? */
  readonly isCancelled: boolean
  /** Where the results are, in words of the vendor that {@link NativeBatches.results} understands; empty: there are none. */
  readonly results: readonly string[]
  /** Of one that has failed, for the operator's log, redacted. */
  readonly failure: { readonly code: string; readonly message: string } | undefined
}

/** What became of one request of a batch. */
export type NativeResult =
  /** The answer as the same request would have had it as a single call: with a status of 400 or more an error. */
  | {
      readonly customId: string
      readonly kind: 'answered'
      readonly status: number
      /** JSON text, as the translator of the endpoint reads it. */
      readonly body: string
    }
  /** It was not made and is not billed. */
  | { readonly customId: string; readonly kind: 'expired' | 'cancelled' }

/** How a vendor finds a batch whose creation was sent, and of which no answer came. */
export interface NativeSearch {
  /** A page of the operator's batches, newest first. @param after What the page before it gave. */
  call(after: string | undefined, apiKey: string): NativeCall
  /**
   * Reads a 2xx answer. `batchId`: found. `after`: go on behind this. Neither: there is no such batch. Undefined if it is malformed.
   * @param sought A batch that was created before `sinceMs`, Unix milliseconds, is not the one, nor is any behind it.
   */
  read(
    answer: WireAnswer,
    sought: { readonly name: string; readonly sinceMs: number },
  ): { readonly batchId?: string | undefined; readonly after?: string | undefined } | undefined
}

/**
 * A vendor's batch API: many requests at once, for less money, with the answers later. All functions are pure, and each `…ed`, `read` and
 * `report` reads a 2xx answer; undefined: it is malformed. Other answers are read by the vendor's `errorFrom`.
 */
export interface NativeBatches {
  /** Most requests of a batch; most bytes of their lines with a line break behind each; most bytes of one line. */
  readonly limits: { readonly maxRequests: number; readonly maxBytes: number; readonly maxLineBytes: number }
  /**
   * May a request that a translator made go into a batch? By its path, and by headers that only a single call can have. All requests of a
   * batch have the same path.
   */
  takes(request: Pick<WireRequest, 'path' | 'headers'>): boolean
  /**
   * One request as JSON text without line breaks.
   * @param request `customId` is one of ours, of letters and digits, which its result repeats; `body` JSON text without line breaks.
   */
  line(request: { readonly customId: string; readonly path: string; readonly body: string }): string
  /** Absent: the creation carries the requests. */
  readonly upload?: {
    call(name: string, apiKey: string): NativeCall
    /** The vendor's id of the file. */
    uploaded(answer: WireAnswer): string | undefined
  }
  create(input: NativeBatchInput, apiKey: string): NativeCall
  /** The vendor's id of the batch. */
  created(answer: WireAnswer): string | undefined
  /**
   * Absent: a batch cannot be found by our name. When a process dies in the moment of the creation, its requests then end with an error,
   * because sending them again could be paid twice.
   */
  readonly search?: NativeSearch
  read(batchId: string, apiKey: string): NativeCall
  report(answer: WireAnswer): NativeReport | undefined
  /** A call that gives JSON lines. @param results One of {@link NativeReport.results}. */
  results(results: string, apiKey: string): NativeCall
  /** Reads a line of results. Undefined: it is none, or malformed. */
  result(line: string): NativeResult | undefined
  cancel(batchId: string, apiKey: string): NativeCall
  /**
   * Calls that delete what the vendor keeps of a batch that is over, as far as it can be deleted: callers' data stand in it. An answer 404
   * counts as deleted.
   * @param kept `batchId`: undefined if it was not created; `results`: those of the last report.
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
