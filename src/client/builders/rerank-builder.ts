import type { ModelId, RequestOf } from '../models/model-request.ts'
import type { OtherRerankRequest, RerankFields, RerankModels } from '../models/rerank-models.ts'
import { builderFault, Draft, required } from './draft.ts'

type FieldsOf<Model> = RequestOf<RerankModels, Model, OtherRerankRequest>

/** A rerank request, ready to be sent. */
export type BuiltRerank<Model> = FieldsOf<Model> & { readonly model: Model }

/** Builds a rerank request step by step. */
export interface RerankBuilder<Model> {
  /** What the documents are ranked by. */
  query(text: string): this
  /** Documents to add: texts, objects that are ranked by their `text`, and pictures as `{ image }` at models that rank them. */
  documents(...documents: RerankFields['documents']): this
  /**
   * Most results; all documents by default.
   * @throws GatewayError `invalid_request` unless it is a whole number of 1 or more.
   */
  top(count: number): this
  /** The results repeat the documents. */
  returnDocuments(): this
  /** @throws GatewayError `invalid_request` without a query or a document. */
  build(): BuiltRerank<Model>
}

interface State {
  readonly model: string
  readonly query?: string
  readonly documents: readonly unknown[]
  readonly top_n?: number
  readonly return_documents?: true
}

/** Begins a rerank request. */
export function rerank<const Model extends ModelId<RerankModels>>(model: Model): RerankBuilder<Model> {
  return new RerankDraft({ model, documents: [] }) as never
}

class RerankDraft extends Draft<State> {
  query(query: string): this {
    return this.with({ query })
  }
  documents(...documents: readonly unknown[]): this {
    return this.with({ documents: [...this.state.documents, ...documents] })
  }
  top(count: number): this {
    if (!Number.isInteger(count) || count < 1) throw builderFault('top_n', 'must be a whole number of 1 or more')
    return this.with({ top_n: count })
  }
  returnDocuments(): this {
    return this.with({ return_documents: true })
  }
  build(): State {
    required('query', this.state.query)
    if (this.state.documents.length === 0) throw builderFault('documents', 'needs at least one document')
    return { ...this.state, documents: [...this.state.documents] }
  }
}
