import type { ModelDefinition } from '../catalog/define-model.ts'
import type { CatalogModel } from '../catalog/model.ts'
import type { Usage } from '../core/usage.ts'
import type { AnswerStream, VendorFailure } from '../endpoints/answer-stream.ts'
import type { ChatCompletion } from '../endpoints/chat/chat-completion.ts'
import type { ChatRequest } from '../endpoints/chat/chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from '../endpoints/chat/chat-stream-writer.ts'
import type { EmbeddingsRequest, EmbeddingsResult } from '../endpoints/embeddings/embeddings-request.ts'
import type { HeaderMap } from '../wire/headers.ts'

export type { AnswerStream, VendorFailure } from '../endpoints/answer-stream.ts'

/** One call as a translator sees it. */
export interface VendorCall<Request> {
  /** The validated request. Never written to. */
  readonly request: Request
  /** The caller's own bytes of `request` when they are in the vendor's dialect, else undefined. */
  readonly bytes: Uint8Array | undefined
  readonly model: CatalogModel
  /** The model id the caller wrote, which answers carry. */
  readonly publicModel: string
  readonly apiKey: string
  readonly stream: boolean
  /** Unix milliseconds at which the call began. */
  readonly nowMs: number
  /**
   * What so much usage costs the caller, in decimal dollars; undefined when it has no price. Absent when billing is off.
   * Written as `cost` into the usage that a caller asked for.
   */
  readonly costOf?: ((usage: Usage) => string | undefined) | undefined
}

/** What to send to the vendor. */
export interface WireRequest {
  /** Path and query below the vendor's origin. */
  readonly path: string
  /** Flat list: name, value, name, value; credentials and content type included. */
  readonly headers: readonly string[]
  readonly body: Uint8Array | string
  /** Request fields that the vendor has no equivalent for and that were left out; reported to the caller. */
  readonly dropped: readonly string[]
}

/** A vendor's whole answer. */
export interface WireAnswer {
  readonly status: number
  readonly headers: HeaderMap
  readonly body: Uint8Array
}

/** Bytes for the caller, made from the vendor's bytes without rebuilding them. */
export interface RelayedBody {
  readonly chunks: readonly Uint8Array[]
  readonly usage: Usage | undefined
}

/** For vendors that already speak the caller's dialect: bytes through, with only what must change changed. */
export interface Relay<Request> {
  /** Can this call be answered by relaying? When false, the translating functions are used. */
  applies(call: VendorCall<Request>): boolean
  /** A whole body. Undefined when it is not what the vendor promises (the caller then gets 502). */
  body(chunks: readonly Uint8Array[], call: VendorCall<Request>): RelayedBody | undefined
  /** A streamed body; absent for operations that never stream. */
  stream?(call: VendorCall<Request>): AnswerStream
}

/** Chat at one vendor. All functions are pure: no I/O, clock, environment or logger. */
export interface ChatOperation {
  /**
   * @throws GatewayError `unsupported_parameter` naming the field when the request asks for something that the vendor
   *   cannot do and that must not be dropped.
   */
  toWire(call: VendorCall<ChatRequest>): WireRequest
  /** Reads a whole 2xx answer. Undefined when it is not what the vendor promises. */
  fromWire(
    answer: WireAnswer,
    call: VendorCall<ChatRequest>,
  ): { completion: ChatCompletion; usage: Usage | undefined } | undefined
  /** Reads a streamed 2xx answer. */
  decoder(call: VendorCall<ChatRequest>, writer: ChatStreamWriter): ChatStreamDecoder
  readonly relay?: Relay<ChatRequest>
  /** True when images given as https URLs must be fetched by the gateway and sent as bytes. */
  needsInlineImages?(call: VendorCall<ChatRequest>): boolean
}

/** Embeddings at one vendor. */
export interface EmbeddingsOperation {
  /** Most inputs of one call; longer lists are split. */
  readonly maxInputs: number
  /** True when inputs may be token ids. */
  readonly takesTokens: boolean
  toWire(call: VendorCall<EmbeddingsRequest>): WireRequest
  /** Reads a whole 2xx answer. Undefined when it is not what the vendor promises. */
  fromWire(answer: WireAnswer, call: VendorCall<EmbeddingsRequest>): EmbeddingsResult | undefined
  readonly relay?: Relay<EmbeddingsRequest>
}

/** A model vendor. Built by a factory such as `openai({ apiKey })`; holds options and pure functions only. */
export interface Vendor {
  /** Short lower-case id: `openai`. Catalog rows and events name it. */
  readonly id: string
  /** Name for people. */
  readonly displayName: string
  /** Scheme, host and port of the vendor. Credentials go nowhere else. */
  readonly origin: string
  /** Keys of the operator; empty when the vendor is not configured. */
  readonly apiKeys: readonly string[]
  /** What an operator must set to configure the vendor, for error texts: `OPENAI_API_KEY or openai({ apiKey })`. */
  readonly configuredBy: string
  /** Catalog rows that this vendor brings along. */
  readonly models: readonly ModelDefinition[]
  readonly chat?: ChatOperation
  readonly embeddings?: EmbeddingsOperation
  /** Reads a non-2xx answer, or a 2xx answer that is an error in disguise. */
  errorFrom(answer: WireAnswer, nowMs: number): VendorFailure
}
