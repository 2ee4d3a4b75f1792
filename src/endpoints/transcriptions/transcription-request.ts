import * as z from 'zod'
import type { TRANSCRIPTION_FORMATS } from '../../catalog/model-facts.ts'
import { onDemand } from '../../core/on-demand.ts'
import type { AudioHeader } from '../../wire/audio/audio-header.ts'
import type { Form, FormFile } from '../../wire/multipart.ts'
import { listOf } from '../list-of.ts'

/** Format of a transcript (OpenAI API, "Create transcription", `response_format`). */
export type TranscriptionFormat = (typeof TRANSCRIPTION_FORMATS)[number]

/** The checked text fields of a transcription. Lists are sent as `name[]` or as repeated `name`. */
export interface TranscriptionFields {
  readonly model: string
  readonly response_format?: TranscriptionFormat
  readonly stream?: boolean
  /** ISO 639-1 code. */
  readonly language?: string
  readonly languages?: readonly string[]
  readonly keywords?: readonly string[]
  readonly prompt?: string
  readonly temperature?: number
  readonly timestamp_granularities?: readonly ('word' | 'segment')[]
  readonly include?: readonly string[]
  /** `auto`, an object as JSON text, or its members. */
  readonly chunking_strategy?: string | Readonly<Record<string, string>>
  readonly known_speaker_names?: readonly string[]
  readonly known_speaker_references?: readonly string[]
}

/** A checked transcription request (OpenAI API, "Create transcription"). */
export interface TranscriptionRequest extends Omit<TranscriptionFields, 'response_format' | 'stream'> {
  readonly file: FormFile
  /** Always set. Default `json`. */
  readonly response_format: TranscriptionFormat
  /** Whether the answer is streamed. Also false for models that never stream. */
  readonly stream: boolean
  /** Facts from the first bytes of the file. */
  readonly audio: AudioHeader
  /** The original form, with names, order and unknown fields. */
  readonly form: Form
}

/** Maximum number of languages, keywords or `include` values. */
export const MAX_LIST = 1_000

const words = (most: number) => listOf(z.string()).max(most).optional()

/** The rules of the text fields that do not depend on the model. */
export const transcriptionSchema = onDemand(() =>
  z.looseObject({
    model: z.string().min(1),
    response_format: z.enum(['json', 'text', 'srt', 'vtt', 'verbose_json', 'diarized_json']).optional(),
    stream: z.boolean().optional().describe('models that cannot stream answer whole'),
    language: z.string().optional().describe('of the recording, as ISO 639-1'),
    languages: words(MAX_LIST),
    keywords: words(MAX_LIST),
    prompt: z.string().optional(),
    temperature: z.number().min(0).max(1).optional(),
    timestamp_granularities: listOf(z.enum(['word', 'segment']))
      .max(2)
      .optional()
      .describe('needs verbose_json'),
    include: words(MAX_LIST),
    chunking_strategy: z.union([z.string(), z.record(z.string(), z.string())]).optional(),
    known_speaker_names: words(4),
    known_speaker_references: words(4),
  }),
)

/** Rules of the fields and the file, for API documents. */
export const transcriptionFormSchema = onDemand(() =>
  transcriptionSchema().extend({
    file: z.string().meta({ format: 'binary', description: 'flac, mp3, mp4, mpeg, mpga, m4a, ogg, wav or webm' }),
  }),
)
