import { mp3Encoder } from '../../wire/mp3-encoder.ts'
import { WavEncoder } from '../../wire/wav-encoder.ts'
import type { Operation, VendorCall, WireRequest } from '../operation.ts'
import { checkSpeechAbilities, speechVoice } from './check-speech-abilities.ts'
import type { SoundEncoder, SpeechDecoder, SpeechPart, TakeSamples } from './speech-decoder.ts'
import { EVENT_ENVELOPE, PLAIN_ENVELOPE } from './speech-envelope.ts'
import type { SpeechFormat, SpeechRequest } from './speech-request.ts'
import { SpeechStream } from './speech-stream.ts'
import { splitSpeechText } from './split-speech-text.ts'

/** Speech at one vendor, which is always streamed. All functions are pure. */
export interface SpeechOperation {
  /** Samples per second of decoded sound. */
  readonly sampleRate: number
  /**
   * The voice of a request without one, and of one that names a voice of OpenAI's, unless this is such a voice. Absent: that of the API
   * specification.
   */
  readonly usualVoice?: string
  /** Is an answer of this media type one that the decoder reads? Absent: server-sent events are. */
  takes?(mediaType: string): boolean
  /** Writes the call that speaks one part of the text. */
  toWire(call: VendorCall<SpeechRequest>, part: SpeechPart): WireRequest
  /** Reads the streamed 2xx answer to one part, and passes its samples on while they arrive. */
  decoder(call: VendorCall<SpeechRequest>, take: TakeSamples): SpeechDecoder
}

/** What of a vendor carries out speech. */
export interface SpeechOffer {
  readonly speech?: SpeechOperation
}

/**
 * Speech at a vendor. A text above the vendor's limit is spoken part by part, one after another, into one file. The gateway
 * makes the file from the vendor's samples.
 * @throws GatewayError naming the field for a fallback that does not support the request.
 */
export function createSpeechOperation(operation: SpeechOperation, call: VendorCall<SpeechRequest>): Operation {
  const { request, model } = call
  checkSpeechAbilities(request, model)
  const voice = speechVoice(request.voice, model.speech, operation.usualVoice)
  const parts = splitSpeechText(request.input, model.speech?.maxCharacters)
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
        encoder: encoderFor(request.response_format, operation.sampleRate),
        isCpuBound: request.response_format === 'mp3',
        takes: operation.takes,
        envelope: request.stream_format === 'sse' ? EVENT_ENVELOPE : PLAIN_ENVELOPE,
      }),
  }
}

function encoderFor(format: SpeechFormat, sampleRate: number): SoundEncoder | Promise<SoundEncoder> {
  return format === 'mp3' ? mp3Encoder(sampleRate) : new WavEncoder(sampleRate)
}
