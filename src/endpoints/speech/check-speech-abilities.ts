import { type ModelFacts, SPEECH_FORMATS, type SpeechAbilities } from '../../catalog/model-facts.ts'
import type { GatewayError } from '../../core/errors.ts'
import { invalidField, unsupportedField } from '../field-errors.ts'
import type { SpeechFormat } from './speech-request.ts'

/** The fields that depend on the model's abilities. */
export interface SpeechOptions {
  readonly voice?: unknown
  readonly response_format?: string | null
  readonly instructions?: string | null
}

/**
 * Returns the format of the answer: the requested one, else the model's first (API specification, "Speech request").
 * @throws GatewayError `invalid_request` naming `response_format` for a format that the model lacks.
 */
export function speechFormat(asked: string | null | undefined, { speech }: ModelFacts): SpeechFormat {
  const formats = speech?.formats ?? SPEECH_FORMATS
  if (asked === undefined || asked === null) return formats[0] ?? 'mp3'
  const format = formats.find((known) => known === asked)
  if (format !== undefined) return format
  throw invalidField('response_format', `this model offers ${formats.join(', ')}`)
}

/**
 * Checks fields that depend on the model.
 * @throws GatewayError `invalid_request` or `unsupported_parameter` naming the field; `invalid_voice` for the voice.
 */
export function checkSpeechAbilities(options: SpeechOptions, model: ModelFacts): void {
  speechVoice(options.voice, model.speech)
  speechFormat(options.response_format, model)
  const isInstructed =
    options.instructions !== undefined && options.instructions !== null && options.instructions !== ''
  if (isInstructed && model.speech?.takesInstructions === false) {
    throw unsupportedField('instructions', 'this model does not support them')
  }
}

/** Voice of a request without one, or with an OpenAI voice (API specification, "Speech request"). */
const DEFAULT_VOICE = 'Cherry'

/** OpenAI's voices, as used by clients that were written for OpenAI (OpenAI API, "Create speech", `voice`). */
export const OPENAI_VOICES = [
  'alloy',
  'ash',
  'ballad',
  'coral',
  'echo',
  'fable',
  'onyx',
  'nova',
  'sage',
  'shimmer',
  'verse',
  'marin',
  'cedar',
] as const

/**
 * Returns the model's own name of the requested voice. For a model without a list of voices, the vendor checks it.
 * @param usual The vendor's voice for requests without one, and for OpenAI's voices unless it is one of them itself.
 * @throws GatewayError 400 `invalid_voice` for a voice that the model lacks.
 */
export function speechVoice(asked: unknown, abilities: SpeechAbilities | undefined, usual = DEFAULT_VOICE): string {
  const known = abilities?.voices
  if (asked === undefined || asked === null) return usualVoice(known, usual)
  if (typeof asked !== 'string') throw invalidVoice('expected the name of a voice')
  if (known?.includes(asked) === true) return asked
  if (isOpenAIVoice(asked)) return known === undefined && isOpenAIVoice(usual) ? asked : usualVoice(known, usual)
  if (known !== undefined) throw invalidVoice(`this model has ${known.join(', ')}`)
  if (asked === '') throw invalidVoice('must not be empty')
  return asked
}

function usualVoice(known: readonly string[] | undefined, usual: string): string {
  return known === undefined || known.includes(usual) ? usual : (known[0] ?? usual)
}

function isOpenAIVoice(name: string): boolean {
  return (OPENAI_VOICES as readonly string[]).includes(name)
}

function invalidVoice(text: string): GatewayError {
  return invalidField('voice', text, 'invalid_voice')
}
