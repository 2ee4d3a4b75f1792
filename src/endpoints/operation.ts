import { Buffer } from 'node:buffer'
import type { CatalogModel } from '../catalog/model.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { exactJsonText } from '../core/exact-json.ts'
import type { Usage } from '../core/usage.ts'
import type { HeaderMap } from '../wire/headers.ts'
import type { AnswerIds, StreamTransform, VendorFailure } from './stream-transform.ts'

/** One call as a vendor's translator sees it. */
export interface VendorCall<Request> {
  /** The validated request. Never written to. */
  readonly request: Request
  /**
   * The caller's own bytes of `request` if they are in the vendor's dialect, else undefined. No object in them repeats a
   * member name, so they equal `request`.
   */
  readonly bytes: Uint8Array | undefined
  /** The row of the catalog; `upstream` is the id to send. */
  readonly model: CatalogModel
  /** The model id that answers carry: the model's public id; for Messages an alias that the caller wrote. */
  readonly publicModel: string
  /** The key, or the token that a credential gave. */
  readonly apiKey: string
  /** Is a stream asked for? */
  readonly stream: boolean
  /** Unix milliseconds at which the call began. */
  readonly nowMs: number
  /** Tells when it ends. Absent outside the gateway: at `nowMs`. */
  readonly clock?: Pick<Clock, 'now'> | undefined
  /**
   * The caller's cost of this usage, in decimal dollars; undefined if it has no price. Written as `cost` into the usage that a
   * caller of a stream requested. Absent when billing is off, and for whole answers, which have it in a header.
   */
  readonly costOf?: ((usage: Usage) => string | undefined) | undefined
  /** True where the caller is charged for the call: an answer then must not tell what the operator pays for it. Absent: no. */
  readonly isBilled?: boolean | undefined
  /** A header of the caller's by lower-case name; present where the endpoint passes headers on. */
  readonly header?: ((name: string) => string | undefined) | undefined
  /**
   * The usage that this call is charged for, which is what its caller reads: the vendor's report made plausible and whole, else
   * an estimate by the bytes of generated text. Absent outside the gateway: the report stands.
   */
  readonly billedUsage?: ((reported: Usage | undefined, outputBytes: number) => Usage) | undefined
  /** Present where the endpoint continues stored answers. */
  readonly conversation?: Conversation | undefined
  /**
   * Present where the prompt should be cached by the vendor: with marks at its ends, if the request has none and the model caches prompts
   * of this length.
   */
  readonly promptCaching?: { readonly promptTokens: number } | undefined
  /** Reports a problem of the operator's account that an answer names, but that does not make it a failure. Absent outside the gateway. */
  readonly reportProblem?: ((problem: VendorFailure) => void) | undefined
  /** Signs state of a vendor that callers carry; absent: it is not protected from forgery. */
  readonly stateSecret?: string | undefined
}

/** Ids of a conversation whose history the vendor keeps. */
export interface Conversation {
  /** The vendor's own id of the answer that is continued; undefined: a new conversation. */
  readonly previousUpstreamId: string | undefined
  /** A new id, for an answer without a vendor id. */
  readonly freshId: string
  /** The request as the caller wrote it, where what is kept stands in place of references in `request`. */
  readonly original?: OriginalRequest | undefined
}

/** A request before what it refers to was put in. */
export interface OriginalRequest<Request = { readonly model: string }> {
  readonly request: Request
  /** As of {@link VendorCall}. */
  readonly bytes: Uint8Array | undefined
  /** Ids of the vendors that made state which was put in, by the state. Absent: not known. */
  readonly makers?: ReadonlyMap<string, string> | undefined
}

/** What to send to the vendor. */
export interface WireRequest {
  /** Path and query below the vendor's origin. */
  readonly path: string
  /** Flat list: name, value, name, value; credentials and content type included. */
  readonly headers: readonly string[]
  /** Chunked if it contains a caller's files, which are not copied. */
  readonly body: Uint8Array | string | readonly Uint8Array[]
  /** Request fields without an equivalent at the vendor, which were dropped; reported to the caller. */
  readonly dropped: readonly string[]
}

/** A vendor's whole answer. */
export interface WireAnswer {
  /** HTTP status. */
  readonly status: number
  /** By lower-case name. */
  readonly headers: HeaderMap
  /** Never decompressed. */
  readonly body: Uint8Array
}

/** A vendor's whole answer in the chunks in which it arrived. */
export interface ChunkedAnswer extends Omit<WireAnswer, 'body'> {
  /** As they arrived, in order. */
  readonly chunks: readonly Uint8Array[]
  /** Is the memory of the request not read any more by what sends it? Absent: not known. */
  readonly isRequestSent?: boolean
}

/** A submission that the vendor has accepted. */
export interface AcceptedTask {
  /** The vendor's own id of the task. */
  readonly upstreamId: string
  /** Members of the vendor's answer, kept for the task's record. */
  readonly output: unknown
}

/** The body of a whole answer for the caller, and what the gateway needs to know of it. */
export interface AnswerBody {
  /** Sent to the caller in this order. */
  readonly chunks: readonly Uint8Array[]
  /** As the vendor reported it; undefined: not at all. */
  readonly usage: Usage | undefined
  /** Bytes of text that the model generated; what is charged by without a report of usage. Absent: those of `chunks`. */
  readonly outputBytes?: number
  /** True when the vendor answered that it made nothing; such an answer is not charged for. */
  readonly isRefusal?: boolean
  /** Why the answer is none for its caller, though the vendor made it and bills `usage`. Absent: it is one. */
  readonly failure?: VendorFailure | undefined
  /** Set where the answer can be continued. */
  readonly answerIds?: AnswerIds | undefined
  /** Set if the answer is a task and not the result. */
  readonly task?: AcceptedTask | undefined
  /** The answer as an object, where answers are kept. */
  readonly keptAnswer?: Readonly<Record<string, unknown>> | undefined
}

/** One call at one vendor: the requests to send, and how to read the responses. */
export interface Operation {
  /**
   * More than one only where the work had to be split: sent a few at once; for a stream, one after another. None: the answer
   * is made without asking the vendor.
   */
  readonly requests: readonly WireRequest[]
  /** Makes the caller's body of the vendor's 2xx answers, in the order of `requests`. Undefined: they cannot be used. */
  whole(answers: readonly ChunkedAnswer[]): AnswerBody | undefined
  /** Reads a streamed answer; only for calls that stream. */
  stream(): StreamTransform
  /**
   * True when the model reasons without showing it, so that what it has used can only be learned from its report. Absent: what
   * it generates is what it sends.
   */
  readonly reasonsUnseen?: boolean
  /**
   * Usage of those `requests` that were answered when another one failed; undefined: nothing is known. Absent where the work
   * is never split.
   */
  partialUsage?(answers: readonly (ChunkedAnswer | undefined)[]): Usage | undefined
  /** Bytes of generated text in a whole answer that was cut. Undefined, and absent: all of its bytes are taken for text. */
  cutBytes?(chunks: readonly Uint8Array[]): number | undefined
}

/** Reads answers that are in the caller's dialect already: bytes through, with only what must change changed. */
export interface PassThroughReader<Request> {
  /**
   * The caller's body of a buffered 2xx answer. Undefined if the vendor's answer is malformed (the caller then gets 502).
   */
  fromWire(chunks: readonly Uint8Array[], call: VendorCall<Request>): AnswerBody | undefined
  /** Reads a streamed 2xx answer; absent where answers are never streamed. */
  stream?(call: VendorCall<Request>): StreamTransform
  /** Does the model reason without showing it for this call? Absent: no. */
  reasonsUnseen?(call: VendorCall<Request>): boolean
}

/** The same for calls of a translating operation that need no translation. */
export interface PassThrough<Request> extends PassThroughReader<Request> {
  /** Can this call pass? When false, the translating functions are used. */
  applies(call: VendorCall<Request>): boolean
}

/**
 * A vendor's operation for an endpoint in its own dialect. The caller's request is sent with only the model, and forbidden
 * fields, changed. All functions are pure: no I/O, clock, environment or logger.
 */
export interface PassThroughOperation<Request> extends PassThroughReader<Request> {
  /**
   * @throws GatewayError `unsupported_parameter` naming the field if the vendor does not support it and it must not be
   *   dropped.
   */
  toWire(call: VendorCall<Request>): WireRequest
}

/**
 * The operation of a call in the vendor's own dialect.
 * @throws GatewayError `unsupported_parameter` for a stream where the vendor has none.
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

/** A class, as everything that lives as long as a vendor takes to answer; see `CallRecord` in the pipeline. */
class PassedThrough<Request> implements Operation {
  readonly requests: readonly WireRequest[]
  readonly reasonsUnseen: boolean
  readonly #reader: PassThroughReader<Request>
  readonly #call: VendorCall<Request>

  constructor(requests: readonly WireRequest[], reader: PassThroughReader<Request>, call: VendorCall<Request>) {
    this.requests = requests
    this.reasonsUnseen = call.model.reasonsUnseen ?? reader.reasonsUnseen?.(call) ?? false
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

/** For operations that never stream. */
export function neverStreams(): never {
  throw new TypeError('this operation never streams')
}

/** A body that the gateway wrote itself. */
export function jsonBody(value: unknown, usage?: Usage, outputBytes?: number): AnswerBody {
  const chunks = [Buffer.from(exactJsonText(value))]
  return outputBytes === undefined ? { chunks, usage } : { chunks, usage, outputBytes }
}

/**
 * Returns the members that name the end user of a request to its vendor, by the path of the call. They replace what the caller wrote.
 * Returns `undefined` if calls of this path name none.
 */
export type EndUserMembers = (
  path: string,
  who: {
    readonly accountId: string
    readonly endUser: string | undefined
    readonly request: object & { user?: unknown }
  },
) => Readonly<Record<string, string>> | undefined
