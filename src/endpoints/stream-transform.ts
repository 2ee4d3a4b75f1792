import type { GatewayError } from '../core/errors.ts'
import type { Usage } from '../core/usage.ts'

/** A vendor's complaint, read from an error answer or from an error event inside a stream. */
export interface VendorFailure {
  /**
   * Error classification.
   * `caller`: the request itself is invalid; status and text go back to the caller, and there is no retry.
   * `rate_limited`: too many requests at the vendor. `operator`: the vendor's account, key, quota or model id, which the
   * caller must not see. `unavailable`: overload or a server fault. `timeout`: the vendor reported a timeout.
   * `invalid_response`: the answer is malformed.
   */
  readonly kind: 'caller' | 'rate_limited' | 'operator' | 'unavailable' | 'timeout' | 'invalid_response'
  /**
   * The subject of an operator error, if the vendor names it: only the model, so that the key keeps serving others, or the
   * key, its account or its quota. Absent: 401, 402, 403 and 429 concern the key, everything else the model.
   * Of a caller error only `size`: the request is larger than the model's context window, so that a model with a larger one may
   * answer it.
   */
  readonly concerns?: 'key' | 'model' | 'size' | undefined
  /** The vendor's HTTP status; 0 when the failure came inside a stream or without an answer. */
  readonly status: number
  /** The vendor's own text. Shown to callers only for `caller`, after redaction. */
  readonly message: string
  /** The vendor's own code. */
  readonly code?: string | undefined
  /** The vendor's own type of error. */
  readonly type?: string | undefined
  /** Path of the field at fault, where the vendor names one. */
  readonly param?: string | undefined
  /** What clients of the vendor's dialect act on by themselves. Shown to callers only for `caller`, after redaction. */
  readonly details?: Readonly<Record<string, unknown>> | undefined
  /** The vendor's own id of the request. */
  readonly requestId?: string | undefined
  /** As the vendor asks. */
  readonly retryAfterSeconds?: number | undefined
  /**
   * Set where the vendor bills a call that it refuses, or may do so, and reports no usage: bytes of text that it had made. 0: the prompt
   * only.
   */
  readonly billedBytes?: number | undefined
  /** How far the vendor's clock is ahead of this machine's, where it refuses a signature for its time; milliseconds. */
  readonly clockOffsetMs?: number | undefined
}

/**
 * CPU-bound work of milliseconds per network read, done in steps, so that everything else in the process runs in between.
 * `push` and `end` of the transform finish remaining work at once.
 */
export interface IncrementalEncoder {
  /** Takes one network read, like `push`, but defers the work to {@link next}. */
  take(chunk: Uint8Array): void
  /** Is work left? `end` should not be called before it is done. */
  readonly hasWork: boolean
  /** Does about a millisecond of the work; returns the caller's bytes for it, or undefined if there are none. */
  next(): Uint8Array | string | undefined
}

/** The two ids of an answer that can be continued. */
export interface AnswerIds {
  /** As the caller reads it. */
  readonly id: string
  /** The vendor's own. */
  readonly upstreamId: string
}

/**
 * Turns a vendor's body, as it arrives, into the bytes for the caller. Pure and synchronous: bytes in, bytes out.
 * Used for one answer only.
 */
export interface StreamTransform {
  /** Is an answer of this media type a stream that it reads? Absent: server-sent events are. */
  readonly takes?: ((mediaType: string) => boolean) | undefined
  /** Takes one network read; returns the caller's bytes for it, or undefined if there are none yet. */
  push(chunk: Uint8Array): Uint8Array | string | undefined
  /** The vendor's body ended without a network fault; returns the last bytes for the caller, if any. */
  end(): Uint8Array | string | undefined
  /** True once something was given that a caller would keep; response headers are held back until then. */
  readonly hasContent: boolean
  /** True once the vendor's answer is known to be whole. A body that ends before that was cut. */
  readonly isComplete: boolean
  /** True between two events, where a comment line is allowed. */
  readonly atBoundary: boolean
  /** An error the vendor sent inside the stream; nothing is returned after it. */
  readonly failure: VendorFailure | undefined
  /** The vendor's latest usage report. */
  readonly usage: Usage | undefined
  /** Tier of service that the vendor has named, for a stream without a report; as {@link Usage.serviceTier}. */
  readonly serviceTier?: string | undefined
  /** True where `usage` is what was sent, because the vendor reports nothing. Absent: it is a report. */
  readonly countsUsage?: boolean
  /**
   * Bytes of UTF-8 text that the vendor has generated so far: answer, reasoning and arguments of tool calls. By it an answer is
   * charged that ends without a report of usage; how the vendor cuts the text into events makes no difference.
   */
  readonly outputBytesSeen: number
  /**
   * Images that models within the call have begun and that no report counts so far. They are charged as they were held for.
   * If omitted, no model works within the call, or only the usage report contains its images.
   */
  readonly innerImagesSeen?: number | undefined
  /** True while no text is under way: all that has begun has ended, and usage may follow. Absent: never. */
  readonly hasTextEnded?: boolean
  /** True where the vendor reports usage with every event, unseen reasoning included. Absent: it reports at the end. */
  readonly hasRunningUsage?: boolean
  /** True when the vendor said that it made nothing; such an answer is not charged for. Absent: never. */
  readonly isRefusal?: boolean
  /** Set once they are known, where the answer can be continued. */
  readonly answerIds?: AnswerIds | undefined
  /** The answer as an object, once it is whole, where answers are kept. */
  readonly keptAnswer?: Readonly<Record<string, unknown>> | undefined
  /** The end of a whole answer, which is sent once the answer is kept. Absent: everything was given. */
  readonly closing?: Uint8Array | string | undefined
  /** Bytes that keep a silent stream open, valid between two events. Absent: a comment line. */
  keepAlive?(): Uint8Array | string
  /** The end of a stream that broke: an error in the caller's dialect that continues the events so far. Absent: the dialect's own. */
  failed?(error: GatewayError): string
  /**
   * Takes the call under way out of `usage`: it was refused or not sent, or it is the first and broke before an answer. Absent: usage is
   * what the vendor reports.
   */
  withdrawCall?(): void
  /**
   * True while nothing is kept of the bytes that it was given or has returned: their memory is freed when it is not read again.
   * Absent: something may be kept.
   */
  readonly holdsNoBytes?: boolean
  /** Settles when what the transform needs is loaded; nothing must be pushed before. Absent: it needs nothing. */
  readonly ready?: Promise<void> | undefined
  /** Set when the work is CPU-bound: one step of one such stream is then done in a turn of the event loop. */
  readonly encoder?: IncrementalEncoder | undefined
}
