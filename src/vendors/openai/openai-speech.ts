import type { Buffer } from 'node:buffer'
import type { ModelDefinition } from '../../catalog/model.ts'
import { SPEECH_FORMATS } from '../../catalog/model-facts.ts'
import { OPENAI_VOICES } from '../../endpoints/speech/check-speech-abilities.ts'
import type { SpeechDecoder, TakeSamples } from '../../endpoints/speech/speech-endpoint.ts'
import { isGatewayFormat, type SpeechFormat, unusedSpeechFields } from '../../endpoints/speech/speech-request.ts'
import { compressedFormat } from '../../wire/audio/audio-header.ts'
import { joinChunks } from '../../wire/chunks.ts'
import { invalidResponse } from '../shared/invalid-response.ts'
import { bearerHeaders } from '../shared/vendor-options.ts'
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
      formats: [...SPEECH_FORMATS],
      takesInstructions: !id.startsWith('tts-1'),
      maxCharacters: MAX_CHARACTERS,
    },
    created: createdMs / 1000,
    displayName,
  }
}

/**
 * Speech at OpenAI (OpenAI API, "Create speech"). MP3, WAV and PCM are requested as raw 16-bit samples at 24 kHz, so that text in
 * several parts becomes one file. Opus, AAC and FLAC are the vendor's files, which pass through.
 */
export function openaiSpeech(path: string): SpeechOperation {
  return {
    sampleRate: 24_000,
    files: ['opus', 'aac', 'flac'],
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
          response_format: isGatewayFormat(request.response_format) ? 'pcm' : request.response_format,
          ...(typeof instructions === 'string' && instructions !== '' ? { instructions } : {}),
          ...(typeof speed === 'number' ? { speed } : {}),
        }),
        dropped: unusedSpeechFields(request).filter((field) => field !== 'speed'),
      }
    },
    decoder: ({ request }, take) => new SpeechBytes(take, request.response_format),
  }
}

/** Checks of the first bytes of a file, by its format. The mark of an AAC frame (ADTS) begins like that of an MP3. */
const FILE_MARKS: Readonly<Partial<Record<SpeechFormat, (start: Buffer) => boolean>>> = {
  opus: (start) => compressedFormat(start) === 'ogg',
  flac: (start) => compressedFormat(start) === 'flac',
  // 12 bits of sync, and a layer of 0, which no MP3 has (ISO/IEC 13818-7, ADTS header).
  aac: (start) => start.length >= 2 && start.readUInt8(0) === 0xff && (start.readUInt8(1) & 0xf6) === 0xf0,
}

/** Bytes that distinguish compressed audio from samples: two frames of an MP3. About 40 ms of speech. */
const SNIFFED_BYTES = 2_048

/**
 * Reads samples without a container, or a file. If they were cut, the transport reports it, and `end` is never called. Some servers
 * ignore the requested format and send another one, such as an MP3, whatever their media type says. As samples, it would be noise.
 */
class SpeechBytes implements SpeechDecoder {
  isComplete = false
  failure: VendorFailure | undefined
  readonly tokens = undefined
  readonly #take: TakeSamples
  readonly #format: SpeechFormat
  /** Undefined once the format is known. */
  #first: Uint8Array[] | undefined = []
  #firstBytes = 0

  constructor(take: TakeSamples, format: SpeechFormat) {
    this.#take = take
    this.#format = format
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
    const isExpected = FILE_MARKS[this.#format]?.(start) ?? format === undefined
    if (isExpected) this.#take(start)
    else {
      const requested = FILE_MARKS[this.#format] === undefined ? 'samples' : this.#format
      this.failure = invalidResponse(
        `The gateway requested ${requested} and the vendor sent ${format ?? 'something else'}.`,
      )
    }
  }
}
