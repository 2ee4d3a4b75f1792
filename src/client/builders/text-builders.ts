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
import { createBuilder, knownModel, required, type Steps } from './draft.ts'

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
  return createBuilder<EmbeddingState>({ model, encoding_format: 'float', input: [] }, EMBEDDING_STEPS, {
    build(state) {
      if (state.input.length === 0) throw invalidField('input', 'needs at least one text')
      return { ...state, input: [...state.input] }
    },
  })
}

const EMBEDDING_STEPS = {
  input: (state, ...texts: readonly string[]) => ({ input: [...state.input, ...texts] }),
  dimensions: ({ model }, size: number) => {
    checkDimensions(model, size)
    return { dimensions: size }
  },
  base64: () => ({ encoding_format: 'base64' }),
} satisfies Steps<EmbeddingState>

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
  return createBuilder<RerankState>({ model, documents: [] }, RERANK_STEPS, {
    build(state) {
      required('query', state.query)
      if (state.documents.length === 0) throw invalidField('documents', 'needs at least one document')
      return { ...state, documents: [...state.documents] }
    },
  })
}

const RERANK_STEPS = {
  query: (_, query: string) => ({ query }),
  documents: (state, ...documents: RerankFields['documents']) => ({ documents: [...state.documents, ...documents] }),
  top: (_, count: number) => {
    if (!Number.isInteger(count) || count < 1) throw invalidField('top_n', 'must be a whole number of 1 or more')
    return { top_n: count }
  },
  returnDocuments: () => ({ return_documents: true }),
} satisfies Steps<RerankState>

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
  readonly parts: readonly ModerationInputPart[]
}

/** Starts a moderation request. */
export function moderation<const Model extends ModelId<ModerationModels>>(model: Model): ModerationBuilder<Model> {
  return createBuilder<ModerationState>({ parts: [] }, MODERATION_STEPS, {
    build({ parts }) {
      if (parts.length === 0) throw invalidField('input', 'needs at least one text or image')
      const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
      return { model, input: texts.length === parts.length ? texts : [...parts] }
    },
  })
}

const MODERATION_STEPS = {
  text: ({ parts }, ...texts: readonly string[]) => ({
    parts: [...parts, ...texts.map((text) => ({ type: 'text', text }) as const)],
  }),
  picture: ({ parts }, url: string) => ({ parts: [...parts, { type: 'image_url', image_url: { url } }] }),
} satisfies Steps<ModerationState>

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
  return createBuilder<SpeechState>({ model, input: '' }, SPEECH_STEPS, {
    build(state) {
      if (state.input === '') throw invalidField('input', 'needs a text')
      const known = knownModel(model, DASHSCOPE_SPEECH_MODELS)?.speech
      if (known !== undefined) checkSpeechAbilities(state, { id: model, limits: {}, speech: known })
      return { ...state }
    },
  })
}

const SPEECH_STEPS = {
  text: (_, input: string) => ({ input }),
  voice: (_, voice: string) => ({ voice }),
  format: (_, format: string) => ({ response_format: format }),
  instructions: (_, instructions: string) => ({ instructions }),
  events: () => ({ stream_format: 'sse' }),
} satisfies Steps<SpeechState>
