import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../../core/json.ts'
import type { SpeechDecoder, SpeechTokens, TakeSamples } from '../../../endpoints/speech/speech-decoder.ts'
import { type ServerSentEvent, sseReader } from '../../../wire/sse.ts'
import { soundStart } from '../../../wire/wav-header.ts'
import type { VendorFailure } from '../../vendor.ts'

/** Largest event: more than the longest text of one call takes in a single one. */
const MAX_SOUND_EVENT_BYTES = 16 * 1024 * 1024

/** What a decoder works with. */
export interface SpeechDecoderOptions {
  readonly take: TakeSamples
  /** Reads an error object that came inside the stream. */
  readonly streamFailure: (envelope: Record<string, unknown>) => VendorFailure
}

/**
 * Reads the events of Qwen-TTS (Model Studio, Qwen-TTS API reference): base64 of 16-bit samples in `output.audio.data`, and
 * `finish_reason` in the last one, which is null or the text "null" before. A file header in front of the first samples is
 * passed over. Comment lines, ids and `status:` lines mean nothing here.
 */
export class DashScopeSpeechDecoder implements SpeechDecoder {
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
      const message = 'The vendor sent an event that is not JSON.'
      this.failure = { kind: 'invalid_response', status: 0, message }
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

/** Token counts stand in the usage of some models of the family; the newer ones count characters only. */
function tokensOf(usage: unknown): SpeechTokens | undefined {
  if (!isJsonObject(usage)) return undefined
  const inputTokens = usage['input_tokens']
  const outputTokens = usage['output_tokens']
  return isCount(inputTokens) && isCount(outputTokens) ? { inputTokens, outputTokens } : undefined
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
