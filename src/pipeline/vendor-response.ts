import type { Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { type UnbilledUsage, type Usage, usedOf } from '../core/usage.ts'
import type { AnswerBody } from '../endpoints/operation.ts'
import type { Candidate } from './call-record.ts'
import type { AttemptFailure } from './error-classification.ts'
import type { StreamCall } from './stream-call.ts'

/** Usage of a call, and whether it is charged. */
export interface CallEnding {
  readonly kind: 'completed' | 'failed' | 'abandoned'
  /** Report of the vendor, or undefined if there was none. */
  readonly usage: Usage | undefined
  /** Usage to charge without a report: the prompt, and the output seen so far. If `undefined`, only reported usage is charged. */
  readonly estimatedUsage: Usage | undefined
  /** Bytes of text of the reported output tokens. Omitted if not known, or if the tokens are not only text. */
  readonly textBytes?: number | undefined
  /** Usage of a call that is not charged. It counts against the token limit. */
  readonly unbilled?: UnbilledUsage | undefined
  /** Usage that a vendor may bill for a failed attempt without a report, apart from charged and `unbilled` usage. Counts nowhere. */
  readonly unreportedUsage?: Usage | undefined
  readonly error: GatewayError | undefined
}

/** Returns the ending without a charge: what the vendor bills is the operator's loss. */
export function uncharged(ending: CallEnding): CallEnding {
  const { usage, estimatedUsage } = ending
  const billed = usage ?? estimatedUsage
  // Nothing was to be charged, so what the vendor bills has been reported already.
  if (billed === undefined) return ending
  const unbilled = { usage: billed, isEstimated: usage === undefined }
  return { ...ending, usage: undefined, estimatedUsage: undefined, unbilled }
}

/** Returns the ending of a refusal by the vendor, which is complete and not charged. Its reported usage is emitted. */
export function refusedEnding(usage: Usage | undefined): CallEnding {
  return uncharged({ kind: 'completed', usage: usedOf(usage), estimatedUsage: undefined, error: undefined })
}

/** JSON response of a vendor in the caller's dialect. */
export interface JsonResponse {
  readonly kind: 'json'
  readonly body: AnswerBody
  readonly candidate: Candidate
  readonly dropped: readonly string[]
  readonly ending: CallEnding
  readonly vendorRequestId: string | undefined
  /** Whether the transport no longer reads the memory of the answered request. Omitted if not known. */
  readonly isRequestSent?: boolean
}

/** Open stream as it is sent to a caller. */
export type OpenStream = Pick<
  StreamCall,
  'transform' | 'vendorRequestId' | 'attach' | 'pause' | 'resume' | 'readAtMost' | 'abort'
>

/** Call at a candidate whose stream has opened. One of its methods ends it. */
interface WatchedStream {
  readonly candidate: Candidate
  completed(): void
  ignored(): void
  broken(requestId: string, failure: AttemptFailure): void
}

/** Stream whose first content has arrived. Nothing was sent to the caller yet. */
export class StreamResponse {
  readonly kind = 'stream'
  /** Replaced if hooks screen the stream. */
  call: OpenStream
  readonly candidate: Candidate
  readonly dropped: readonly string[]
  /** See `Operation.hasHiddenReasoning`. */
  readonly hasHiddenReasoning: boolean
  readonly #candidateCall: WatchedStream
  /** Aborts the vendor call at the request's total timeout. */
  readonly #deadline: Timer

  constructor(
    call: OpenStream,
    candidateCall: WatchedStream,
    facts: { readonly dropped: readonly string[]; readonly hasHiddenReasoning: boolean },
    deadline: Timer,
  ) {
    this.call = call
    this.candidate = candidateCall.candidate
    this.dropped = facts.dropped
    this.hasHiddenReasoning = facts.hasHiddenReasoning
    this.#candidateCall = candidateCall
    this.#deadline = deadline
  }

  /** Ends the stream: it completed, was ended by the gateway, or failed at the vendor. Called exactly once. */
  end(outcome: 'completed' | 'aborted' | { readonly requestId: string; readonly failure: AttemptFailure }): void {
    this.#deadline.cancel()
    if (outcome === 'completed') this.#candidateCall.completed()
    else if (outcome === 'aborted') this.#candidateCall.ignored()
    else this.#candidateCall.broken(outcome.requestId, outcome.failure)
  }
}

/** Result if no candidate answered, or the caller disconnected. */
export interface FailedResponse {
  readonly kind: 'failed'
  readonly error: GatewayError
  readonly candidate: Candidate | undefined
  /** Whether the vendor has the request and its state is unknown. */
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
 * Answer that continues after the stages have returned. An object, because the promises of all stages would adopt a promise, and
 * be retained with their data as long as a model generates.
 */
export interface Unfinished {
  /** Rejects with the errors of the stages. */
  readonly end: Promise<void>
}
