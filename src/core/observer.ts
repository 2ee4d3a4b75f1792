// See docs/decisions/0027-observers.md.

import type { ErrorCode } from './errors.ts'
import type { GatewayEvent } from './events.ts'
import type { Usage } from './usage.ts'

/** Request to an endpoint that calls a model, at its arrival. */
export interface RequestFacts {
  /** Request id that the caller reads as `x-request-id`. */
  readonly requestId: string
  /** Id of the endpoint. */
  readonly endpoint: string
  /** Unix milliseconds. */
  readonly startedAtMs: number
  /** Returns a header of the request, given its lower-case name. */
  header(name: string): string | undefined
}

/** Tool call of an authenticated caller, at its start. It may make several requests to models, or none. */
export interface ToolCallFacts {
  /** Name of the tool, or `undefined` if the caller named an unknown tool. */
  readonly tool: string | undefined
  /** Method of the tool protocol: `tools/call`. */
  readonly method: string
  /** Version of the tool protocol in the message. */
  readonly protocolVersion?: string | undefined
  /** Session id, if the client has one. */
  readonly sessionId?: string | undefined
  /** Message id of the caller. */
  readonly messageId?: string | undefined
  /** Account that pays. */
  readonly accountId: string
  /** Key that made the call. */
  readonly keyId: string
  /** Unix milliseconds. */
  readonly startedAtMs: number
  /** Returns a header of the HTTP request, given its lower-case name. */
  header(name: string): string | undefined
  /** Returns a string that the message itself carries in addition to its arguments, such as `traceparent`. */
  metadata(name: string): string | undefined
}

/** Outcome of a tool call. `refused`: the tool is unknown. `abandoned`: the caller disconnected or cancelled it. */
export type ToolCallOutcome = 'completed' | 'failed' | 'abandoned' | 'refused'

/** Result of a tool call that has ended. */
export interface ToolCallEnd {
  readonly outcome: ToolCallOutcome
  /** Error code that the caller read, or `undefined` if there was no error or the tool is unknown. */
  readonly code: ErrorCode | undefined
  /** Unix milliseconds, with a fraction. */
  readonly endedAtMs: number
  /** Duration in milliseconds. */
  readonly durationMs: number
}

/** Tool call whose start was reported to observers. */
export interface ObservedToolCall {
  /** Notifies the observers of the end. Only the first call has an effect. */
  ended(outcome: ToolCallOutcome, code?: ErrorCode): void
}

/** Call to a vendor, at its start. */
export interface AttemptFacts {
  /** Id of the request. For a request within a batch, its own id in the batch's results. */
  readonly requestId: string
  /** Id of the vendor. */
  readonly vendor: string
  /** Provider name of OpenTelemetry. */
  readonly provider: string
  /** Origin at which the vendor is called: `https://api.example`. */
  readonly origin: string
  /** Public id of the model. */
  readonly model: string
  /** The vendor's own id of the model. */
  readonly upstream: string
  /** Id of the endpoint that answers the request. */
  readonly endpoint: string
  /** Kind of the models of this endpoint: `chat`, `embedding`. */
  readonly kind: string
  /** Whether a stream is requested. */
  readonly isStream: boolean
  /** Unix milliseconds, with a fraction. */
  readonly startedAtMs: number
}

/** Result of a call to a vendor. */
export interface AttemptEnd {
  /**
   * `ok`: the vendor answered. `aborted`: the gateway ended the call, because the caller disconnected or another attempt was
   * faster. `broken`: a stream broke off. Other values are the `reason` of the event `attempt-failed`.
   */
  readonly outcome: string
  /** HTTP status with which the vendor rejected the call, or `undefined` if it answered or sent no status. */
  readonly status: number | undefined
  /** Error code that a caller would read, or `undefined` if there is none. */
  readonly code: ErrorCode | undefined
  /** Unix milliseconds, with a fraction. */
  readonly endedAtMs: number
  /** Duration in milliseconds. */
  readonly durationMs: number
  /** Milliseconds from the start to the first content of a stream, or `undefined` if there was no content or no stream. */
  readonly firstByteMs: number | undefined
}

/**
 * Outcome of a request. `refused`: rejected before a hold was created, or a task that no vendor accepted. `replayed`: answered
 * with the result stored under an Idempotency-Key. `submitted`: a task that continues.
 */
export type RequestOutcome = 'completed' | 'failed' | 'abandoned' | 'refused' | 'replayed' | 'submitted'

/** Result of a request that has ended. Unknown values are undefined. */
export interface RequestEnd {
  /** Id of the endpoint. */
  readonly endpoint: string
  readonly outcome: RequestOutcome
  /** HTTP status that the caller got. */
  readonly status: number
  /** Error code that the caller read, or `undefined` if there was no error. */
  readonly code: ErrorCode | undefined
  /** Account that pays. */
  readonly accountId: string | undefined
  /** Key that made the call. */
  readonly keyId: string | undefined
  /** Model name as the caller wrote it. */
  readonly requestedModel: string | undefined
  /** Public id of the model that answered or should have answered. */
  readonly model: string | undefined
  /** Id of the vendor that answered, or was called last. */
  readonly vendor: string | undefined
  /** Whether the caller requested a stream. */
  readonly isStream: boolean
  /** Usage that is charged. */
  readonly usage: Usage | undefined
  /** Charge in nano-dollars; 0 if billing is off. */
  readonly costNanoDollars: bigint
  /** Unix milliseconds, with a fraction. */
  readonly endedAtMs: number
  /** Milliseconds since the arrival. */
  readonly durationMs: number
  /** Milliseconds from the arrival to the first content. */
  readonly firstByteMs: number | undefined
  /** Part of `durationMs` in which the gateway waited neither for the caller's body nor for a vendor. */
  readonly overheadMs: number
  /** Number of calls to vendors. */
  readonly attempts: number
}

/** Store operation of one request: money, tokens and keys. */
export interface StoreFacts {
  /** `reserve`: before the call. `settle`: after it. */
  readonly operation: 'reserve' | 'settle'
  /** Whether the operation succeeded. `false` if the store rejected it or did not answer. */
  readonly isOk: boolean
  /** Duration in milliseconds. */
  readonly durationMs: number
}

/** State of a gateway that an observer may read at any time. Cheap, and limited to this process. */
export interface GatewayState {
  /** Number of retries available now. */
  readonly retriesLeft: number
  /** Number of settlements that the store has not accepted yet. */
  readonly settlementsWaiting: number
  /** Waiting time of the oldest record of a call that no roll-up contains yet, in milliseconds. */
  readonly rollUpAgeMs: number
  /** States of all configured vendors. */
  readonly vendors: readonly VendorState[]
}

/** Calls of a vendor, and its keys. */
export interface VendorState {
  /** Id of the vendor. */
  readonly vendor: string
  /** Calls in progress. */
  readonly inFlight: number
  /** Keys of the vendor. `isUp` is whether the circuit of the key is not open. */
  readonly keys: readonly { readonly credentialId: string; readonly isUp: boolean }[]
}

/**
 * Receives each step of the requests to models, and of tool calls. Methods are called synchronously, and their exceptions are
 * caught and logged. Omitted methods cost nothing. No argument contains a prompt, an answer or a credential.
 */
export interface Observer {
  /** A gateway that calls this observer was created. */
  attached?(state: () => GatewayState): void
  /** The gateway was closed. `state` is the function that {@link attached} received. */
  detached?(state: () => GatewayState): void
  /** @returns Any value, which is passed to {@link toolCallEnded} for this tool call and to {@link requestStarted} for its requests. */
  toolCallStarted?(facts: ToolCallFacts): unknown
  /** Called once for each started tool call. If the call was abandoned, possibly before the end of its requests. */
  toolCallEnded?(toolCall: unknown, end: ToolCallEnd): void
  /**
   * @param toolCall Result of {@link toolCallStarted} for the tool call that makes the request; `undefined` without a tool call.
   * @returns Any value, which is passed to the other methods for this request.
   */
  requestStarted?(facts: RequestFacts, toolCall?: unknown): unknown
  /** Called once for each started request, after its settlement. */
  requestEnded?(request: unknown, end: RequestEnd): void
  /**
   * @param request Result of {@link requestStarted}; `undefined` for calls that run after their request, in background responses
   *   and batches.
   * @returns Any value, which is passed to {@link attemptEnded} for this call.
   */
  attemptStarted?(request: unknown, facts: AttemptFacts): unknown
  /** Called once for each started call. */
  attemptEnded?(attempt: unknown, end: AttemptEnd): void
  /**
   * Runs the function that sends a request to another host. `attempt` is undefined if it is not a call to a model: polling a
   * task, fetching an image, a webhook. Must call `run` once and synchronously, and return its result.
   */
  runSend?<Result>(attempt: unknown, run: () => Result): Result
  /** Returns headers to add to a call to a vendor: name, value, name, value. */
  attemptHeaders?(attempt: unknown): readonly string[]
  /** Called after each store operation of a request: its hold and its settlement. */
  store?(request: unknown, facts: StoreFacts): void
  /** Receives all events except `request-started` and `request-ended`. */
  event?(event: GatewayEvent): void
}
