import type { SPEECH_FORMATS } from '../../catalog/model-facts.ts'
import type { BASIC_VOICES, SHARED_VOICES } from '../../catalog/models/dashscope-models.ts'
import type { OPENAI_VOICES } from '../../endpoints/speech/check-speech-abilities.ts'
import type { Upload } from '../upload.ts'

/** Voices that every speech model has. */
type SharedVoice = (typeof SHARED_VOICES)[number]

/** Voices that only the basic model has. */
type BasicVoice = (typeof BASIC_VOICES)[number]

/** OpenAI's voices, which the gateway maps to the default voice (API specification, "Speech request"). */
type StandInVoice = (typeof OPENAI_VOICES)[number]

/** Formats of OpenAI's speech models. */
type OpenAIFormat = (typeof SPEECH_FORMATS)[number]

/** Speech request without the model (API specification, "Speech request"). */
export interface SpeechFields<Voice extends string = string, Format extends string = string> {
  /** Text to speak. It is billed by its characters. */
  readonly input: string
  /** Voice. Default `Cherry`. */
  readonly voice?: Voice
  /** Format of the audio. Defaults to the first format of the model. */
  readonly response_format?: Format
  /** Speed from 0.25 to 4 for models of OpenAI. Other models accept it for compatibility and ignore it. */
  readonly speed?: number
}

/** Speech request to a model that supports instructions. */
export interface InstructedSpeechFields<Voice extends string = string, Format extends string = string>
  extends SpeechFields<Voice, Format> {
  /** Tone, tempo and emotion, in natural language. */
  readonly instructions?: string
}

/** A row of {@link SpeechModels}. */
export interface SpeechModel<Request = InstructedSpeechFields> {
  readonly request: Request
}

/** Speech models that need no row in the gateway, under the vendor's own ids. */
export interface ListedSpeechModels {
  'tts-1': SpeechModel<SpeechFields<StandInVoice, OpenAIFormat>>
  'tts-1-hd': SpeechModel<SpeechFields<StandInVoice, OpenAIFormat>>
  'gpt-4o-mini-tts': SpeechModel<InstructedSpeechFields<StandInVoice, OpenAIFormat>>
}

/** Speech models with narrowed requests, under their ids and aliases. Add your own by `declare module 'signalbox/client'`. */
export interface SpeechModels extends ListedSpeechModels {
  'qw3-tts-flash': SpeechModel<SpeechFields<SharedVoice | BasicVoice | StandInVoice, 'mp3' | 'wav' | 'pcm'>>
  'qw3-tts-instruct-flash': SpeechModel<InstructedSpeechFields<SharedVoice | StandInVoice, 'wav' | 'pcm'>>
  'qwen3-tts-flash': SpeechModels['qw3-tts-flash']
  'qwen3-tts-instruct-flash': SpeechModels['qw3-tts-instruct-flash']
}

/** A request to a speech model outside {@link SpeechModels}. */
export type OtherSpeechRequest = InstructedSpeechFields & { readonly [field: string]: unknown }

/** Formats of transcripts. */
export type TranscriptionFormat = 'json' | 'text' | 'srt' | 'vtt' | 'verbose_json' | 'diarized_json'

/** Transcription request without the model (OpenAI API, "Create transcription"). */
export interface TranscriptionFields<Format extends TranscriptionFormat = TranscriptionFormat> {
  /** Recording: flac, mp3, mp4, mpeg, mpga, m4a, ogg, wav or webm, at most 25 MiB. */
  readonly file: Upload
  /** Format of the transcript. Default `json`. */
  readonly response_format?: Format
  /** Language in ISO 639-1, such as `en`. */
  readonly language?: string
  /** Text before the recording, or words that it uses. */
  readonly prompt?: string
  /** Sampling temperature, from 0 to 1. */
  readonly temperature?: number
}

/** Request to Whisper, with times of words and segments. */
export interface TimedTranscriptionFields
  extends TranscriptionFields<'json' | 'text' | 'srt' | 'vtt' | 'verbose_json'> {
  /** Requires `verbose_json`. Default segments. */
  readonly timestamp_granularities?: readonly ('word' | 'segment')[]
}

/** Request to a model that distinguishes speakers. */
export interface DiarizedTranscriptionFields
  extends Omit<TranscriptionFields<'json' | 'text' | 'diarized_json'>, 'prompt'> {
  /** Must be `auto` for recordings above 30 seconds. */
  readonly chunking_strategy?: 'auto' | object
  /** Up to four names. */
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

/** Request to a model outside of {@link TranscriptionModels}. */
export type OtherTranscriptionRequest = TranscriptionFields & { readonly [field: string]: unknown }

/** Usage of a call: tokens, or seconds of the recording. */
export type TranscriptionUsage =
  | {
      readonly type: 'tokens'
      readonly input_tokens: number
      readonly output_tokens: number
      readonly total_tokens: number
      readonly input_token_details?: { readonly audio_tokens?: number; readonly text_tokens?: number }
    }
  | { readonly type: 'duration'; readonly seconds: number }

/** Answer in the format `json`. */
export interface TranscriptionAnswer {
  readonly text: string
  readonly languages?: readonly { readonly code: string }[]
  readonly usage?: TranscriptionUsage
}

/** Answer with times (`verbose_json`) or speakers (`diarized_json`). */
export interface TimedTranscriptionAnswer extends TranscriptionAnswer {
  /** Duration in seconds. */
  readonly duration: number
  /** Language as an English word: `english`. */
  readonly language?: string
  readonly segments?: readonly {
    readonly id: number | string
    /** Seconds from the beginning. */
    readonly start: number
    readonly end: number
    readonly text: string
    /** Speaker, in answers with speakers. */
    readonly speaker?: string
  }[]
  readonly words?: readonly { readonly word: string; readonly start: number; readonly end: number }[]
}

/** Answer in a format: a string for `text`, `srt` and `vtt`. */
export type TranscriptionAnswerOf<Format> = Format extends 'text' | 'srt' | 'vtt'
  ? string
  : Format extends 'verbose_json' | 'diarized_json'
    ? TimedTranscriptionAnswer
    : TranscriptionAnswer
