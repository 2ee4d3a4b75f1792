import * as z from 'zod'
import type { SPEECH_FORMATS } from '../../catalog/model-facts.ts'
import { onDemand } from '../../core/on-demand.ts'
import { hasAtMost } from '../character-count.ts'
import { changesNothing } from '../neutral-values.ts'

/** Format of the answer: a file, or the bare samples of `pcm`. */
export type SpeechFormat = (typeof SPEECH_FORMATS)[number]

/** Formats that the gateway encodes from samples. */
export const GATEWAY_FORMATS = ['mp3', 'wav', 'pcm'] as const satisfies readonly SpeechFormat[]

/** Whether the gateway encodes the format from samples. */
export function isGatewayFormat(format: SpeechFormat): boolean {
  return (GATEWAY_FORMATS as readonly SpeechFormat[]).includes(format)
}

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

/**
 * Longest text of one request, in characters (code points). The specification names no bound. This one is more than twice
 * OpenAI's, and a vendor that renders a few times faster than real time finishes it within the usual total time.
 */
export const MAX_SPEECH_CHARACTERS = 10_000

/** Longest instructions, in characters: they go along with every part of a text. Vendors allow 1600 tokens. */
export const MAX_INSTRUCTION_CHARACTERS = 8_000

/** Rules for every model. Voice, format and instructions depend on abilities. Unknown fields are passed on. */
export const speechSchema = onDemand(() =>
  z.looseObject({
    model: z.string().min(1),
    input: z
      .string()
      .refine((text) => text.trim() !== '', 'must not be empty')
      .refine((text) => hasAtMost(text, MAX_SPEECH_CHARACTERS), `at most ${MAX_SPEECH_CHARACTERS} characters`)
      .describe(`the text to speak, 1 to ${MAX_SPEECH_CHARACTERS} characters`),
    voice: z.unknown().optional().describe('name of a voice of the model'),
    response_format: z.string().nullish().describe('mp3, wav, pcm, opus, aac or flac, if the model offers it'),
    instructions: z
      .string()
      .refine((text) => hasAtMost(text, MAX_INSTRUCTION_CHARACTERS), `at most ${MAX_INSTRUCTION_CHARACTERS} characters`)
      .nullish(),
    speed: z.number().min(0.25).max(4).nullish(),
    stream_format: z.enum(['audio', 'sse']).nullish(),
  }),
)

/** Fields that the gateway reads. `speed` is accepted for compatibility and has no effect. */
const USED_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'input',
  'voice',
  'response_format',
  'instructions',
  'stream_format',
])

// Names go into a header: unprintable ones are left out, and their number is limited.
const PLAIN_NAME = /^[\w.-]{1,64}$/
const MAX_NAMES = 20

/** Returns the fields set by the caller that have no effect. */
export function unusedSpeechFields(request: SpeechRequest): readonly string[] {
  return Object.keys(request)
    .filter((field) => !USED_FIELDS.has(field) && !changesNothing(field, request[field]) && PLAIN_NAME.test(field))
    .slice(0, MAX_NAMES)
}
