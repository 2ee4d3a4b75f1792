import type { Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { Usage } from '../core/usage.ts'
import type { AnswerBody } from '../endpoints/operation.ts'
import type { Candidate } from './call-record.ts'
import type { CandidateCall } from './candidate-call.ts'
import type { StreamCall } from './stream-call.ts'

/** What a call used and whether it is charged for. */
export interface CallEnding {
  readonly kind: 'completed' | 'failed' | 'abandoned'
  /** What the vendor reported; undefined when it did not. */
  readonly usage: Usage | undefined
  /**
   * What to charge for where the vendor reported nothing: the prompt, and the output seen so far.
   * Undefined: nothing is charged unless the vendor reported something.
   */
  readonly estimatedUsage: Usage | undefined
  /** What a vendor billed of a call that is not charged for; it counts against the token limit. */
  readonly unbilledUsage?: Usage | undefined
  readonly error: GatewayError | undefined
}

/** A vendor's whole answer in the caller's dialect. */
export interface JsonResponse {
  readonly kind: 'json'
  readonly body: AnswerBody
  readonly candidate: Candidate
  readonly dropped: readonly string[]
  readonly ending: CallEnding
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
  /** Ends the vendor call when the whole time of the request is over. */
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

  /** The stream is over. Called once, whatever became of it. `aborted`: it ended on this side. */
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
  /** True when the vendor has the request and nobody knows what it does with it. */
  readonly mayHaveBegun: boolean
  readonly ending: CallEnding
}

/** Outcome of dispatching. */
export type VendorResponse = JsonResponse | StreamResponse | FailedResponse

/** Whatever is thrown between the hold and its end becomes a failed response, so that the hold ends all the same. */
export function failedResponse(cause: unknown): FailedResponse {
  const error = GatewayError.from(cause)
  const ending = { kind: 'failed', usage: undefined, estimatedUsage: undefined, error } as const
  return { kind: 'failed', error, candidate: undefined, mayHaveBegun: false, ending }
}
