import type { Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { Usage } from '../core/usage.ts'
import type { AnswerBody } from '../endpoints/operation.ts'
import type { Candidate } from './call-record.ts'
import type { CandidateCall } from './candidate-call.ts'
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
  /** What a vendor billed of a call that is not charged for; it counts against the token limit. */
  readonly unbilledUsage?: Usage | undefined
  readonly error: GatewayError | undefined
}

/** A vendor's JSON response in the caller's dialect. */
export interface JsonResponse {
  readonly kind: 'json'
  readonly body: AnswerBody
  readonly candidate: Candidate
  readonly dropped: readonly string[]
  readonly ending: CallEnding
  readonly vendorRequestId: string | undefined
}

/** A stream whose first content has arrived; nothing was sent to the caller yet. */
export class StreamResponse {
  readonly kind = 'stream'
  readonly call: StreamCall
  readonly candidate: Candidate
  readonly dropped: readonly string[]
  /** See `Operation.reasonsUnseen`. */
  readonly reasonsUnseen: boolean
  readonly #candidateCall: CandidateCall
  /** Aborts the vendor call at the request's total timeout. */
  readonly #deadline: Timer

  constructor(
    call: StreamCall,
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

  /** The stream is over. Called exactly once. `aborted`: it ended on our side. */
  end(outcome: 'completed' | 'broken' | 'aborted'): void {
    this.#deadline.cancel()
    if (outcome === 'completed') this.#candidateCall.completed()
    else if (outcome === 'broken') this.#candidateCall.broken()
    else this.#candidateCall.ignored()
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
