import { loadMp3Encoder } from '../../wire/mp3-encoder.ts'
import { sseData } from '../../wire/sse.ts'
import { countCharacters } from '../character-count.ts'
import type { Endpoint } from '../endpoint.ts'
import { openaiErrorObject } from '../error-body.ts'
import { checkRequest } from '../request-field.ts'
import { checkSpeechAbilities, type SpeechOptions as SpeechWishes, speechFormat } from './check-speech-abilities.ts'
import { type SpeechFormat, type SpeechRequest, speechSchema } from './speech-request.ts'

const CONTENT_TYPES: Readonly<Record<SpeechFormat, string>> = { mp3: 'audio/mpeg', wav: 'audio/wav' }
const EVENT_STREAM = 'text/event-stream; charset=utf-8'

/** Text to speech (API specification, "Speech request"; OpenAI API, "Create speech"). The sound is sent while it is made. */
export const speechEndpoint: Endpoint<SpeechRequest> = {
  id: 'speech',
  path: '/v1/audio/speech',
  kind: 'speech',
  dialect: 'openai',
  unknownModel: { status: 400, code: 'endpoint_model_mismatch' },
  isPaidJob: true,
  parse(body, model) {
    const wishes = checkRequest<Omit<SpeechRequest, 'response_format'> & SpeechWishes>(speechSchema, body)
    checkSpeechAbilities(wishes, model)
    return { ...wishes, response_format: speechFormat(wishes.response_format, model) } as SpeechRequest
  },
  prepare: (request) => (request.response_format === 'mp3' ? loadMp3Encoder() : undefined),
  isStream: () => true,
  streamType: (request) => (request.stream_format === 'sse' ? EVENT_STREAM : CONTENT_TYPES[request.response_format]),
  estimate: (request) => ({ characters: countCharacters(request.input) }),
  billingFields: () => ({}),
  streamError: (error) => sseData(JSON.stringify(openaiErrorObject(error))),
}
