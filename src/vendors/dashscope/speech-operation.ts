import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { SpeechDecoder, SpeechTokens, TakeSamples } from '../../endpoints/speech/speech-decoder.ts'
import { unusedSpeechFields } from '../../endpoints/speech/speech-request.ts'
import { type ServerSentEvent, sseReader } from '../../wire/sse.ts'
import { soundStart } from '../../wire/wav-encoder.ts'
import { bearerHeaders } from '../shared/bearer-headers.ts'
import { invalidResponse } from '../shared/invalid-response.ts'
import type { ErrorReader } from '../shared/openai-error.ts'
import type { SpeechOperation, VendorFailure } from '../vendor.ts'

/**
 * Speech through DashScope's native API (Model Studio, Qwen-TTS), requested as events, which stream the audio. The audio is always
 * 24 kHz, so no format is sent. `language_type` keeps its default, which detects the language.
 */
export function speechOperation(path: string, errors: ErrorReader): SpeechOperation {
  return {
    sampleRate: 24_000,
    toWire: ({ request, model, apiKey }, { text, voice }) => {
      const { instructions } = request
      const isInstructed = instructions !== undefined && instructions !== null && instructions !== ''
      return {
        path,
        headers: [...bearerHeaders(apiKey, 'text/event-stream'), 'x-dashscope-sse', 'enable'],
        body: JSON.stringify({
          model: model.upstream,
          input: { text, voice, ...(isInstructed ? { instructions } : {}) },
        }),
        dropped: unusedSpeechFields(request),
      }
    },
    decoder: (_call, take) => new DashScopeSpeechDecoder({ take, streamFailure: errors.fromStream }),
  }
}

/** Maximum size of an event: enough for the longest text of one call. */
const MAX_SOUND_EVENT_BYTES = 16 * 1024 * 1024

/** Inputs of a decoder. */
interface SpeechDecoderOptions {
  readonly take: TakeSamples
  /** Reads an error object inside the stream. */
  readonly streamFailure: (envelope: Record<string, unknown>) => VendorFailure
}

/**
 * Reads the events of Qwen-TTS (Model Studio, Qwen-TTS API reference): base64 of 16-bit samples in `output.audio.data`, and
 * `finish_reason` in the last one, which is null or the string "null" before. A file header before the first samples is skipped.
 * Comment lines, ids and `status:` lines are ignored.
 */
class DashScopeSpeechDecoder implements SpeechDecoder {
  isComplete = false
  failure: VendorFailure | undefined
  tokens: SpeechTokens | undefined

  readonly #options: SpeechDecoderOptions
  readonly #events = sseReader((event) => this.#read(event), MAX_SOUND_EVENT_BYTES)
  #hasSound = false

  constructor(options: SpeechDecoderOptions) {
    this.#options = options
  }

  push(chunk: Uint8Array): void {
    this.#events.push(chunk)
  }

  end(): void {
    this.#events.end()
  }

  #read({ event, data }: ServerSentEvent): void {
    if (this.failure !== undefined || this.isComplete) return
    const body = parseVendorJson(data)
    if (event === 'error') {
      this.failure = this.#options.streamFailure(isJsonObject(body) ? body : {})
    } else if (isJsonObject(body)) {
      this.#readResult(body)
      if (event === 'done' && this.failure === undefined) this.isComplete = true
    } else if (event === 'done' || data === '[DONE]') {
      this.isComplete = true
    } else {
      this.failure = invalidResponse('The vendor sent an event that is not JSON.')
    }
  }

  #readResult(body: Record<string, unknown>): void {
    const { output } = body
    if (!isJsonObject(output)) {
      if (typeof body['code'] === 'string' && body['code'] !== '') this.failure = this.#options.streamFailure(body)
      return
    }
    const audio = output['audio']
    const data = isJsonObject(audio) ? audio['data'] : undefined
    if (typeof data === 'string' && data !== '') this.#readSound(Buffer.from(data, 'base64'))
    this.tokens = tokensOf(body['usage']) ?? this.tokens
    const reason = output['finish_reason']
    if (typeof reason === 'string' && reason !== '' && reason !== 'null') this.isComplete = true
  }

  #readSound(bytes: Buffer): void {
    const samples = this.#hasSound ? bytes : bytes.subarray(soundStart(bytes))
    this.#hasSound = true
    this.#options.take(samples)
  }
}

/** Some models report token counts in the usage. Newer ones count only characters. */
function tokensOf(usage: unknown): SpeechTokens | undefined {
  if (!isJsonObject(usage)) return undefined
  const inputTokens = usage['input_tokens']
  const outputTokens = usage['output_tokens']
  return isCount(inputTokens) && isCount(outputTokens) ? { inputTokens, outputTokens } : undefined
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
