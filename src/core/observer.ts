import type { ErrorCode } from './errors.ts'
import type { GatewayEvent } from './events.ts'
import type { Usage } from './usage.ts'

/** A request to an endpoint that calls a model, as it arrives. */
export interface RequestFacts {
  /** The caller reads it as `x-request-id`. */
  readonly requestId: string
  /** Id of the endpoint of the path. */
  readonly endpoint: string
  /** Unix milliseconds. */
  readonly startedAtMs: number
  /** A header of the request by its lower-case name. */
  header(name: string): string | undefined
}

/** A call of a tool by an authenticated caller, as it begins. It may make several requests to models, or none. */
export interface ToolCallFacts {
  /** Undefined: the caller named a tool that does not exist. */
  readonly tool: string | undefined
  /** What the tool protocol calls it: `tools/call`. */
  readonly method: string
  /** Version of the tool protocol, as the message said it. */
  readonly protocolVersion?: string | undefined
  /** Of clients that have one. */
  readonly sessionId?: string | undefined
  /** The caller's id of the message. */
  readonly messageId?: string | undefined
  /** The account that pays. */
  readonly accountId: string
  /** The key that called. */
  readonly keyId: string
  /** Unix milliseconds. */
  readonly startedAtMs: number
  /** A header of the HTTP request by its lower-case name. */
  header(name: string): string | undefined
  /** A text that the message itself carries beside its arguments, such as `traceparent`. */
  metadata(name: string): string | undefined
}

/** How a call of a tool ended. `refused`: there is no such tool. `abandoned`: the caller left, or cancelled it. */
export type ToolCallOutcome = 'completed' | 'failed' | 'abandoned' | 'refused'

/** A call of a tool that is over. */
export interface ToolCallEnd {
  readonly outcome: ToolCallOutcome
  /** The error that the caller read; undefined: none, or no such tool. */
  readonly code: ErrorCode | undefined
  /** Unix milliseconds, with a fraction. */
  readonly endedAtMs: number
  /** Milliseconds from its beginning. */
  readonly durationMs: number
}

/** A call of a tool that observers have been told of. */
export interface ObservedToolCall {
  /** Tells them of its end. Only the first call has an effect. */
  ended(outcome: ToolCallOutcome, code?: ErrorCode): void
}

/** A call to a vendor, as it begins. */
export interface AttemptFacts {
  /** Of the request; of a request within a batch, its own in the batch's results. */
  readonly requestId: string
  /** Id of the vendor. */
  readonly vendor: string
  /** What OpenTelemetry calls the provider. */
  readonly provider: string
  /** Where the vendor is called: `https://api.example`. */
  readonly origin: string
  /** Public id of the model. */
  readonly model: string
  /** The vendor's own id of the model. */
  readonly upstream: string
  /** Id of the endpoint by which the request is answered. */
  readonly endpoint: string
  /** What models do behind this endpoint: `chat`, `embedding`. */
  readonly kind: string
  /** Is a stream asked for? */
  readonly isStream: boolean
  /** Unix milliseconds, with a fraction. */
  readonly startedAtMs: number
}

/** How a call to a vendor ended. */
export interface AttemptEnd {
  /**
   * `ok`: it was answered. `aborted`: it was ended on this side, for a caller who left or an attempt that was faster. `broken`: a
   * stream broke off. Anything else: the `reason` of the event `attempt-failed`.
   */
  readonly outcome: string
  /** The vendor's status where it refused; undefined: it answered, or not at all. */
  readonly status: number | undefined
  /** The error that a caller would read; undefined: none. */
  readonly code: ErrorCode | undefined
  /** Unix milliseconds, with a fraction. */
  readonly endedAtMs: number
  /** Milliseconds from its beginning. */
  readonly durationMs: number
  /** From its start to the first content of a stream; undefined: none came, or it is no stream. */
  readonly firstByteMs: number | undefined
}

/**
 * How a request ended. `refused`: before anything was held, or a task that no vendor took. `replayed`: answered by what was kept
 * under an Idempotency-Key. `submitted`: a task that goes on.
 */
export type RequestOutcome = 'completed' | 'failed' | 'abandoned' | 'refused' | 'replayed' | 'submitted'

/** A request that is over. What is not known is undefined. */
export interface RequestEnd {
  /** Id of the endpoint of the path. */
  readonly endpoint: string
  readonly outcome: RequestOutcome
  /** HTTP status that the caller got. */
  readonly status: number
  /** The error that the caller read; undefined: none. */
  readonly code: ErrorCode | undefined
  /** The account that pays. */
  readonly accountId: string | undefined
  /** The key that called. */
  readonly keyId: string | undefined
  /** As the caller wrote it. */
  readonly requestedModel: string | undefined
  /** Public id of the model that answered, or was to answer. */
  readonly model: string | undefined
  /** Id of the vendor that answered, or was asked last. */
  readonly vendor: string | undefined
  /** Did the caller ask for a stream? */
  readonly isStream: boolean
  /** What is charged for. */
  readonly usage: Usage | undefined
  /** The charge; 0 with billing off. */
  readonly costNanoDollars: bigint
  /** Unix milliseconds, with a fraction. */
  readonly endedAtMs: number
  /** Milliseconds from the arrival. */
  readonly durationMs: number
  /** From the arrival to the first content. */
  readonly firstByteMs: number | undefined
  /** The part of `durationMs` in which neither the caller's body nor a vendor was awaited. */
  readonly overheadMs: number
  /** Calls to vendors. */
  readonly attempts: number
}

/** A step at the store: of money, tokens and keys of one request. */
export interface StoreFacts {
  /** `reserve`: before the call. `settle`: after it. */
  readonly operation: 'reserve' | 'settle'
  /** False: the store refused or did not answer. */
  readonly isOk: boolean
  /** Milliseconds. */
  readonly durationMs: number
}

/** What an observer may ask a gateway for at any time. Cheap, and only of this process. */
export interface GatewayState {
  /** Retries available now. */
  readonly retriesLeft: number
  /** Settlements that the store has not taken yet. */
  readonly settlementsWaiting: number
  /** How long the oldest record of a call that is in no sum yet has waited, in milliseconds. */
  readonly rollUpAgeMs: number
  /** One for each configured vendor. */
  readonly vendors: readonly VendorState[]
}

/** Load of a vendor, and its keys. */
export interface VendorState {
  /** Id of the vendor. */
  readonly vendor: string
  /** Calls in progress. */
  readonly inFlight: number
  /** Adaptive concurrency limit. */
  readonly limit: number
  /** `isUp`: its circuit is not open. */
  readonly keys: readonly { readonly credentialId: string; readonly isUp: boolean }[]
}

/**
 * Is told of each step of the requests to models, and of calls of tools. Methods are called synchronously; what they throw is caught and logged. Absent
 * ones cost nothing. No argument holds a prompt, an answer or a credential.
 */
export interface Observer {
  /** A gateway has been made that tells this observer. */
  attached?(state: () => GatewayState): void
  /** That gateway has closed. `state` is the function that {@link attached} was given. */
  detached?(state: () => GatewayState): void
  /** @returns anything that {@link toolCallEnded} shall get for this call of a tool, and {@link requestStarted} for its requests. */
  toolCallStarted?(facts: ToolCallFacts): unknown
  /** Called once for each started call of a tool; of one that was abandoned, maybe before the end of its requests. */
  toolCallEnded?(toolCall: unknown, end: ToolCallEnd): void
  /**
   * @param toolCall What {@link toolCallStarted} returned for the call that makes the request; undefined: it belongs to none.
   * @returns anything that the other methods shall get for this request.
   */
  requestStarted?(facts: RequestFacts, toolCall?: unknown): unknown
  /** Called once for each started request, after its settlement. */
  requestEnded?(request: unknown, end: RequestEnd): void
  /**
   * @param request What {@link requestStarted} returned; undefined for calls that run after their request: those of answers in the
   *   background and of batches.
   * @returns anything that {@link attemptEnded} shall get for this call.
   */
  attemptStarted?(request: unknown, facts: AttemptFacts): unknown
  /** Called once for each started call; of an attempt that lost, maybe after the request's end. */
  attemptEnded?(attempt: unknown, end: AttemptEnd): void
  /**
   * Runs what sends a request to another host: one of a call to a vendor, or of none (`attempt` undefined: polling a task, fetching a
   * picture, a webhook). Must call `run` once, at once, and return what it gives.
   */
  runSend?<Result>(attempt: unknown, run: () => Result): Result
  /** Headers that a call to a vendor takes along: name, value, name, value. */
  attemptHeaders?(attempt: unknown): readonly string[]
  /** Called after each step of a request at the store: its hold and its settlement. */
  store?(request: unknown, facts: StoreFacts): void
  /** All events but `request-started` and `request-ended`. */
  event?(event: GatewayEvent): void
}
