import { Buffer } from 'node:buffer'
import type { CatalogModel } from '../catalog/model.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { exactJsonText } from '../core/exact-json.ts'
import { isJsonObject, parseVendorJson } from '../core/json.ts'
import type { Usage } from '../core/usage.ts'
import { joinChunks } from '../wire/chunks.ts'
import type { HeaderMap } from '../wire/headers.ts'
import type { AnswerIds, StreamTransform, VendorFailure } from './stream-transform.ts'

/** One call as a vendor's translator receives it. */
export interface VendorCall<Request> {
  /** The validated request. It must not be changed. */
  readonly request: Request
  /**
   * The caller's own bytes of `request` if they are in the vendor's dialect, else `undefined`. No object in them repeats a member
   * name, so they equal `request`.
   */
  readonly bytes: Uint8Array | undefined
  /** Catalog row of the model; `upstream` is the id to send. */
  readonly model: CatalogModel
  /** Model id in answers: the model's public id, or for Messages the alias that the caller wrote. */
  readonly publicModel: string
  /** API key, or the token that a credential returned. */
  readonly apiKey: string
  /** Whether the caller requests a stream. */
  readonly stream: boolean
  /** Unix milliseconds at which the call began. */
  readonly nowMs: number
  /** Clock for the end of the call. Without one (outside the gateway), the call ends at `nowMs`. */
  readonly clock?: Pick<Clock, 'now'> | undefined
  /**
   * Returns the caller's cost of a usage in decimal dollars, or `undefined` if it has no price. It becomes `cost` in the usage of a
   * stream. Absent if billing is off, and for whole answers, which have a header for it.
   */
  readonly costOf?: ((usage: Usage) => string | undefined) | undefined
  /** Whether the caller is charged for the call. If so, the answer must not show the operator's cost. Default false. */
  readonly isBilled?: boolean | undefined
  /** Returns a header of the caller by its lower-case name. Present if the endpoint passes headers on. */
  readonly header?: ((name: string) => string | undefined) | undefined
  /**
   * Returns the usage that is charged and shown to the caller: the vendor's report, corrected and completed if needed, or else an
   * estimate from the bytes of generated text. Without it (outside the gateway), the report is used unchanged.
   */
  readonly billedUsage?: ((reported: Usage | undefined, outputBytes: number) => Usage) | undefined
  /** Present if the endpoint continues stored answers. */
  readonly conversation?: Conversation | undefined
  /**
   * Present if the vendor should cache the prompt: with marks at its ends, if the request has none and the model caches prompts of
   * this length.
   */
  readonly promptCaching?: { readonly promptTokens: number } | undefined
  /** Reports a problem of the operator's account that an answer mentions without being a failure. Absent outside the gateway. */
  readonly reportProblem?: ((problem: VendorFailure) => void) | undefined
  /** Secret that signs vendor state which callers carry. If omitted, such state can be forged. */
  readonly stateSecret?: string | undefined
}

/** Ids of a conversation with history at the vendor. */
export interface Conversation {
  /** The vendor's id of the continued answer, or `undefined` for a new conversation. */
  readonly previousUpstreamId: string | undefined
  /** Id for an answer without a vendor id. */
  readonly freshId: string
  /** The caller's request, if `request` contains resolved references. */
  readonly original?: OriginalRequest | undefined
}

/** A request before its references were resolved. */
export interface OriginalRequest<Request = { readonly model: string }> {
  readonly request: Request
  /** See {@link VendorCall.bytes}. */
  readonly bytes: Uint8Array | undefined
  /** Ids of the vendors that issued the resolved state, by the state. If omitted, they are unknown. */
  readonly makers?: ReadonlyMap<string, string> | undefined
}

/** Request to the vendor. */
export interface WireRequest {
  /** Path and query below the vendor's origin. */
  readonly path: string
  /** Flat list of name, value, name, value, including credentials and content type. */
  readonly headers: readonly string[]
  /** In chunks if it contains a caller's files, to avoid copying them. */
  readonly body: Uint8Array | string | readonly Uint8Array[]
  /** Request fields that were dropped because the vendor has no equivalent. They are reported to the caller. */
  readonly dropped: readonly string[]
}

/** A vendor's whole answer. */
export interface WireAnswer {
  /** HTTP status. */
  readonly status: number
  /** Headers, keyed by lower-case name. */
  readonly headers: HeaderMap
  /** The body as received, never decompressed. */
  readonly body: Uint8Array
}

/** A vendor's whole answer in the chunks in which it arrived. */
export interface ChunkedAnswer extends Omit<WireAnswer, 'body'> {
  /** Chunks as they arrived, in order. */
  readonly chunks: readonly Uint8Array[]
  /** Whether the memory of the request is free because it was sent completely. If omitted, this is unknown. */
  readonly isRequestSent?: boolean
}

/** A submission that the vendor has accepted. */
export interface AcceptedTask {
  /** The vendor's own id of the task. */
  readonly upstreamId: string
  /** Members of the vendor's answer, stored in the task's record. */
  readonly output: unknown
}

/** The body of a whole answer for the caller, and related facts for the gateway. */
export interface AnswerBody {
  /** Parts of the body, sent to the caller in this order. */
  readonly chunks: readonly Uint8Array[]
  /** Usage that the vendor reported, if any. */
  readonly usage: Usage | undefined
  /** Bytes of text that the model generated, charged if no usage is reported. Defaults to the bytes of `chunks`. */
  readonly outputBytes?: number
  /** Whether the vendor answered that it generated nothing. Such an answer is not charged. */
  readonly isRefusal?: boolean
  /** Why the caller cannot get the answer, although the vendor generated it and bills `usage`. */
  readonly failure?: VendorFailure | undefined
  /** Set if the answer can be continued. */
  readonly answerIds?: AnswerIds | undefined
  /** Set if the answer is a task and not the result. */
  readonly task?: AcceptedTask | undefined
  /** The answer as an object, if answers are stored. */
  readonly keptAnswer?: Readonly<Record<string, unknown>> | undefined
}

/** One call at one vendor: the requests to send, and how to read the responses. */
export interface Operation {
  /**
   * Several requests if the work had to be split: a few in parallel, or one after another for a stream. If empty, no vendor is
   * called.
   */
  readonly requests: readonly WireRequest[]
  /** Builds the caller's body from the vendor's 2xx answers, in the order of `requests`. `undefined` if they are unusable. */
  whole(answers: readonly ChunkedAnswer[]): AnswerBody | undefined
  /** Reads a streamed answer. Only for calls that stream. */
  stream(): StreamTransform
  /**
   * Whether the model reasons without showing it, so that only the vendor's report contains its usage. By default, the model shows
   * everything that it generates.
   */
  readonly hasHiddenReasoning?: boolean
  /**
   * Returns the usage of the answered `requests` when another one failed, or `undefined` if unknown. Absent if the work is never
   * split.
   */
  partialUsage?(answers: readonly (ChunkedAnswer | undefined)[]): Usage | undefined
  /** Returns the bytes of generated text in an answer that was cut. By default or if `undefined`, all bytes count. */
  cutBytes?(chunks: readonly Uint8Array[]): number | undefined
}

/** Reads answers that are already in the caller's dialect. Bytes pass through except for required changes. */
export interface PassThroughReader<Request> {
  /** Returns the caller's body of a buffered 2xx answer, or `undefined` if the answer is malformed (the caller then gets 502). */
  fromWire(chunks: readonly Uint8Array[], call: VendorCall<Request>): AnswerBody | undefined
  /** Reads a streamed 2xx answer. Absent if answers are never streamed. */
  stream?(call: VendorCall<Request>): StreamTransform
  /** Whether the model reasons in this call without showing it. Default false. */
  hasHiddenReasoning?(call: VendorCall<Request>): boolean
}

/** Reads calls of a translating operation that need no translation. */
export interface PassThrough<Request> extends PassThroughReader<Request> {
  /** Whether this call can pass through. If not, it is translated. */
  applies(call: VendorCall<Request>): boolean
}

/**
 * A vendor's operation for an endpoint in its own dialect. The caller's request is sent unchanged, except for the model and
 * forbidden fields. All functions are pure: no I/O, clock, environment or logger.
 */
export interface PassThroughOperation<Request> extends PassThroughReader<Request> {
  /**
   * @throws GatewayError `unsupported_parameter` naming the field if the vendor does not support it and it must not be
   *   dropped.
   */
  toWire(call: VendorCall<Request>): WireRequest
}

/**
 * Creates the operation of a call in the vendor's own dialect.
 * @throws GatewayError `unsupported_parameter` for a stream that the vendor does not support.
 */
export function passThrough<Request>(
  wire: WireRequest,
  reader: PassThroughReader<Request>,
  call: VendorCall<Request>,
): Operation {
  if (call.stream && reader.stream === undefined) {
    throw new GatewayError('unsupported_parameter', {
      message: 'stream: this model does not stream',
      param: 'stream',
    })
  }
  return new PassedThrough([wire], reader, call)
}

/** Creates the operation of a vendor that may not offer it. See {@link passThrough}. */
export function passThroughIfOffered<Request>(
  operation: PassThroughOperation<Request> | undefined,
  call: VendorCall<Request>,
): Operation | undefined {
  return operation && passThrough(operation.toWire(call), operation, call)
}

/** A class to save memory, because it lives as long as the vendor takes to answer; see `CallRecord` in the pipeline. */
class PassedThrough<Request> implements Operation {
  readonly requests: readonly WireRequest[]
  readonly hasHiddenReasoning: boolean
  readonly #reader: PassThroughReader<Request>
  readonly #call: VendorCall<Request>

  constructor(requests: readonly WireRequest[], reader: PassThroughReader<Request>, call: VendorCall<Request>) {
    this.requests = requests
    this.hasHiddenReasoning = call.model.hasHiddenReasoning ?? reader.hasHiddenReasoning?.(call) ?? false
    this.#reader = reader
    this.#call = call
  }

  whole([answer]: readonly ChunkedAnswer[]): AnswerBody | undefined {
    return answer === undefined ? undefined : this.#reader.fromWire(answer.chunks, this.#call)
  }

  stream(): StreamTransform {
    return this.#reader.stream?.(this.#call) ?? neverStreams()
  }
}

/** Throws a TypeError, for operations that never stream. */
export function neverStreams(): never {
  throw new TypeError('this operation never streams')
}

/** Creates a JSON body that the gateway wrote itself. */
export function jsonBody(value: unknown, usage?: Usage, outputBytes?: number): AnswerBody {
  const chunks = [Buffer.from(exactJsonText(value))]
  return outputBytes === undefined ? { chunks, usage } : { chunks, usage, outputBytes }
}

/** Passes a token count through. Returns `undefined` if there is none. */
export function passTokenCount(chunks: readonly Uint8Array[]): AnswerBody | undefined {
  const count = parseVendorJson(joinChunks(chunks).toString('utf8'))
  return isJsonObject(count) && typeof count['input_tokens'] === 'number' ? { chunks, usage: undefined } : undefined
}

/**
 * Returns the members that name the end user of a request to its vendor, by the path of the call. They replace the caller's
 * members. Returns `undefined` if calls to this path name no end user.
 */
export type EndUserMembers = (
  path: string,
  who: {
    readonly accountId: string
    readonly endUser: string | undefined
    readonly request: object & { user?: unknown }
  },
) => Readonly<Record<string, string>> | undefined
