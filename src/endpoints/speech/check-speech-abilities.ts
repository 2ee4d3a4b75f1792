import { GatewayError } from '../../core/errors.ts'
import type { ModelFacts } from '../model-facts.ts'
import type { SpeechFormat } from './speech-request.ts'
import { speechVoice } from './speech-voice.ts'

const ALL_FORMATS: readonly SpeechFormat[] = ['mp3', 'wav']

/** The fields that a model may or may not be able to follow. */
export interface SpeechWishes {
  readonly voice?: unknown
  readonly response_format?: string | null
  readonly instructions?: string | null
}

/**
 * The format of the answer: the one asked for, else the model's first (API specification, "Speech request").
 * @throws GatewayError `invalid_request` naming `response_format` for a format that the model does not give.
 */
export function speechFormat(asked: string | null | undefined, { speech }: ModelFacts): SpeechFormat {
  const formats = speech?.formats ?? ALL_FORMATS
  if (asked === undefined || asked === null) return formats[0] ?? 'mp3'
  const format = formats.find((known) => known === asked)
  if (format !== undefined) return format
  throw new GatewayError('invalid_request', {
    message: `response_format: this model gives ${formats.join(' or ')}`,
    param: 'response_format',
  })
}

/**
 * Checks what depends on the model.
 * @throws GatewayError `invalid_request` or `unsupported_parameter` naming the field; `invalid_voice` for the voice.
 */
export function checkSpeechAbilities(wishes: SpeechWishes, model: ModelFacts): void {
  speechVoice(wishes.voice, model.speech)
  speechFormat(wishes.response_format, model)
  const isInstructed = wishes.instructions !== undefined && wishes.instructions !== null && wishes.instructions !== ''
  if (isInstructed && model.speech?.takesInstructions === false) {
    throw new GatewayError('unsupported_parameter', {
      message: 'instructions: this model does not take them',
      param: 'instructions',
    })
  }
}
