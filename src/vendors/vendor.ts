import type { CatalogModel, ModelDefinition } from '../catalog/model.ts'
import type { Usage } from '../core/usage.ts'
import type { AnswerStream, VendorFailure } from '../endpoints/answer-stream.ts'
import type { ChatCompletion } from '../endpoints/chat/chat-completion.ts'
import type { ChatRequest } from '../endpoints/chat/chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from '../endpoints/chat/chat-stream-writer.ts'
import type { EmbeddingsRequest, EmbeddingsResult } from '../endpoints/embeddings/embeddings-request.ts'
import type { ImageEditRequest } from '../endpoints/image-edits/image-edit-request.ts'
import type { InteractionRequest } from '../endpoints/images/interactions/interaction-request.ts'
import type { MultimodalImageRequest } from '../endpoints/images/multimodal/multimodal-image-request.ts'
import type { OpenAIImageRequest } from '../endpoints/images/openai/openai-image-request.ts'
import type { MessagesRequest } from '../endpoints/messages/messages-request.ts'
import type { SpeechDecoder, SpeechPart, TakeSamples } from '../endpoints/speech/speech-decoder.ts'
import type { SpeechRequest } from '../endpoints/speech/speech-request.ts'
import type { VideoRequest } from '../endpoints/videos/video-request.ts'
import type { HeaderMap } from '../wire/headers.ts'

export type { AnswerStream, VendorFailure } from '../endpoints/answer-stream.ts'

/** One call as a translator sees it. */
export interface VendorCall<Request> {
  /** The validated request. Never written to. */
  readonly request: Request
  /**
   * The caller's own bytes of `request` when they are in the vendor's dialect, else undefined. No object in them has two
   * members of one name, so they say what `request` says.
   */
  readonly bytes: Uint8Array | undefined
  readonly model: CatalogModel
  /** The model id that answers carry: the model's public id; for Messages an alias that the caller wrote. */
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
  /** A header of the caller's by lower-case name; present where the endpoint passes headers on. */
  readonly header?: ((name: string) => string | undefined) | undefined
  /** Present where the endpoint keeps conversations. */
  readonly conversation?: Conversation | undefined
}

/** Ids of a conversation whose history the vendor keeps. */
export interface Conversation {
  /** The vendor's own id of the answer that is continued; undefined: a new conversation. */
  readonly previousUpstreamId: string | undefined
  /** A fresh id, for an answer to which the vendor gives none. */
  readonly freshId: string
}

/** What to send to the vendor. */
export interface WireRequest {
  /** Path and query below the vendor's origin. */
  readonly path: string
  /** Flat list: name, value, name, value; credentials and content type included. */
  readonly headers: readonly string[]
  /** In pieces where it holds a caller's files, which are not copied. */
  readonly body: Uint8Array | string | readonly Uint8Array[]
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
  /** True when the vendor answered that it made nothing; such an answer is not charged for. */
  readonly isRefusal?: boolean
  /** The answer's id, where it can be continued. */
  readonly interaction?: AnsweredInteraction | undefined
  /** Set when the answer is not the result but the promise of one. */
  readonly task?: AcceptedTask | undefined
}

/** The two ids of an answer that can be continued. */
export interface AnsweredInteraction {
  /** As the caller reads it. */
  readonly id: string
  /** The vendor's own. */
  readonly upstreamId: string
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
  /** Billing fields of surcharges that never reach the vendor, because the translation leaves their request fields out. */
  readonly leavesOut?: ReadonlySet<string>
  /** True when images given as https URLs must be fetched by the gateway and sent as bytes. */
  needsInlineImages?(call: VendorCall<ChatRequest>): boolean
}

/**
 * Messages at a vendor that speaks the dialect itself: what the caller sent goes out, and what the vendor answers comes back,
 * with only the model id changed. All functions are pure. Other vendors answer by their {@link ChatOperation}.
 */
export interface MessagesOperation {
  toWire(call: VendorCall<MessagesRequest>): WireRequest
  /** The caller's body of a whole 2xx answer. Undefined when it is not what the vendor promises (the caller then gets 502). */
  fromWire(chunks: readonly Uint8Array[], call: VendorCall<MessagesRequest>): RelayedBody | undefined
  /** Reads a streamed 2xx answer. */
  stream(call: VendorCall<MessagesRequest>): AnswerStream
  /** The same for the count of a request's tokens. */
  readonly tokenCount: {
    toWire(call: VendorCall<MessagesRequest>): WireRequest
    fromWire(chunks: readonly Uint8Array[]): RelayedBody | undefined
  }
}

/** Counts the tokens of a chat, free of charge. All functions are pure. */
export interface TokenCountOperation {
  /**
   * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming what cannot be translated.
   */
  toWire(call: VendorCall<ChatRequest>): WireRequest
  /** The count in a 2xx answer. Undefined when it is not what the vendor promises. */
  fromWire(answer: WireAnswer): number | undefined
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

/**
 * Pictures at one vendor, in a shape of request that the vendor itself speaks: what the caller sent goes out with only the
 * model, and what must not pass, changed. All functions are pure.
 */
export interface ImageOperation<Request> {
  /**
   * @throws GatewayError `unsupported_parameter` naming the field when the request asks for something that the vendor
   *   cannot do and that must not be dropped.
   */
  toWire(call: VendorCall<Request>): WireRequest
  /**
   * The caller's body of a whole 2xx answer, and its usage, in which `images` is counted from the answer itself where the
   * vendor does not say. Undefined when it is not what the vendor promises (the caller then gets 502).
   */
  fromWire(chunks: readonly Uint8Array[], call: VendorCall<Request>): RelayedBody | undefined
  /** Reads a streamed 2xx answer; absent when there are none. */
  stream?(call: VendorCall<Request>): AnswerStream
}

/** The shapes of image generation that a vendor speaks, by the protocol that the catalog names. */
export interface ImageOperations {
  readonly multimodal?: ImageOperation<MultimodalImageRequest>
  readonly interactions?: ImageOperation<InteractionRequest>
  readonly generations?: ImageOperation<OpenAIImageRequest>
}

/** Speech at one vendor, which is always streamed. All functions are pure. */
export interface SpeechOperation {
  /** Samples a second of the sound that decoders give. */
  readonly sampleRate: number
  /** Writes the call that speaks one part of the text. */
  toWire(call: VendorCall<SpeechRequest>, part: SpeechPart): WireRequest
  /** Reads the streamed 2xx answer to one part, and hands its samples over as they come. */
  decoder(call: VendorCall<SpeechRequest>, take: TakeSamples): SpeechDecoder
}

/** A call about a task that exists: `GET` to read it, `POST` to cancel it. */
export interface TaskCall {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers: readonly string[]
}

/** A submission that the vendor has taken. */
export interface AcceptedTask {
  readonly upstreamId: string
  /** Members of the vendor's answer, kept for the task's record. */
  readonly output: unknown
}

/** What a vendor says of a task. */
export interface TaskReport {
  /** `unknown`: the vendor does not know it, or not any more. */
  readonly status: 'queued' | 'in_progress' | 'completed' | 'failed' | 'cancelled' | 'unknown'
  /** The vendor's own members, for the task's record. */
  readonly output: unknown
  readonly usage: unknown
  /** What it bills: `videoSeconds`; undefined when it does not say. */
  readonly billed: Usage | undefined
  /** The tier it rendered, as callers write it: `720p`; undefined when it does not say. */
  readonly resolution: string | undefined
  readonly contentUrl: string | undefined
  readonly seed: number | undefined
  /** Of a failed task: the vendor's code, and its text, redacted. */
  readonly error: { readonly code: string; readonly message: string } | undefined
}

/** Video at one vendor: submitted, then asked about. All functions are pure. */
export interface VideoOperation {
  /** @throws GatewayError `invalid_request` naming the field when the body does not fit the model's protocol. */
  toWire(call: VendorCall<VideoRequest>): WireRequest
  /** Reads a 2xx answer to a submission. Undefined when it is not what the vendor promises. */
  accepted(answer: WireAnswer): AcceptedTask | undefined
  read(upstreamId: string, apiKey: string): TaskCall
  /** Reads a 2xx answer about a task. Undefined when it is not what the vendor promises. */
  report(answer: WireAnswer): TaskReport | undefined
  cancel(upstreamId: string, apiKey: string): TaskCall
  /** How long to wait before a task is asked about again. */
  readonly pollIntervalMs: number
  /** Most questions about tasks in a window of time for one account at the vendor, over all processes. */
  readonly pollBudget: { readonly takes: number; readonly windowMs: number }
}

/** A key, and its share of the calls beside other keys. */
export interface WeightedKey {
  readonly key: string
  /** A positive number; 1 is the share of a key that is given as text. */
  readonly weight: number
}

/** The operator's keys at a vendor: one, or several that share the calls. Unset and blank ones do not count. */
export type ApiKeys = string | readonly (string | WeightedKey)[] | undefined

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
  /** Share of the calls that each of `apiKeys` takes, in their order: positive numbers. Absent: all the same. */
  readonly keyWeights?: readonly number[]
  /** What an operator must set to configure the vendor, for error texts: `OPENAI_API_KEY or openai({ apiKey })`. */
  readonly configuredBy: string
  /** Catalog rows that this vendor brings along. */
  readonly models: readonly ModelDefinition[]
  readonly chat?: ChatOperation
  /** Present where the vendor speaks the Messages dialect itself. */
  readonly messages?: MessagesOperation
  /** Present where the vendor counts the tokens of a chat; elsewhere they are estimated. */
  readonly tokenCount?: TokenCountOperation
  readonly embeddings?: EmbeddingsOperation
  readonly images?: ImageOperations
  readonly imageEdits?: ImageOperation<ImageEditRequest>
  readonly videos?: VideoOperation
  readonly speech?: SpeechOperation
  /**
   * Does a request carry reasoning that only this vendor can read, such as a signed block of an earlier turn? Such a request
   * goes to this vendor first where several serve its model. Absent: never.
   */
  ownsReasoning?(request: { readonly model: string }): boolean
  /** Reads a non-2xx answer, or a 2xx answer that is an error in disguise. */
  errorFrom(answer: WireAnswer, nowMs: number): VendorFailure
}
