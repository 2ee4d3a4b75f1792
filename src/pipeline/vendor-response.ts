import type { Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { type UnbilledUsage, type Usage, usedOf } from '../core/usage.ts'
import type { AnswerBody } from '../endpoints/operation.ts'
import type { Candidate } from './call-record.ts'
import type { CandidateCall } from './candidate-call.ts'
import type { AttemptFailure } from './error-classification.ts'
import type { StreamCall } from './stream-call.ts'

/** The usage of a call and whether it is charged. */
export interface CallEnding {
  readonly kind: 'completed' | 'failed' | 'abandoned'
  /** The vendor's report; undefined if there was none. */
  readonly usage: Usage | undefined
  /**
   * What to charge if the vendor reported nothing: the prompt, and the output seen so far. Undefined: only reported usage
   * is charged.
   */
  readonly estimatedUsage: Usage | undefined
  /** Bytes of text that the reported output tokens stand for; absent: not known, or they stand for more than text. */
  readonly textBytes?: number | undefined
  /** Of a call that is not charged for. It counts against the token limit. */
  readonly unbilled?: UnbilledUsage | undefined
  /** What a vendor may bill of an attempt that failed without a report, beside what is charged or `unbilled`. It counts nowhere. */
  readonly unreportedUsage?: Usage | undefined
  readonly error: GatewayError | undefined
}

/** The same ending without a charge: what the vendor bills is the operator's loss. */
export function uncharged(ending: CallEnding): CallEnding {
  const { usage, estimatedUsage } = ending
  const billed = usage ?? estimatedUsage
  // Nothing was to be charged: what the vendor bills is told already.
  if (billed === undefined) return ending
  const unbilled = { usage: billed, isEstimated: usage === undefined }
  return { ...ending, usage: undefined, estimatedUsage: undefined, unbilled }
}

/** An answer by which the vendor refused, complete and not charged for. What it reports to have used is told. */
export function refusedEnding(usage: Usage | undefined): CallEnding {
  return uncharged({ kind: 'completed', usage: usedOf(usage), estimatedUsage: undefined, error: undefined })
}

/** A vendor's JSON response in the caller's dialect. */
export interface JsonResponse {
  readonly kind: 'json'
  readonly body: AnswerBody
  readonly candidate: Candidate
  readonly dropped: readonly string[]
  readonly ending: CallEnding
  readonly vendorRequestId: string | undefined
  /** Is the memory of the request that was answered not read any more by what sends it? Absent: not known. */
  readonly isRequestSent?: boolean
}

/** An open stream as it is sent to a caller. */
export type OpenStream = Pick<
  StreamCall,
  'transform' | 'vendorRequestId' | 'attach' | 'pause' | 'resume' | 'readAtMost' | 'abort'
>

/** A stream whose first content has arrived; nothing was sent to the caller yet. */
export class StreamResponse {
  readonly kind = 'stream'
  /** Replaced where hooks screen the stream. */
  call: OpenStream
  readonly candidate: Candidate
  readonly dropped: readonly string[]
  /** See `Operation.reasonsUnseen`. */
  readonly reasonsUnseen: boolean
  readonly #candidateCall: CandidateCall
  /** Aborts the vendor call at the request's total timeout. */
  readonly #deadline: Timer

  constructor(
    call: OpenStream,
    candidateCall: CandidateCall,
    facts: { readonly dropped: readonly string[]; readonly reasonsUnseen: boolean },
    deadline: Timer,
  ) {
    this.call = call
    this.candidate = candidateCall.candidate
    this.dropped = facts.dropped
    this.reasonsUnseen = facts.reasonsUnseen
    this.#candidateCall = candidateCall
    this.#deadline = deadline
  }

  /** The stream is over: it completed, ended on our side, or failed at the vendor. Called exactly once. */
  end(outcome: 'completed' | 'aborted' | { readonly requestId: string; readonly failure: AttemptFailure }): void {
    this.#deadline.cancel()
    if (outcome === 'completed') this.#candidateCall.completed()
    else if (outcome === 'aborted') this.#candidateCall.ignored()
    else this.#candidateCall.broken(outcome.requestId, outcome.failure)
  }
}

/** No candidate answered, or the caller disconnected. */
export interface FailedResponse {
  readonly kind: 'failed'
  readonly error: GatewayError
  readonly candidate: Candidate | undefined
  /** True if the vendor has the request and its state is unknown. */
  readonly mayHaveBegun: boolean
  readonly ending: CallEnding
}

/** Outcome of dispatching. */
export type VendorResponse = JsonResponse | StreamResponse | FailedResponse

/** Converts an error thrown between the hold and its end to a failed response, so that the hold still ends. */
export function failedResponse(cause: unknown): FailedResponse {
  const error = GatewayError.from(cause)
  const ending = { kind: 'failed', usage: undefined, estimatedUsage: undefined, error } as const
  return { kind: 'failed', error, candidate: undefined, mayHaveBegun: false, ending }
}

/**
 * An answer that goes on when the stages have returned. An object, because the promises of all stages would adopt a promise, and be kept
 * with what they have read for as long as a model speaks.
 */
export interface Unfinished {
  /** Rejects as the stages do. */
  readonly end: PromiseLike<void>
}
