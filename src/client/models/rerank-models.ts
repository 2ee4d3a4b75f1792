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
