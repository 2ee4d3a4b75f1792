import { GatewayError } from '../../core/errors.ts'
import type { SpeechAbilities } from '../model-facts.ts'

/** The voice of a request that names none, and of one that names a voice of OpenAI's (API specification, "Speech request"). */
export const DEFAULT_VOICE = 'Cherry'

/** OpenAI's voices, which clients written for OpenAI name (OpenAI API, "Create speech", `voice`). */
export const OPENAI_VOICES = [
  ...['alloy', 'ash', 'ballad', 'coral', 'echo', 'fable', 'onyx', 'nova', 'sage', 'shimmer', 'verse', 'marin', 'cedar'],
] as const
const STAND_INS: ReadonlySet<string> = new Set(OPENAI_VOICES)

/**
 * The model's own name of the voice that a request asks for. A model without a list of voices leaves the matter to its
 * vendor.
 * @throws GatewayError 400 `invalid_voice` for a voice that the model does not have.
 */
export function speechVoice(asked: unknown, abilities: SpeechAbilities | undefined): string {
  const known = abilities?.voices
  if (asked === undefined || asked === null) return usualVoice(known)
  if (typeof asked !== 'string') throw invalidVoice('expected the name of a voice')
  if (known?.includes(asked) === true) return asked
  if (STAND_INS.has(asked)) return usualVoice(known)
  if (known !== undefined) throw invalidVoice(`this model has ${known.join(', ')}`)
  if (asked === '') throw invalidVoice('must not be empty')
  return asked
}

function usualVoice(known: readonly string[] | undefined): string {
  return known === undefined || known.includes(DEFAULT_VOICE) ? DEFAULT_VOICE : (known[0] ?? DEFAULT_VOICE)
}

function invalidVoice(text: string): GatewayError {
  return new GatewayError('invalid_request', {
    message: `voice: ${text}`,
    param: 'voice',
    publicCode: 'invalid_voice',
  })
}
