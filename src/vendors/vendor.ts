import type { ModelDefinition } from '../catalog/model.ts'
import type { CredentialProvider } from '../core/credential.ts'
import type { NativeBatches } from '../endpoints/batches.ts'
import type { MediaRules } from '../endpoints/media-input.ts'
import type { EndUserMembers, WireAnswer } from '../endpoints/operation.ts'
import type { PriceMembers } from '../endpoints/price-members.ts'
import type { VendorOffers } from '../endpoints/registry.ts'
import type { VendorFailure } from '../endpoints/stream-transform.ts'
import type { EgressRoute } from '../transport/transport.ts'
import type { ConnectionOptions } from '../transport/vendor-connection.ts'

export type {
  LinesBody,
  NativeBatches,
  NativeBatchInput,
  NativeCall,
  NativeReport,
  NativeResult,
  NativeSearch,
} from '../endpoints/batches.ts'
export type { BrokenChat, ChatOperation } from '../endpoints/chat/chat-operation.ts'
export type { TokenCountOperation } from '../endpoints/chat/translated-dialect.ts'
export type { CompletionsOperation } from '../endpoints/completions/completions-endpoint.ts'
export type { EmbeddingsOperation } from '../endpoints/embeddings/embeddings-endpoint.ts'
export type { ExtraFeature } from '../endpoints/endpoint.ts'
export type { ImageOperation, ImageOperations } from '../endpoints/images/image-operation.ts'
export type { MediaFacts, MediaRules } from '../endpoints/media-input.ts'
export type { MessagesOperation } from '../endpoints/messages/messages-operation.ts'
export type { ModerationsOffer } from '../endpoints/moderations/moderations-endpoint.ts'
export type {
  AcceptedTask,
  AnswerBody,
  ChunkedAnswer,
  Conversation,
  PassThrough,
  PassThroughOperation,
  PassThroughReader,
  VendorCall,
  WireAnswer,
  WireRequest,
} from '../endpoints/operation.ts'
export type { RerankInput, RerankLimits, RerankOperation } from '../endpoints/rerank/rerank-endpoint.ts'
export type { SpeechOperation } from '../endpoints/speech/speech-endpoint.ts'
export type { AnswerIds, StreamTransform, VendorFailure } from '../endpoints/stream-transform.ts'
export type { TaskCall, TaskOperation, TaskReport } from '../endpoints/task.ts'
export type { Transcript, TranscriptSegment } from '../endpoints/transcriptions/transcript.ts'
export type { AskedFormat, TranscriptionOperation } from '../endpoints/transcriptions/transcription-operation.ts'
export type { VideoOperation } from '../endpoints/videos/video-endpoint.ts'
export { type ConnectionOptions, vendorConnection } from '../transport/vendor-connection.ts'

/** A key and its share of the calls. */
export interface WeightedKey {
  /** The key itself. */
  readonly key: string
  /** A positive number. A key given as a string has weight 1. */
  readonly weight: number
}

/**
 * The operator's keys at a vendor: one, or several that share the calls. A provider returns tokens that expire. Unset and blank
 * keys are ignored.
 */
export type ApiKeys = string | CredentialProvider | readonly (string | WeightedKey | CredentialProvider)[] | undefined

/** Options of every vendor factory. */
export interface VendorOptions extends ConnectionOptions {
  /** One or several API keys. If omitted, the vendor is not configured and its models are listed as unavailable. */
  readonly apiKey?: ApiKeys
  /**
   * Whether any id that no catalog knows and no other vendor claims is sent to this vendor. Default false: such ids get 404. If
   * billing is on, such a model needs a price row, such as one for `openai/*`, or the option `unknownModels`.
   */
  readonly passUnknownModels?: boolean | undefined
}

/** Options of vendors that a gateway may have several times, for several accounts, resources or regions. */
export interface NamedVendorOptions extends VendorOptions {
  /** Id of the vendor, such as `azure-openai-eu`. Defaults to the usual id of the vendor: `azure-openai`. */
  readonly id?: string | undefined
  /** Display name. Defaults to the usual name of the vendor. */
  readonly displayName?: string | undefined
}

/** A model vendor, created by a factory such as `openai({ apiKey })`. It holds only options and pure functions. */
export interface Vendor extends VendorOffers {
  /** Short lower-case id, such as `openai`, used in catalog rows and events. */
  readonly id: string
  /** Display name. */
  readonly displayName: string
  /** Provider name in OpenTelemetry's GenAI conventions (`gen_ai.provider.name`). Defaults to the id. */
  readonly telemetryName?: string | undefined
  /** Scheme, host and port of the vendor. Credentials are sent nowhere else. */
  readonly origin: string
  /** Flat list of headers for every call, with names in lower case. They replace those of translators. */
  readonly headers?: readonly string[] | undefined
  /** Encoded query of every call, without a question mark. */
  readonly query?: string | undefined
  /** How to connect to the vendor, if it differs from other vendors. */
  readonly egress?: EgressRoute | undefined
  /** Keys of the operator. Empty if the vendor is not configured. Empty strings where `credentialProviders` is set. */
  readonly apiKeys: readonly string[]
  /**
   * Providers at the positions of their `apiKeys`. The gateway adds their tokens to each call, and translators write no credential
   * for an empty key. If omitted, every key is a string.
   */
  readonly credentialProviders?: readonly (CredentialProvider | undefined)[]
  /** Share of calls for each of `apiKeys`, in their order: positive numbers. Default: equal shares. */
  readonly keyWeights?: readonly number[]
  /** Whether the vendor may fetch addresses of a request. Default true: private addresses are rejected. */
  readonly fetchesUrls?: boolean
  /**
   * Whether an answer may pause for as long as `timeouts.totalMs`, such as on an operator's server that reads a long prompt after
   * its response headers. Default false: for `timeouts.idleMs`.
   */
  readonly hasLongSilences?: boolean
  /**
   * Whether requests may name objects of the operator's account at the vendor, such as files. If omitted, they may name only
   * objects that an answer to the same account has named.
   */
  readonly allowsVendorObjects?: boolean | undefined
  /** Settings that configure the vendor, for error texts: `OPENAI_API_KEY or openai({ apiKey })`. */
  readonly configuredBy: string
  /** Catalog rows of this vendor. */
  readonly models: readonly ModelDefinition[]
  /** Whether the rows come with the vendor. By default, the operator listed them, and rows without a price are reported. */
  readonly hasBuiltInModels?: boolean
  /** Catalog id whose models the vendor serves under their own ids: `gemini`. Defaults to its `id`. */
  readonly catalogId?: string
  /**
   * Returns the ids under which the public catalog may list a model with several ids, such as those of a region. The list price of
   * the first one applies. Empty if the catalog has no such model. By default, each id is listed unchanged.
   */
  catalogIds?(upstream: string): readonly string[]
  /**
   * Patterns with one `*` of the ids of this vendor's own models: `claude-*`. The star matches no `/`, and `:` only if the pattern
   * has one. An id that no catalog knows is sent to the vendor that claims it. If omitted, the vendor claims none.
   */
  readonly claims?: readonly string[] | undefined
  /** Whether ids that no catalog knows and no other vendor claims are sent to this vendor. Default false: they get 404. */
  readonly passUnknownModels?: boolean
  /**
   * Whether a request carries reasoning that only this vendor, or only this key, can read, such as a signed block of an earlier
   * turn. If several vendors serve the model, such a request is sent there first. Default false.
   */
  ownsReasoning?(request: { readonly model: string }, apiKey: string): boolean
  /** Members of requests that change its price. Each is priced by a row or rejected. If omitted, there are none. */
  readonly priceMembers?: PriceMembers | undefined
  /** Members that name the end user of each request. If omitted, requests keep the caller's value. */
  readonly endUserMembers?: EndUserMembers | undefined
  /** How to count inputs other than text, for holds. By default, the gateway uses the rules for vendors without published ones. */
  readonly media?: MediaRules
  /** Batch API of the vendor. If omitted, it has none, and the requests of a batch are ordinary calls. */
  readonly batches?: NativeBatches | undefined
  /** Reads a non-2xx answer, or a 2xx answer with an error. */
  errorFrom(answer: WireAnswer, nowMs: number): VendorFailure
}
