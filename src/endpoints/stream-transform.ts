import type { GatewayError } from '../core/errors.ts'
import type { Usage } from '../core/usage.ts'

/** A failure that a vendor reports in an error answer or in an error event of a stream. */
export interface VendorFailure {
  /**
   * Class of the error. `caller`: the request itself is invalid; status and text are returned to the caller, without a retry.
   * `rate_limited`: too many requests at the vendor. `operator`: the vendor's account, key, quota or model id, which the caller
   * must not see. `unavailable`: overload or a server fault. `timeout`: the vendor reported a timeout. `invalid_response`: the
   * answer is malformed.
   */
  readonly kind: 'caller' | 'rate_limited' | 'operator' | 'unavailable' | 'timeout' | 'invalid_response'
  /**
   * Subject of an operator error, if the vendor names it: only the model, so that the key keeps serving others, or the key, its
   * account or its quota. If omitted, 401, 402, 403 and 429 concern the key, everything else the model. A caller error can only
   * concern `size`: the request exceeds the model's context window, so a model with a larger one may answer it.
   */
  readonly concerns?: 'key' | 'model' | 'size' | undefined
  /** The vendor's HTTP status, or 0 for a failure inside a stream or without an answer. */
  readonly status: number
  /** The vendor's own text. Shown to callers only for `caller`, after redaction. */
  readonly message: string
  /** The vendor's own code. */
  readonly code?: string | undefined
  /** The vendor's own type of error. */
  readonly type?: string | undefined
  /** Path of the invalid field, if the vendor names one. */
  readonly param?: string | undefined
  /** Members that clients of the vendor's dialect react to. Shown to callers only for `caller`, after redaction. */
  readonly details?: Readonly<Record<string, unknown>> | undefined
  /** The vendor's own id of the request. */
  readonly requestId?: string | undefined
  /** Wait before a retry that the vendor requests, in seconds. */
  readonly retryAfterSeconds?: number | undefined
  /**
   * Set if the vendor bills or may bill a rejected call without reporting its usage: bytes of generated text. 0 for the prompt
   * only.
   */
  readonly billedBytes?: number | undefined
  /** Lead of the vendor's clock over this machine's in milliseconds, if the vendor rejects a signature for its time. */
  readonly clockOffsetMs?: number | undefined
}

/**
 * CPU-bound work of milliseconds per network read, done in steps, so that the rest of the process can run in between. `push` and
 * `end` of the transform finish remaining work immediately.
 */
export interface IncrementalEncoder {
  /** Accepts one network read, like `push`, but defers the work to {@link next}. */
  take(chunk: Uint8Array): void
  /** Whether work is left. Do not call `end` before it is done. */
  readonly hasWork: boolean
  /** Does about a millisecond of the work. Returns the caller's bytes for it, if any. */
  next(): Uint8Array | string | undefined
}

/** The two ids of an answer that can be continued. */
export interface AnswerIds {
  /** Id that the caller reads. */
  readonly id: string
  /** The vendor's own id. */
  readonly upstreamId: string
}

/** Converts a vendor's body to the bytes for the caller while it arrives. Pure and synchronous. Used for one answer only. */
export interface StreamTransform {
  /** Whether the transform reads streams of this media type. Defaults to server-sent events. */
  readonly takes?: ((mediaType: string) => boolean) | undefined
  /** Processes one network read. Returns the caller's bytes for it, if any. */
  push(chunk: Uint8Array): Uint8Array | string | undefined
  /** Called if the vendor's body ended without a network fault. Returns the last bytes for the caller, if any. */
  end(): Uint8Array | string | undefined
  /** Whether the output contains something that a caller keeps. Response headers are held back until then. */
  readonly hasContent: boolean
  /** Whether the vendor's answer is known to be complete. A body that ends before was cut. */
  readonly isComplete: boolean
  /** Whether the output is between two events, where a comment line is allowed. */
  readonly atBoundary: boolean
  /** Error that the vendor sent inside the stream. Nothing is returned after it. */
  readonly failure: VendorFailure | undefined
  /** The vendor's latest usage report. */
  readonly usage: Usage | undefined
  /** Service tier that the vendor has named, for a stream without a report; see {@link Usage.serviceTier}. */
  readonly serviceTier?: string | undefined
  /** Whether `usage` counts what was sent, because the vendor reports nothing. By default, it is a report. */
  readonly countsUsage?: boolean
  /**
   * Bytes of UTF-8 text that the vendor has generated so far: answer, reasoning and arguments of tool calls. Answers without a
   * usage report are charged by it. It does not depend on how the vendor splits text into events.
   */
  readonly outputBytesSeen: number
  /**
   * Images that models within the call have begun and that no report counts so far. They are charged at the held amount. If
   * omitted, no model runs within the call, or only the usage report contains its images.
   */
  readonly innerImagesSeen?: number | undefined
  /** Whether all text that has begun has ended, so that usage may follow. Default false. */
  readonly hasTextEnded?: boolean
  /** Whether the vendor reports usage with every event, unseen reasoning included. By default, it reports usage at the end. */
  readonly hasRunningUsage?: boolean
  /** Whether the vendor reported that it generated nothing. Such an answer is not charged. Default false. */
  readonly isRefusal?: boolean
  /** Ids of the answer, set once they are known, if it can be continued. */
  readonly answerIds?: AnswerIds | undefined
  /** The complete answer as an object, if answers are stored. */
  readonly keptAnswer?: Readonly<Record<string, unknown>> | undefined
  /** End of a whole answer, sent once the answer is stored. If omitted, everything was already returned. */
  readonly closing?: Uint8Array | string | undefined
  /** Returns bytes that keep a silent stream open, valid between two events. Defaults to a comment line. */
  readonly keepAlive?: (() => Uint8Array | string) | undefined
  /** Returns the end of a stream that broke: an error that continues the events so far. Defaults to the dialect's error. */
  readonly failed?: ((error: GatewayError) => string) | undefined
  /**
   * Removes the current call from `usage`, because it was rejected or not sent, or is the first and broke before an answer. If
   * omitted, usage is what the vendor reports.
   */
  withdrawCall?(): void
  /**
   * Whether the transform currently stores none of the bytes that it received or returned, so that their memory can be reused. If
   * omitted, it may store some.
   */
  readonly holdsNoBytes?: boolean
  /** Settles when dependencies of the transform are loaded; do not push before. If omitted, there are none. */
  readonly ready?: Promise<void> | undefined
  /** Set if the work is CPU-bound. Each turn of the event loop then does one step of one such stream. */
  readonly encoder?: IncrementalEncoder | undefined
}
