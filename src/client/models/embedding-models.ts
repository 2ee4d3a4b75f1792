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
