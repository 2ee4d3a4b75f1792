/** A rerank request but for the model. */
export interface RerankFields {
  readonly query: string
  /** Texts, objects that are ranked by their `text`, or by their JSON, and pictures as `{ image }` at models that rank them. */
  readonly documents: readonly (string | Readonly<Record<string, unknown>>)[]
  /** Most results; all documents when absent. */
  readonly top_n?: number
  /** Are the documents repeated in the results? */
  readonly return_documents?: boolean
}

/** A row of {@link RerankModels}. */
export interface RerankModel<Request = RerankFields> {
  readonly request: Request
}

/** Requests to models of Voyage. */
interface VoyageRerankFields extends RerankFields {
  /** False: a text that is too long is refused. By default it is cut. */
  readonly truncation?: boolean
}

/** Requests to models of DashScope. */
interface DashScopeRerankFields extends RerankFields {
  /** What to rank by, in words. */
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
  /** Present where the vendor counts search units. */
  readonly meta?: { readonly billed_units: { readonly search_units: number } }
}
