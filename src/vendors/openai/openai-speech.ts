import type { ModelDefinition } from '../../catalog/model.ts'
import { OPENAI_VOICES } from '../../endpoints/speech/check-speech-abilities.ts'
import type { SpeechDecoder, TakeSamples } from '../../endpoints/speech/speech-decoder.ts'
import { unusedSpeechFields } from '../../endpoints/speech/speech-request.ts'
import { compressedFormat } from '../../wire/audio/audio-header.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import { bearerHeaders } from '../shared/bearer-headers.ts'
import { invalidResponse } from '../shared/invalid-response.ts'
import type { SpeechOperation, VendorFailure } from '../vendor.ts'

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

/** Bytes by which compressed sound is told from samples: two frames of an MP3. About 40 ms of speech. */
const SNIFFED_BYTES = 2_048

/**
 * Samples without a frame. Where they were cut, the transport tells, and `end` is never called. Servers that know no samples may send
 * an MP3, whatever their media type says: as samples it would be noise.
 */
class BareSamples implements SpeechDecoder {
  isComplete = false
  failure: VendorFailure | undefined
  readonly tokens = undefined
  readonly #take: TakeSamples
  /** Undefined once it is known what comes. */
  #first: Uint8Array[] | undefined = []
  #firstBytes = 0

  constructor(take: TakeSamples) {
    this.#take = take
  }

  push(chunk: Uint8Array): void {
    if (this.#first === undefined) {
      if (this.failure === undefined) this.#take(chunk)
      return
    }
    this.#first.push(chunk)
    this.#firstBytes += chunk.byteLength
    if (this.#firstBytes >= SNIFFED_BYTES) this.#begin()
  }

  end(): void {
    this.#begin()
    this.isComplete = this.failure === undefined
  }

  #begin(): void {
    if (this.#first === undefined) return
    const start = joinChunks(this.#first)
    this.#first = undefined
    const format = compressedFormat(start)
    if (format === undefined) this.#take(start)
    else this.failure = invalidResponse(`The vendor was asked for samples and sent ${format}.`)
  }
}
