import { loadMp3Encoder } from '../../wire/mp3-encoder.ts'
import { countCharacters } from '../character-count.ts'
import { defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { jsonSchemaOf } from '../json-schema.ts'
import { checkRequest } from '../request-field.ts'
import { requestTexts } from '../request-texts.ts'
import { checkSpeechAbilities, type SpeechOptions, speechFormat } from './check-speech-abilities.ts'
import { createSpeechOperation, type SpeechOffer } from './speech-operation.ts'
import { type SpeechFormat, type SpeechRequest, speechSchema } from './speech-request.ts'

const CONTENT_TYPES: Readonly<Record<SpeechFormat, string>> = {
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
}
const EVENT_STREAM = 'text/event-stream; charset=utf-8'

/** Text to speech (API specification, "Speech request"; OpenAI API, "Create speech"). The audio is streamed. */
export const speechEndpoint = defineEndpoint<SpeechRequest, SpeechOffer>({
  id: 'speech',
  path: '/v1/audio/speech',
  kind: 'speech',
  servesUnlisted: ({ speech }) => speech !== undefined,
  errors: openaiErrors,
  unknownModel: { status: 400, code: 'endpoint_model_mismatch' },
  isPaidJob: true,
  parse(body, model) {
    const options = checkRequest<Omit<SpeechRequest, 'response_format'> & SpeechOptions>(speechSchema(), body)
    checkSpeechAbilities(options, model)
    return { ...options, response_format: speechFormat(options.response_format, model) } as SpeechRequest
  },
  requestSchema: () => jsonSchemaOf(speechSchema(), 'input'),
  prepare: (request) => (request.response_format === 'mp3' ? loadMp3Encoder() : undefined),
  isStream: () => true,
  streamType: (request) => (request.stream_format === 'sse' ? EVENT_STREAM : CONTENT_TYPES[request.response_format]),
  estimate: (request) => ({ characters: countCharacters(request.input) }),
  texts: {
    request: (request) =>
      requestTexts(request, {
        kinds: { input: 'text', instructions: 'text' },
        last: ['instructions', 'input'],
        roleOf: (member) => (member === 'instructions' ? 'system' : 'user'),
      }),
  },
  createOperation: ({ speech }, call) => speech && createSpeechOperation(speech, call),
})
