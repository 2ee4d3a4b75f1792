import { DASHSCOPE_SPEECH_MODELS } from '../../catalog/models/dashscope-models.ts'
import { invalidField } from '../../endpoints/field-errors.ts'
import { checkSpeechAbilities } from '../../endpoints/speech/check-speech-abilities.ts'
import type { FieldOf, ModelId, RequestOf } from '../models/model-request.ts'
import type { OtherSpeechRequest, SpeechModels } from '../models/speech-models.ts'
import { Draft, knownModel } from './draft.ts'

type FieldsOf<Model> = RequestOf<SpeechModels, Model, OtherSpeechRequest>

/** A speech request, ready to be sent. */
export type BuiltSpeech<Model, Format extends 'audio' | 'sse' = 'audio'> = FieldsOf<Model> & {
  readonly model: Model
} & (Format extends 'sse' ? { readonly stream_format: 'sse' } : unknown)

/** Steps that every speech model supports. */
interface SpeechSteps<Model, Format extends 'audio' | 'sse'> {
  text(text: string): this
  voice(name: FieldOf<FieldsOf<Model>, 'voice', string>): this
  format(format: FieldOf<FieldsOf<Model>, 'response_format', string>): this
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
  ('instructions' extends keyof FieldsOf<Model> ? InstructionSteps : unknown)

interface State {
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

class SpeechDraft extends Draft<State> {
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
  build(): State {
    const { state } = this
    if (state.input === '') throw invalidField('input', 'needs a text')
    const known = knownModel(state.model, DASHSCOPE_SPEECH_MODELS)?.speech
    if (known !== undefined) checkSpeechAbilities(state, { id: state.model, limits: {}, speech: known })
    return { ...state }
  }
}
