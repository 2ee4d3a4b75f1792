import type { ModelDefinition } from '../define-model.ts'

/** Voices of both models (Model Studio, speech synthesis). The first is the specification's default. */
const SHARED_VOICES = [
  ...['Cherry', 'Ethan', 'Serena', 'Chelsie', 'Momo', 'Vivian', 'Moon', 'Maia', 'Kai', 'Nofish', 'Bella'],
  ...['Eldric Sage', 'Mia', 'Mochi', 'Bellona', 'Vincent', 'Bunny', 'Neil', 'Elias', 'Arthur', 'Nini', 'Seren', 'Pip'],
  'Stella',
]

/** The voices of dialects and languages, and others, that only the basic model has. */
const BASIC_VOICES = [
  ...['Jennifer', 'Ryan', 'Katerina', 'Aiden', 'Dylan', 'Jada', 'Sunny', 'Li', 'Marcus', 'Roy', 'Peter', 'Eric'],
  ...['Rocky', 'Kiki', 'Ebona', 'Bodega', 'Sonrisa', 'Alek', 'Dolce', 'Sohee', 'Ono Anna', 'Lenn', 'Emilien', 'Andre'],
  'Radio Gol',
]

/** Most characters of one call (Model Studio, speech synthesis). */
const MAX_CHARACTERS = 600

/**
 * Speech models. Where sources disagree about a voice it is listed: the vendor refuses what it lacks, and its words reach the
 * caller. (API specification, "Speech request".)
 */
export const SPEECH_MODELS: readonly ModelDefinition[] = [
  {
    id: 'qw3-tts-flash',
    kind: 'speech',
    vendor: 'dashscope',
    upstream: 'qwen3-tts-flash',
    protocol: 'multimodal',
    speech: {
      voices: [...SHARED_VOICES, ...BASIC_VOICES],
      formats: ['mp3', 'wav'],
      takesInstructions: false,
      maxCharacters: MAX_CHARACTERS,
    },
    aliases: ['qwen3-tts-flash'],
    displayName: 'Qwen3 TTS Flash',
  },
  {
    id: 'qw3-tts-instruct-flash',
    kind: 'speech',
    vendor: 'dashscope',
    upstream: 'qwen3-tts-instruct-flash',
    protocol: 'multimodal',
    speech: { voices: SHARED_VOICES, formats: ['wav'], takesInstructions: true, maxCharacters: MAX_CHARACTERS },
    aliases: ['qwen3-tts-instruct-flash'],
    displayName: 'Qwen3 TTS Instruct Flash',
  },
]
