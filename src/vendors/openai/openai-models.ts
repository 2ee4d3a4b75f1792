import type { ModelDefinition, TranscriptionAbilities } from '../../catalog/model.ts'
import { TEXT_ABILITIES, WHISPER_ABILITIES } from '../shared/openai-transcriptions.ts'

const OMNI_CREATED = Date.UTC(2024, 8, 26) / 1000

/** Models that moderate text and images (OpenAI, "Moderation"). */
export const OPENAI_MODERATION_MODELS: readonly ModelDefinition[] = [
  moderationModel('omni-moderation-latest', 'Omni Moderation'),
  moderationModel('omni-moderation-2024-09-26', 'Omni Moderation (2024-09-26)'),
]

function moderationModel(id: string, displayName: string): ModelDefinition {
  return { id, kind: 'moderation', vendor: 'openai', aliases: [`openai/${id}`], created: OMNI_CREATED, displayName }
}

const SPEAKERS = ['known_speaker_names', 'known_speaker_references'] as const
const LISTS = ['languages', 'keywords'] as const

const GPT_4O: TranscriptionAbilities = { ...TEXT_ABILITIES, refusedFields: [...LISTS, ...SPEAKERS] }

/** Models for transcription (OpenAI API, "Create transcription"). All except `gpt-transcribe` end on 2027-02-26. */
export const OPENAI_TRANSCRIPTION_MODELS: readonly ModelDefinition[] = [
  transcriptionModel('gpt-transcribe', 'GPT Transcribe', { ...TEXT_ABILITIES, refusedFields: SPEAKERS }),
  transcriptionModel('gpt-4o-transcribe', 'GPT-4o Transcribe', GPT_4O, Date.UTC(2025, 2, 20)),
  transcriptionModel('gpt-4o-mini-transcribe', 'GPT-4o mini Transcribe', GPT_4O, Date.UTC(2025, 2, 20)),
  transcriptionModel('gpt-4o-transcribe-diarize', 'GPT-4o Transcribe Diarize', {
    formats: ['json', 'text', 'diarized_json'],
    streams: true,
    refusedFields: ['prompt', 'include', ...LISTS],
  }),
  transcriptionModel('whisper-1', 'Whisper', WHISPER_ABILITIES, Date.UTC(2023, 2, 1)),
]

function transcriptionModel(
  id: string,
  displayName: string,
  transcription: TranscriptionAbilities,
  createdMs = 0,
): ModelDefinition {
  return {
    id,
    kind: 'transcription',
    vendor: 'openai',
    aliases: [`openai/${id}`],
    transcription,
    created: createdMs / 1000,
    displayName,
  }
}
