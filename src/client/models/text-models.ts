import type { GeminiEmbeddingAliases, VoyageEmbeddingAliases } from '../../catalog/models/model-aliases.ts'

/** Embedding request without model and encoding (API specification, "Embedding request and response"). */
export interface EmbeddingFields<Dimensions extends number = number> {
  /** One text, or several; token ids if the vendor supports them. */
  readonly input: string | readonly string[] | readonly number[] | readonly (readonly number[])[]
  /** Size of the vectors. Defaults to the model's own size. */
  readonly dimensions?: Dimensions
  readonly user?: string
}

/** A row of {@link EmbeddingModels}. */
export interface EmbeddingModel<Request = EmbeddingFields> {
  readonly request: Request
}

/** Embedding request to a model that reads only texts, and no token ids. */
export interface TextEmbeddingFields<Dimensions extends number = number> extends EmbeddingFields<Dimensions> {
  readonly input: string | readonly string[]
}

/** All sizes that the `vy-` models allow. */
type ClosedSizes = TextEmbeddingFields<256 | 512 | 1024 | 2048>

/** Embedding models with narrowed requests, under their ids and aliases. Add your own by `declare module 'signalbox/client'`. */
export interface EmbeddingModels
  extends GeminiEmbeddingAliases<EmbeddingModel<TextEmbeddingFields>>,
    VoyageEmbeddingAliases<EmbeddingModel<ClosedSizes>> {
  'text-embedding-3-large': EmbeddingModel
  'text-embedding-3-small': EmbeddingModel
  'text-embedding-v4': EmbeddingModel<TextEmbeddingFields>
  'text-embedding-004': EmbeddingModel<TextEmbeddingFields>
  'gmn-embedding-001': EmbeddingModel<TextEmbeddingFields>
  'gmn-embedding-2-preview': EmbeddingModel<TextEmbeddingFields>
  'vy-4-large': EmbeddingModel<ClosedSizes>
  'vy-4': EmbeddingModel<ClosedSizes>
  'vy-4-lite': EmbeddingModel<ClosedSizes>
}

/** A request to an embedding model outside {@link EmbeddingModels}. */
export type OtherEmbeddingRequest = EmbeddingFields & { readonly [field: string]: unknown }

/** Rerank request without the model. */
export interface RerankFields {
  readonly query: string
  /** Texts, objects ranked by their `text` or by their JSON, and images as `{ image }` for models that support them. */
  readonly documents: readonly (string | Readonly<Record<string, unknown>>)[]
  /** Maximum number of results. By default all documents are returned. */
  readonly top_n?: number
  /** Whether the results repeat the documents. */
  readonly return_documents?: boolean
}

/** A row of {@link RerankModels}. */
export interface RerankModel<Request = RerankFields> {
  readonly request: Request
}

/** Requests to models of Voyage. */
interface VoyageRerankFields extends RerankFields {
  /** Whether an overlong text is cut. If false, it is rejected. Default true. */
  readonly truncation?: boolean
}

/** Requests to models of DashScope. */
interface DashScopeRerankFields extends RerankFields {
  /** Instruction for the ranking, in natural language. */
  readonly instruct?: string
}

/** Rerank models with narrowed requests, under their ids and aliases. Add your own by `declare module 'signalbox/client'`. */
export interface RerankModels {
  'vy-rerank-2.5': RerankModel<VoyageRerankFields>
  'rerank-2.5': RerankModel<VoyageRerankFields>
  'vy-rerank-2.5-lite': RerankModel<VoyageRerankFields>
  'rerank-2.5-lite': RerankModel<VoyageRerankFields>
  'qw3-rerank': RerankModel<DashScopeRerankFields>
  'qwen3-rerank': RerankModel<DashScopeRerankFields>
  'gte-rerank-v2': RerankModel<DashScopeRerankFields>
  'qw3-vl-rerank': RerankModel<DashScopeRerankFields>
  'qwen3-vl-rerank': RerankModel<DashScopeRerankFields>
}

/** A request to a rerank model outside {@link RerankModels}. */
export type OtherRerankRequest = RerankFields & { readonly [field: string]: unknown }

/** The answer of a rerank call, the most relevant document first. */
export interface RerankAnswer {
  readonly id?: string
  readonly object: 'list'
  readonly model: string
  readonly results: readonly {
    /** Position of the document in the request. */
    readonly index: number
    readonly relevance_score: number
    /** With `return_documents`: the document of the request; a text is in `text`. */
    readonly document?: Readonly<Record<string, unknown>>
  }[]
  readonly usage: { readonly prompt_tokens: number; readonly total_tokens: number }
  /** Present if the vendor counts search units. */
  readonly meta?: { readonly billed_units: { readonly search_units: number } }
}

/** Part of an input that is judged as a whole: a text, or an image by its URL, which may be a `data:` URL. */
export type ModerationInputPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }

/** Moderation request without the model (OpenAI API, "Create moderation"). */
export interface ModerationFields {
  /** One text, several texts with a result each, or parts that are judged together. */
  readonly input: string | readonly string[] | readonly ModerationInputPart[]
}

/** Moderation request without the model, for models that judge only texts. */
export interface TextModerationFields {
  readonly input: string | readonly string[]
}

/** The categories of OpenAI's `omni-moderation` models. */
export type OmniCategory =
  | 'harassment'
  | 'harassment/threatening'
  | 'hate'
  | 'hate/threatening'
  | 'illicit'
  | 'illicit/violent'
  | 'self-harm'
  | 'self-harm/instructions'
  | 'self-harm/intent'
  | 'sexual'
  | 'sexual/minors'
  | 'violence'
  | 'violence/graphic'

/** Judgement of one input, by the categories of the model's vendor. */
export interface ModerationResult<Category extends string = string> {
  /** Whether the vendor considers the input harmful. Some vendors do not report it. */
  readonly flagged?: boolean
  /** Whether each category applies, or `null` if the model does not judge the category. */
  readonly categories: Readonly<Record<Category, boolean | null>>
  /** Score of each category, from 0 to 1. */
  readonly category_scores?: Readonly<Record<Category, number | null>>
  /** Types of input that decided about a category. */
  readonly category_applied_input_types?: Readonly<Record<Category, readonly ('text' | 'image')[] | null>>
}

/** An answer of a moderation model: a result for each text, or one for all parts. */
export interface ModerationAnswer<Result = ModerationResult> {
  readonly id: string
  readonly model: string
  readonly results: readonly Result[]
}

/** An answer of OpenAI's `omni-moderation` models. */
export type OmniModerationAnswer = ModerationAnswer<Required<ModerationResult<OmniCategory>>>

/** A row of {@link ModerationModels}. */
export interface ModerationModel<Request = ModerationFields, Answer = ModerationAnswer> {
  readonly request: Request
  readonly answer: Answer
}

/** Moderation models with narrowed requests and answers. Add your own by `declare module 'signalbox/client'`. */
export interface ModerationModels {
  'omni-moderation-latest': ModerationModel<ModerationFields, OmniModerationAnswer>
  'omni-moderation-2024-09-26': ModerationModel<ModerationFields, OmniModerationAnswer>
}

/** Model of a request that names none. */
export type DefaultModerationModel = 'omni-moderation-latest'

/** A request to a moderation model outside {@link ModerationModels}. */
export type OtherModerationRequest = ModerationFields & { readonly [field: string]: unknown }
