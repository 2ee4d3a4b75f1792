import { invalidField } from '../../endpoints/field-errors.ts'
import type { ModelId, RequestOf } from '../models/model-request.ts'
import type { OtherRerankRequest, RerankFields, RerankModels } from '../models/rerank-models.ts'
import { Draft, required } from './draft.ts'

type FieldsOf<Model> = RequestOf<RerankModels, Model, OtherRerankRequest>

/** A rerank request, ready to be sent. */
export type BuiltRerank<Model> = FieldsOf<Model> & { readonly model: Model }

/** Builds a rerank request step by step. */
export interface RerankBuilder<Model> {
  /** Sets the query that the documents are ranked by. */
  query(text: string): this
  /** Adds documents: texts, objects ranked by their `text`, and images as `{ image }` for models that support them. */
  documents(...documents: RerankFields['documents']): this
  /**
   * Sets the maximum number of results. By default all documents are returned.
   * @throws GatewayError `invalid_request` unless it is an integer of at least 1.
   */
  top(count: number): this
  /** Requests the documents in the results. */
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

/** Starts a rerank request. */
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
    if (!Number.isInteger(count) || count < 1) throw invalidField('top_n', 'must be a whole number of 1 or more')
    return this.with({ top_n: count })
  }
  returnDocuments(): this {
    return this.with({ return_documents: true })
  }
  build(): State {
    required('query', this.state.query)
    if (this.state.documents.length === 0) throw invalidField('documents', 'needs at least one document')
    return { ...this.state, documents: [...this.state.documents] }
  }
}
