import type { SPEECH_FORMATS } from '../../catalog/model-facts.ts'
import type { BASIC_VOICES, SHARED_VOICES } from '../../catalog/models/dashscope-models.ts'
import type { OPENAI_VOICES } from '../../endpoints/speech/check-speech-abilities.ts'

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
