import { mp3Encoder } from '../../wire/mp3-encoder.ts'
import { WavEncoder } from '../../wire/wav-encoder.ts'
import { invalidField } from '../field-errors.ts'
import type { Operation, VendorCall, WireRequest } from '../operation.ts'
import { checkSpeechAbilities, speechVoice } from './check-speech-abilities.ts'
import type { SoundEncoder, SpeechDecoder, SpeechPart, TakeSamples } from './speech-decoder.ts'
import { EVENT_ENVELOPE, PLAIN_ENVELOPE } from './speech-envelope.ts'
import { GATEWAY_FORMATS, isGatewayFormat, type SpeechFormat, type SpeechRequest } from './speech-request.ts'
import { SpeechStream } from './speech-stream.ts'
import { splitSpeechText } from './split-speech-text.ts'

/** Speech at one vendor, which is always streamed. All functions are pure. */
export interface SpeechOperation {
  /** Samples per second of decoded audio. */
  readonly sampleRate: number
  /**
   * Voice for requests without one or with an OpenAI voice, unless this is such a voice itself. Defaults to that of the API
   * specification.
   */
  readonly usualVoice?: string
  /**
   * Formats in which the vendor sends a complete file, which is passed on unchanged. The gateway encodes mp3, wav and pcm from
   * samples of every vendor. If omitted, the vendor sends only samples.
   */
  readonly files?: readonly SpeechFormat[]
  /** Whether the decoder reads an answer of this media type. Defaults to server-sent events. */
  takes?(mediaType: string): boolean
  /** Writes the call that speaks one part of the text. */
  toWire(call: VendorCall<SpeechRequest>, part: SpeechPart): WireRequest
  /** Reads the streamed 2xx answer for one part and passes on its samples, or the bytes of its file, while they arrive. */
  decoder(call: VendorCall<SpeechRequest>, take: TakeSamples): SpeechDecoder
}

/** Part of a vendor that handles speech. */
export interface SpeechOffer {
  readonly speech?: SpeechOperation
}

/**
 * Creates the speech operation of a vendor. A text above the vendor's limit is split and spoken part by part into one file, which
 * the gateway encodes from samples. Files of the vendor cannot be joined, so their text must fit into one call.
 * @throws GatewayError naming the field for a fallback that does not support the request.
 */
export function createSpeechOperation(operation: SpeechOperation, call: VendorCall<SpeechRequest>): Operation {
  const { request, model } = call
  checkSpeechAbilities(request, model)
  const voice = speechVoice(request.voice, model.speech, operation.usualVoice)
  const parts = splitSpeechText(request.input, model.speech?.maxCharacters)
  const format = request.response_format
  const isVendorFile = !isGatewayFormat(format)
  if (isVendorFile && operation.files?.includes(format) !== true)
    throw invalidField(
      'response_format',
      `the vendor of this model offers ${[...GATEWAY_FORMATS, ...(operation.files ?? [])].join(', ')}`,
    )
  if (isVendorFile && parts.length > 1)
    throw invalidField(
      'response_format',
      `${format} needs an input of at most ${model.speech?.maxCharacters} characters; use ${GATEWAY_FORMATS.join(', ')} for longer text`,
    )
  return {
    requests: parts.map((text) => operation.toWire(call, { text, voice })),
    whole() {
      throw new TypeError('speech is always streamed')
    },
    stream: () =>
      new SpeechStream({
        text: request.input,
        parts,
        decoder: (take) => operation.decoder(call, take),
        encoder: encoderFor(format, operation.sampleRate),
        isVendorFile,
        isCpuBound: format === 'mp3',
        takes: operation.takes,
        envelope: request.stream_format === 'sse' ? EVENT_ENVELOPE : PLAIN_ENVELOPE,
      }),
  }
}

function encoderFor(format: SpeechFormat, sampleRate: number): SoundEncoder | Promise<SoundEncoder> {
  if (format === 'mp3') return mp3Encoder(sampleRate)
  return format === 'wav' ? new WavEncoder(sampleRate) : UNCHANGED
}

/** Passes bytes on: raw samples, or a file of the vendor. */
const UNCHANGED: SoundEncoder = { encode: (bytes) => [bytes], finish: () => [] }
