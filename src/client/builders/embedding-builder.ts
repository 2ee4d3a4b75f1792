import { DASHSCOPE_EMBEDDING_MODELS } from '../../catalog/models/dashscope-models.ts'
import { GEMINI_EMBEDDING_MODELS } from '../../catalog/models/gemini-models.ts'
import { VOYAGE_EMBEDDING_MODELS } from '../../catalog/models/voyage-models.ts'
import { invalidField } from '../../endpoints/field-errors.ts'
import type { EmbeddingModels, OtherEmbeddingRequest } from '../models/embedding-models.ts'
import type { FieldOf, ModelId, RequestOf } from '../models/model-request.ts'
import { Draft, knownModel } from './draft.ts'

type FieldsOf<Model> = RequestOf<EmbeddingModels, Model, OtherEmbeddingRequest>

/** An embedding request, ready to be sent. */
export type BuiltEmbedding<Model, Encoding> = FieldsOf<Model> & {
  readonly model: Model
  readonly encoding_format: Encoding
}

/** Builds an embedding request step by step. */
export interface EmbeddingBuilder<Model, Encoding extends 'float' | 'base64' = 'float'> {
  /** Adds texts; vectors are returned in the same order. */
  input(...texts: readonly string[]): this
  /**
   * Sets the size of the vectors.
   * @throws GatewayError `invalid_request` if the model does not support the size.
   */
  dimensions(size: FieldOf<FieldsOf<Model>, 'dimensions', number>): this
  /** Requests vectors as base64, which needs a third of the bytes. */
  base64(): EmbeddingBuilder<Model, 'base64'>
  /** @throws GatewayError `invalid_request` if there is no text. */
  build(): BuiltEmbedding<Model, Encoding>
}

interface State {
  readonly model: string
  readonly encoding_format: 'float' | 'base64'
  readonly input: readonly string[]
  readonly dimensions?: number
}

/** Starts an embedding request. */
export function embedding<const Model extends ModelId<EmbeddingModels>>(model: Model): EmbeddingBuilder<Model> {
  // The draft accepts any size; the type allows only those of the model.
  return new EmbeddingDraft({ model, encoding_format: 'float', input: [] }) as never
}

class EmbeddingDraft extends Draft<State> {
  input(...texts: readonly string[]): this {
    return this.with({ input: [...this.state.input, ...texts] })
  }
  dimensions(size: number): this {
    checkDimensions(this.state.model, size)
    return this.with({ dimensions: size })
  }
  base64(): this {
    return this.with({ encoding_format: 'base64' })
  }
  build(): State {
    if (this.state.input.length === 0) throw invalidField('input', 'needs at least one text')
    return { ...this.state, input: [...this.state.input] }
  }
}

/**
 * Checks the size by the gateway's rule: sizes that the vendor offers, or a shortened one of these, unless the specification lists
 * all allowed sizes.
 */
function checkDimensions(model: string, size: number): void {
  const known = knownModel(model, DASHSCOPE_EMBEDDING_MODELS, GEMINI_EMBEDDING_MODELS, VOYAGE_EMBEDDING_MODELS)
  const { dimensions, nativeDimensions = [], truncatesDimensions } = known?.limits ?? {}
  const sizes = 'max' in nativeDimensions ? [nativeDimensions.max] : nativeDimensions
  if (truncatesDimensions === false && !sizes.includes(size)) {
    throw invalidField('dimensions', `${model} has ${sizes.join(', ')}`)
  }
  const largest = sizes.length === 0 ? (dimensions ?? Number.POSITIVE_INFINITY) : Math.max(...sizes)
  if (!Number.isInteger(size) || size < 1 || size > largest) {
    throw invalidField('dimensions', `${model} has whole numbers up to ${largest}`)
  }
}
