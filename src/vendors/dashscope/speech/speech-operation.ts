import { unusedSpeechFields } from '../../../endpoints/speech/speech-request.ts'
import { bearerHeaders } from '../../shared/bearer-headers.ts'
import type { ErrorReader } from '../../shared/openai-error.ts'
import type { SpeechOperation } from '../../vendor.ts'
import { DashScopeSpeechDecoder } from './dashscope-speech-decoder.ts'

/**
 * Speech by DashScope's native API (Model Studio, Qwen-TTS). It is asked for in events, which carry the sound while it is
 * made; what is made is always 24 kHz, so there is nothing to say about the format. `language_type` stays at its default,
 * which finds the language out.
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
