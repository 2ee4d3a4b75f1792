import { z } from 'zod'
import { countCharacters, MAX_INSTRUCTION_CHARACTERS, MAX_SPEECH_CHARACTERS } from './speech-limits.ts'

/** How the sound is wrapped. */
export type SpeechFormat = 'mp3' | 'wav'

/** How the answer is sent: as the sound itself, or in events (OpenAI API, "Create speech", `stream_format`). */
export type SpeechStreamFormat = 'audio' | 'sse'

/** A speech request after its check (API specification, "Speech request"). */
export interface SpeechRequest {
  readonly model: string
  readonly input: string
  readonly voice?: string | null
  /** Always set after the check: the caller's, or the model's own. */
  readonly response_format: SpeechFormat
  readonly instructions?: string | null
  readonly speed?: number | null
  readonly stream_format?: SpeechStreamFormat | null
  readonly [field: string]: unknown
}

/** Rules that hold for every model; voice, format and instructions are checked by the model's abilities. Unknown fields pass. */
export const speechSchema = z.looseObject({
  model: z.string().min(1),
  input: z
    .string()
    .refine((text) => text.trim() !== '', 'must not be empty')
    .refine(isWithin(MAX_SPEECH_CHARACTERS), `at most ${MAX_SPEECH_CHARACTERS} characters`)
    .describe(`the text to speak, 1 to ${MAX_SPEECH_CHARACTERS} characters`),
  voice: z.unknown().optional().describe('name of a voice of the model'),
  response_format: z.string().nullish().describe('mp3 or wav, where the model gives it'),
  instructions: z
    .string()
    .refine(isWithin(MAX_INSTRUCTION_CHARACTERS), `at most ${MAX_INSTRUCTION_CHARACTERS} characters`)
    .nullish(),
  speed: z.number().min(0.25).max(4).nullish(),
  stream_format: z.enum(['audio', 'sse']).nullish(),
})

function isWithin(characters: number): (text: string) => boolean {
  // A character takes at most two units, so what is longer need not be counted.
  return (text) => text.length <= characters || (text.length <= 2 * characters && countCharacters(text) <= characters)
}
