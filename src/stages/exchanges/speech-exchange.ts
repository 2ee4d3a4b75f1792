import { GatewayError } from '../../core/errors.ts'
import { checkSpeechAbilities, speechVoice } from '../../endpoints/speech/check-speech-abilities.ts'
import type { SoundEncoder } from '../../endpoints/speech/speech-decoder.ts'
import { EVENT_ENVELOPE, PLAIN_ENVELOPE } from '../../endpoints/speech/speech-envelope.ts'
import type { SpeechFormat, SpeechRequest } from '../../endpoints/speech/speech-request.ts'
import { SpeechStream } from '../../endpoints/speech/speech-stream.ts'
import { splitSpeechText } from '../../endpoints/speech/split-speech-text.ts'
import type { Vendor, VendorCall } from '../../vendors/vendor.ts'
import { mp3Encoder } from '../../wire/mp3-encoder.ts'
import { WavEncoder } from '../../wire/wav-encoder.ts'
import type { VendorExchange } from './vendor-exchange.ts'

/**
 * Speech at a vendor. A text above the vendor's limit is spoken part by part, one after another, into one file; the file is
 * made here of the vendor's samples.
 * @throws GatewayError naming the field for a fallback that has not what the request asks for.
 */
export function speechExchange(vendor: Vendor, call: VendorCall<SpeechRequest>): VendorExchange | undefined {
  const operation = vendor.speech
  if (operation === undefined) return undefined
  const { request, model } = call
  checkSpeechAbilities(request, model)
  const voice = speechVoice(request.voice, model.speech)
  const parts = splitSpeechText(request.input, model.speech?.maxCharacters)
  return {
    requests: parts.map((text) => operation.toWire(call, { text, voice })),
    whole() {
      throw new GatewayError('internal_error', { cause: new Error('speech is always streamed') })
    },
    stream: () =>
      new SpeechStream({
        text: request.input,
        parts: parts.length,
        decoder: (take) => operation.decoder(call, take),
        encoder: encoderFor(request.response_format, operation.sampleRate),
        isLaborious: request.response_format === 'mp3',
        envelope: request.stream_format === 'sse' ? EVENT_ENVELOPE : PLAIN_ENVELOPE,
      }),
  }
}

function encoderFor(format: SpeechFormat, sampleRate: number): SoundEncoder | Promise<SoundEncoder> {
  return format === 'mp3' ? mp3Encoder(sampleRate) : new WavEncoder(sampleRate)
}
