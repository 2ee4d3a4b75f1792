import type { Upload } from '../upload.ts'

/** Formats of transcripts. */
export type TranscriptionFormat = 'json' | 'text' | 'srt' | 'vtt' | 'verbose_json' | 'diarized_json'

/** A transcription but for the model (OpenAI API, "Create transcription"). */
export interface TranscriptionFields<Format extends TranscriptionFormat = TranscriptionFormat> {
  /** The recording: flac, mp3, mp4, mpeg, mpga, m4a, ogg, wav or webm, at most 25 MiB. */
  readonly file: Upload
  /** Default `json`. */
  readonly response_format?: Format
  /** ISO 639-1, such as `en`. */
  readonly language?: string
  /** Text that comes before the recording, or words that it uses. */
  readonly prompt?: string
  /** 0 to 1. */
  readonly temperature?: number
}

/** Whisper: times of words and segments. */
export interface TimedTranscriptionFields
  extends TranscriptionFields<'json' | 'text' | 'srt' | 'vtt' | 'verbose_json'> {
  /** Needs `verbose_json`; default segments. */
  readonly timestamp_granularities?: readonly ('word' | 'segment')[]
}

/** A model that tells its speakers apart. */
export interface DiarizedTranscriptionFields
  extends Omit<TranscriptionFields<'json' | 'text' | 'diarized_json'>, 'prompt'> {
  /** `auto` for recordings above 30 seconds. */
  readonly chunking_strategy?: 'auto' | object
  /** At most four. */
  readonly known_speaker_names?: readonly string[]
  /** A `data:` URL of 2 to 10 seconds for each name. */
  readonly known_speaker_references?: readonly string[]
}

/** A row of {@link TranscriptionModels}. */
export interface TranscriptionModel<Request = TranscriptionFields> {
  readonly request: Request
}

type PlainFields = TranscriptionFields<'json' | 'text'>

/** Models for transcription with narrowed requests, under their ids. Add your own by `declare module 'signalbox/client'`. */
export interface TranscriptionModels {
  'gpt-transcribe': TranscriptionModel<
    PlainFields & { readonly languages?: readonly string[]; readonly keywords?: readonly string[] }
  >
  'gpt-4o-transcribe': TranscriptionModel<PlainFields & { readonly include?: readonly 'logprobs'[] }>
  'gpt-4o-mini-transcribe': TranscriptionModels['gpt-4o-transcribe']
  'gpt-4o-transcribe-diarize': TranscriptionModel<DiarizedTranscriptionFields>
  'whisper-1': TranscriptionModel<TimedTranscriptionFields>
  'qwen3-asr-flash': TranscriptionModel<Omit<PlainFields, 'temperature'>>
  'gmn-2.5-pro': TranscriptionModel<PlainFields>
  'gmn-2.5-flash': TranscriptionModel<PlainFields>
}

/** A request to a model outside {@link TranscriptionModels}. */
export type OtherTranscriptionRequest = TranscriptionFields & { readonly [field: string]: unknown }

/** What a call used: tokens, or seconds of the recording. */
export type TranscriptionUsage =
  | {
      readonly type: 'tokens'
      readonly input_tokens: number
      readonly output_tokens: number
      readonly total_tokens: number
      readonly input_token_details?: { readonly audio_tokens?: number; readonly text_tokens?: number }
    }
  | { readonly type: 'duration'; readonly seconds: number }

/** An answer in the format `json`. */
export interface TranscriptionAnswer {
  readonly text: string
  readonly languages?: readonly { readonly code: string }[]
  readonly usage?: TranscriptionUsage
}

/** An answer with times (`verbose_json`) or speakers (`diarized_json`). */
export interface TimedTranscriptionAnswer extends TranscriptionAnswer {
  /** Seconds. */
  readonly duration: number
  /** As an English word: `english`. */
  readonly language?: string
  readonly segments?: readonly {
    readonly id: number | string
    /** Seconds from the beginning. */
    readonly start: number
    readonly end: number
    readonly text: string
    /** With speakers only. */
    readonly speaker?: string
  }[]
  readonly words?: readonly { readonly word: string; readonly start: number; readonly end: number }[]
}

/** The answer in a format: text for `text`, `srt` and `vtt`. */
export type TranscriptionAnswerOf<Format> = Format extends 'text' | 'srt' | 'vtt'
  ? string
  : Format extends 'verbose_json' | 'diarized_json'
    ? TimedTranscriptionAnswer
    : TranscriptionAnswer
