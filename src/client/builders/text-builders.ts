import { DASHSCOPE_EMBEDDING_MODELS, DASHSCOPE_SPEECH_MODELS } from '../../catalog/models/dashscope-models.ts'
import { GEMINI_EMBEDDING_MODELS } from '../../catalog/models/gemini-models.ts'
import { VOYAGE_EMBEDDING_MODELS } from '../../catalog/models/voyage-models.ts'
import { invalidField } from '../../endpoints/field-errors.ts'
import { checkSpeechAbilities } from '../../endpoints/speech/check-speech-abilities.ts'
import type { OtherSpeechRequest, SpeechModels } from '../models/audio-models.ts'
import type { FieldOf, ModelId, RequestOf } from '../models/model-request.ts'
import type {
  EmbeddingModels,
  ModerationInputPart,
  ModerationModels,
  OtherEmbeddingRequest,
  OtherModerationRequest,
  OtherRerankRequest,
  RerankFields,
  RerankModels,
} from '../models/text-models.ts'
import { Draft, knownModel, required } from './draft.ts'

type EmbeddingFields<Model> = RequestOf<EmbeddingModels, Model, OtherEmbeddingRequest>

/** An embedding request, ready to be sent. */
export type BuiltEmbedding<Model, Encoding> = EmbeddingFields<Model> & {
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
  dimensions(size: FieldOf<EmbeddingFields<Model>, 'dimensions', number>): this
  /** Requests vectors as base64, which needs a third of the bytes. */
  base64(): EmbeddingBuilder<Model, 'base64'>
  /** @throws GatewayError `invalid_request` if there is no text. */
  build(): BuiltEmbedding<Model, Encoding>
}

interface EmbeddingState {
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

class EmbeddingDraft extends Draft<EmbeddingState> {
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
  build(): EmbeddingState {
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

type RerankBuilderFields<Model> = RequestOf<RerankModels, Model, OtherRerankRequest>

/** A rerank request, ready to be sent. */
export type BuiltRerank<Model> = RerankBuilderFields<Model> & { readonly model: Model }

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

interface RerankState {
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

class RerankDraft extends Draft<RerankState> {
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
  build(): RerankState {
    required('query', this.state.query)
    if (this.state.documents.length === 0) throw invalidField('documents', 'needs at least one document')
    return { ...this.state, documents: [...this.state.documents] }
  }
}

/** A moderation request, ready to be sent. */
export type BuiltModeration<Model> = RequestOf<ModerationModels, Model, OtherModerationRequest> & {
  readonly model: Model
}

/** Builds a moderation request step by step. */
export interface ModerationBuilder<Model> {
  /** Adds texts. Each gets its own result, unless there is an image: then all parts are judged together. */
  text(...texts: readonly string[]): this
  /** Adds an image by its URL, which may be a `data:` URL. */
  picture(url: string): this
  /** @throws GatewayError `invalid_request` if there is no input. */
  build(): BuiltModeration<Model>
}

interface ModerationState {
  readonly model: string
  readonly parts: readonly ModerationInputPart[]
}

/** Starts a moderation request. */
export function moderation<const Model extends ModelId<ModerationModels>>(model: Model): ModerationBuilder<Model> {
  return new ModerationDraft({ model, parts: [] }) as never
}

class ModerationDraft extends Draft<ModerationState> {
  text(...texts: readonly string[]): this {
    return this.with({ parts: [...this.state.parts, ...texts.map((text) => ({ type: 'text', text }) as const)] })
  }
  picture(url: string): this {
    return this.with({ parts: [...this.state.parts, { type: 'image_url', image_url: { url } }] })
  }
  build(): { readonly model: string; readonly input: readonly string[] | readonly ModerationInputPart[] } {
    const { model, parts } = this.state
    if (parts.length === 0) throw invalidField('input', 'needs at least one text or image')
    const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
    return { model, input: texts.length === parts.length ? texts : [...parts] }
  }
}

type SpeechFields<Model> = RequestOf<SpeechModels, Model, OtherSpeechRequest>

/** A speech request, ready to be sent. */
export type BuiltSpeech<Model, Format extends 'audio' | 'sse' = 'audio'> = SpeechFields<Model> & {
  readonly model: Model
} & (Format extends 'sse' ? { readonly stream_format: 'sse' } : unknown)

/** Steps that every speech model supports. */
interface SpeechSteps<Model, Format extends 'audio' | 'sse'> {
  text(text: string): this
  voice(name: FieldOf<SpeechFields<Model>, 'voice', string>): this
  format(format: FieldOf<SpeechFields<Model>, 'response_format', string>): this
  /** Requests audio in events, as base64 chunks (`stream_format: 'sse'`). */
  events(): SpeechBuilder<Model, 'sse'>
  /**
   * @throws GatewayError naming the field: no text, a voice or format that the model does not support, or instructions for a model
   *   without them.
   */
  build(): BuiltSpeech<Model, Format>
}

/** Steps of models that support speaking instructions. */
interface InstructionSteps {
  /** Sets tone, tempo and emotion, in natural language. */
  instructions(text: string): this
}

/** Builds a speech request step by step. */
export type SpeechBuilder<Model, Format extends 'audio' | 'sse' = 'audio'> = SpeechSteps<Model, Format> &
  ('instructions' extends keyof SpeechFields<Model> ? InstructionSteps : unknown)

interface SpeechState {
  readonly model: string
  readonly input: string
  readonly voice?: string
  readonly response_format?: string
  readonly instructions?: string
  readonly stream_format?: 'sse'
}

/** Starts a speech request. */
export function speech<const Model extends ModelId<SpeechModels>>(model: Model): SpeechBuilder<Model> {
  // The draft has every step; the type exposes only those of the model.
  return new SpeechDraft({ model, input: '' }) as never
}

class SpeechDraft extends Draft<SpeechState> {
  text(text: string): this {
    return this.with({ input: text })
  }
  voice(voice: string): this {
    return this.with({ voice })
  }
  format(format: string): this {
    return this.with({ response_format: format })
  }
  instructions(instructions: string): this {
    return this.with({ instructions })
  }
  events(): this {
    return this.with({ stream_format: 'sse' })
  }
  build(): SpeechState {
    const { state } = this
    if (state.input === '') throw invalidField('input', 'needs a text')
    const known = knownModel(state.model, DASHSCOPE_SPEECH_MODELS)?.speech
    if (known !== undefined) checkSpeechAbilities(state, { id: state.model, limits: {}, speech: known })
    return { ...state }
  }
}
