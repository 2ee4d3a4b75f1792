import type { ModelDefinition } from '../../catalog/model.ts'
import { OPENAI_VOICES } from '../../endpoints/speech/check-speech-abilities.ts'
import type { SpeechDecoder, TakeSamples } from '../../endpoints/speech/speech-decoder.ts'
import { unusedSpeechFields } from '../../endpoints/speech/speech-request.ts'
import { bearerHeaders } from '../shared/bearer-headers.ts'
import type { SpeechOperation } from '../vendor.ts'

/** Longest text of one call (OpenAI API, "Create speech", `input`). */
const MAX_CHARACTERS = 4096

/** Models for speech (OpenAI, "Text to speech"). */
export const OPENAI_SPEECH_MODELS: readonly ModelDefinition[] = [
  speechModel('tts-1', 'TTS-1', Date.UTC(2023, 10, 6)),
  speechModel('tts-1-hd', 'TTS-1 HD', Date.UTC(2023, 10, 6)),
  speechModel('gpt-4o-mini-tts', 'GPT-4o mini TTS', Date.UTC(2025, 2, 20)),
]

function speechModel(id: string, displayName: string, createdMs: number): ModelDefinition {
  return {
    id,
    kind: 'speech',
    vendor: 'openai',
    aliases: [`openai/${id}`],
    speech: {
      voices: [...OPENAI_VOICES],
      formats: ['mp3', 'wav'],
      takesInstructions: !id.startsWith('tts-1'),
      maxCharacters: MAX_CHARACTERS,
    },
    created: createdMs / 1000,
    displayName,
  }
}

/**
 * Speech at OpenAI (OpenAI API, "Create speech"). It is asked for as bare samples, 24 kHz and 16 bits, which the gateway puts into
 * the caller's format, so that texts in several parts become one file.
 */
export function openaiSpeech(path: string): SpeechOperation {
  return {
    sampleRate: 24_000,
    usualVoice: OPENAI_VOICES[0],
    takes: (mediaType) => mediaType.startsWith('audio/') || mediaType === 'application/octet-stream',
    toWire: ({ request, model, apiKey }, { text, voice }) => {
      const { instructions, speed } = request
      return {
        path,
        headers: bearerHeaders(apiKey, '*/*'),
        body: JSON.stringify({
          model: model.upstream,
          input: text,
          voice,
          response_format: 'pcm',
          ...(typeof instructions === 'string' && instructions !== '' ? { instructions } : {}),
          ...(typeof speed === 'number' ? { speed } : {}),
        }),
        dropped: unusedSpeechFields(request).filter((field) => field !== 'speed'),
      }
    },
    decoder: (_call, take) => new BareSamples(take),
  }
}

/** Samples without a frame. Where they were cut, the transport tells, and `end` is never called. */
class BareSamples implements SpeechDecoder {
  isComplete = false
  readonly failure = undefined
  readonly tokens = undefined
  readonly push: TakeSamples

  constructor(take: TakeSamples) {
    this.push = take
  }

  end(): void {
    this.isComplete = true
  }
}
