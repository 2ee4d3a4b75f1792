import type { ModelDefinition, TranscriptionAbilities } from '../model.ts'
import { GEMINI_CHAT_MODELS } from './gemini-models.ts'

/** A request with inline bytes is limited to 20 MB, and base64 makes a file a third larger (Gemini API, "Audio understanding"). */
const MAX_RECORDING_BYTES = 14 * 1024 * 1024

/** Transcription abilities of Gemini. Its timestamps are unreliable, so it supports only text. */
export const GEMINI_TRANSCRIPTION: TranscriptionAbilities = {
  formats: ['json', 'text'],
  streams: false,
  refusedFields: ['include', 'known_speaker_names', 'known_speaker_references'],
  maxFileBytes: MAX_RECORDING_BYTES,
}

/** Chat models of Gemini, which also transcribe. In a separate file, because a bundle of builders does not need it. */
export const GEMINI_LISTENING_MODELS: readonly ModelDefinition[] = GEMINI_CHAT_MODELS.map((model) => ({
  ...model,
  kind: ['chat', 'transcription'],
  transcription: GEMINI_TRANSCRIPTION,
}))
