import type { ModelDefinition, TranscriptionAbilities } from '../model.ts'
import { GEMINI_CHAT_MODELS } from './gemini-models.ts'

/** A request with its bytes inline may have 20 MB, and base64 makes a third more of a file (Gemini API, "Audio understanding"). */
const MAX_RECORDING_BYTES = 14 * 1024 * 1024

/** What Gemini gives as transcripts. Its times are not reliable, so it gives text alone. */
export const GEMINI_TRANSCRIPTION: TranscriptionAbilities = {
  formats: ['json', 'text'],
  streams: false,
  refusedFields: ['include', 'known_speaker_names', 'known_speaker_references'],
  maxFileBytes: MAX_RECORDING_BYTES,
}

/** Chat models of Gemini, which also write down what they hear. In a file of its own, because a bundle of builders has no use for it. */
export const GEMINI_LISTENING_MODELS: readonly ModelDefinition[] = GEMINI_CHAT_MODELS.map((model) => ({
  ...model,
  kind: ['chat', 'transcription'],
  transcription: GEMINI_TRANSCRIPTION,
}))
