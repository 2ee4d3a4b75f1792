import type { ModelDefinition } from '../catalog/model.ts'
import type { CredentialProvider } from '../core/credential.ts'
import type { MediaRules } from '../endpoints/media-input.ts'
import type { NativeBatches } from '../endpoints/native-batches.ts'
import type { EndUserMembers, WireAnswer } from '../endpoints/operation.ts'
import type { PriceMembers } from '../endpoints/price-members.ts'
import type { VendorOffers } from '../endpoints/registry.ts'
import type { VendorFailure } from '../endpoints/stream-transform.ts'
import type { EgressRoute } from '../transport/transport.ts'

export type { BrokenChat, ChatOperation } from '../endpoints/chat/chat-operation.ts'
export type { CompletionsOperation } from '../endpoints/completions/completion-operation.ts'
export type { EmbeddingsOperation } from '../endpoints/embeddings/embeddings-operation.ts'
export type { ExtraFeature } from '../endpoints/endpoint.ts'
export type { ImageOperation, ImageOperations } from '../endpoints/images/image-operation.ts'
export type { MediaFacts, MediaRules } from '../endpoints/media-input.ts'
export type { MessagesOperation, TokenCountOperation } from '../endpoints/messages/messages-operation.ts'
export type { ModerationsOffer } from '../endpoints/moderations/moderation-operation.ts'
export type {
  LinesBody,
  NativeBatches,
  NativeBatchInput,
  NativeCall,
  NativeReport,
  NativeResult,
  NativeSearch,
} from '../endpoints/native-batches.ts'
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
export type { RerankInput, RerankOperation } from '../endpoints/rerank/rerank-operation.ts'
export type { RerankLimits } from '../endpoints/rerank/split-documents.ts'
export type { SpeechOperation } from '../endpoints/speech/speech-operation.ts'
export type { AnswerIds, StreamTransform, VendorFailure } from '../endpoints/stream-transform.ts'
export type { TaskCall, TaskOperation, TaskReport } from '../endpoints/task.ts'
export type { Transcript, TranscriptSegment } from '../endpoints/transcriptions/transcript.ts'
export type { AskedFormat, TranscriptionOperation } from '../endpoints/transcriptions/transcription-operation.ts'
export type { VideoOperation } from '../endpoints/videos/video-operation.ts'
export { type ConnectionOptions, vendorConnection } from '../transport/vendor-connection.ts'

/** A key, and its share of the calls beside other keys. */
export interface WeightedKey {
  /** The key itself, or where it comes from. */
  readonly key: string
  /** A positive number; 1 is the share of a key that is given as text. */
  readonly weight: number
}

/**
 * The operator's keys at a vendor: one, or several that share the calls. A provider gives tokens that expire. Unset and blank
 * keys do not count.
 */
export type ApiKeys = string | CredentialProvider | readonly (string | WeightedKey | CredentialProvider)[] | undefined

/** What every vendor's options have about models without a row. */
export interface UnlistedModelOptions {
  /**
   * Whether any id that no catalog knows and no other vendor claims is sent to this vendor. Default false: such ids get 404. While
   * billing is on, such a model needs a price row, such as one for `openai/*`, or the option `unknownModels`.
   */
  readonly passUnknownModels?: boolean | undefined
}

/** A model vendor. Built by a factory such as `openai({ apiKey })`; holds options and pure functions only. */
export interface Vendor extends VendorOffers {
  /** Short lower-case id: `openai`. Catalog rows and events name it. */
  readonly id: string
  /** Name for people. */
  readonly displayName: string
  /** What OpenTelemetry's GenAI conventions call the provider (`gen_ai.provider.name`). Absent: the id. */
  readonly telemetryName?: string | undefined
  /** Scheme, host and port of the vendor. Credentials go nowhere else. */
  readonly origin: string
  /** Flat list of headers that every call carries, names in lower case; they replace those of translators. */
  readonly headers?: readonly string[] | undefined
  /** Query that every call carries, encoded, without a question mark. */
  readonly query?: string | undefined
  /** How connections to the vendor are made, where they are not made as to any other. */
  readonly egress?: EgressRoute | undefined
  /** Keys of the operator; empty when the vendor is not configured. An empty text where `credentialProviders` has a provider. */
  readonly apiKeys: readonly string[]
  /**
   * Providers in the places of their `apiKeys`. The gateway adds what they give to each call, and translators write no
   * credential for an empty key. Absent: every key is a text.
   */
  readonly credentialProviders?: readonly (CredentialProvider | undefined)[]
  /** Share of calls for each of `apiKeys`, in their order: positive numbers. Absent: equal shares. */
  readonly keyWeights?: readonly number[]
  /**
   * False for a vendor that never fetches an address of a request. Absent: it may, so that addresses which are private by their
   * text are refused.
   */
  readonly fetchesUrls?: boolean
  /**
   * Whether an answer may pause for as long as `timeouts.totalMs`, as on a server of the operator that reads a long prompt after its
   * response headers. Default false: for `timeouts.idleMs`.
   */
  readonly hasLongSilences?: boolean
  /**
   * Whether requests may name objects of the operator's account at the vendor, such as files. If omitted, they may name only what
   * an answer to the same account has named.
   */
  readonly allowsVendorObjects?: boolean | undefined
  /** What an operator must set to configure the vendor, for error texts: `OPENAI_API_KEY or openai({ apiKey })`. */
  readonly configuredBy: string
  /** Catalog rows that this vendor brings along. */
  readonly models: readonly ModelDefinition[]
  /** True where they come with the vendor. Absent: the operator has listed them, so one without a price is told at start. */
  readonly hasBuiltInModels?: boolean
  /** Whose models in the public catalog it serves under their own ids: `gemini`. Absent: those listed under its `id`. */
  readonly catalogId?: string
  /**
   * The ids under which the public catalog may list a model that it takes under other ids too, such as those of a region. The list
   * price of the first one holds. Empty: it has no such model. Absent: each id is listed as it is.
   */
  catalogIds?(upstream: string): readonly string[]
  /**
   * Patterns with one `*` of the ids that this vendor gives its own models: `claude-*`. The star stands for no `/`, and for a `:` only if
   * the pattern has one. An id that no catalog knows goes to the vendor that claims it. If omitted, the vendor claims none.
   */
  readonly claims?: readonly string[] | undefined
  /** Whether ids that no catalog knows and no other vendor claims are sent to this vendor. Default false: they get 404. */
  readonly passUnknownModels?: boolean
  /**
   * Does a request carry reasoning that only this vendor can read, or only this key of it, such as a signed block of an earlier
   * turn? Such a request goes there first where several serve its model. Absent: never.
   */
  ownsReasoning?(request: { readonly model: string }, apiKey: string): boolean
  /** Members of requests that change its price. Each is priced by a row or rejected. If omitted, it has none. */
  readonly priceMembers?: PriceMembers | undefined
  /** Members that name the end user of each request. If omitted, requests name the user that their caller wrote. */
  readonly endUserMembers?: EndUserMembers | undefined
  /** How it counts inputs that are no text, for holds. Absent: as the gateway counts for vendors that publish no rule. */
  readonly media?: MediaRules
  /** Its batch API. Absent: it has none, and the requests of a batch are ordinary calls. */
  readonly batches?: NativeBatches | undefined
  /** Reads a non-2xx answer, or a 2xx answer that is an error in disguise. */
  errorFrom(answer: WireAnswer, nowMs: number): VendorFailure
}
