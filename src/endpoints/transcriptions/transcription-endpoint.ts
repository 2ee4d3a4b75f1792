import { Buffer } from 'node:buffer'
import type { ModelFacts } from '../../catalog/model-facts.ts'
import { GatewayError } from '../../core/errors.ts'
import type { Usage } from '../../core/usage.ts'
import { audioHeader } from '../../wire/audio/audio-header.ts'
import { ChunkedBytes } from '../../wire/audio/byte-source.ts'
import { defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { invalidField } from '../field-errors.ts'
import { jsonSchemaOf } from '../json-schema.ts'
import { checkRequest } from '../request-field.ts'
import { audioLength } from './audio-length.ts'
import { cachedTranscriptions } from './cached-transcriptions.ts'
import { checkTranscriptionAbilities } from './check-transcription-abilities.ts'
import { transcriptType } from './render-transcript.ts'
import { TranscriptionForm } from './transcription-form.ts'
import { createTranscriptionOperation, type TranscriptionOffer } from './transcription-operation.ts'
import {
  MAX_LIST,
  type TranscriptionFields,
  type TranscriptionRequest,
  transcriptionFormSchema,
  transcriptionSchema,
} from './transcription-request.ts'
import { transcriptionTexts } from './transcription-texts.ts'

/** Each keyword is a field, and there may be {@link MAX_LIST} of them. */
const FORM_LIMITS = { fields: MAX_LIST + 100, parts: MAX_LIST + 200 }

/** Sound to text (OpenAI API, "Create transcription"), as a form. */
export const transcriptionEndpoint = defineEndpoint<TranscriptionRequest, TranscriptionOffer>({
  id: 'transcriptions',
  path: '/v1/audio/transcriptions',
  kind: 'transcription',
  servesUnlisted: ({ transcription }) => transcription !== undefined,
  unlistedFacts: ({ transcription }, upstream) => transcription && { transcription: transcription.abilities(upstream) },
  errors: openaiErrors,
  formBody: (form) => new TranscriptionForm(form),
  formLimits: FORM_LIMITS,
  parse(body, model) {
    if (!(body instanceof TranscriptionForm))
      throw new GatewayError('unsupported_media_type', {
        message: 'Send a transcription as Content-Type: multipart/form-data, with the recording as file.',
      })
    return formRequest(body, model)
  },
  requestSchema: () => jsonSchemaOf(transcriptionFormSchema(), 'input'),
  takesForms: 'only',
  isStream: (request) => request.stream,
  answerType: (request) => transcriptType(request.response_format),
  textBytes: ({ prompt = '', keywords = [] }) => Buffer.byteLength(prompt + keywords.join(' ')),
  estimate,
  texts: transcriptionTexts,
  cached: cachedTranscriptions,
  createOperation: ({ transcription }, call) => transcription && createTranscriptionOperation(transcription, call),
})

function formRequest({ fields, file, form }: TranscriptionForm, model: ModelFacts): TranscriptionRequest {
  const checked = checkRequest<TranscriptionFields>(transcriptionSchema(), fields)
  const request = { ...checked, file, response_format: checked.response_format ?? 'json' }
  checkTranscriptionAbilities(request, model.transcription)
  const audio = audioHeader(new ChunkedBytes(file.chunks))
  if (audio === undefined)
    throw invalidField('file', 'must be a recording as flac, mp3, mp4, mpeg, mpga, m4a, ogg, wav or webm')
  const stream = checked.stream === true && model.transcription?.streams !== false
  return { ...request, audio, form, stream }
}

// Tokens per second of audio at Gemini, the maximum of all vendors, and of its text: fast speech in any language.
const INPUT_TOKENS_PER_SECOND = 32
const OUTPUT_TOKENS_PER_SECOND = 12
/** For the frame of an answer, however short. */
const FEWEST_OUTPUT_TOKENS = 64

/** Models are sold by the second, or by tokens; the estimate names both. */
function estimate(request: TranscriptionRequest, textTokens: number, { limits }: ModelFacts): Usage {
  const audioSeconds = audioLength(request)
  const inputAudioTokens = Math.ceil(audioSeconds * INPUT_TOKENS_PER_SECOND)
  const said = FEWEST_OUTPUT_TOKENS + Math.ceil(audioSeconds * OUTPUT_TOKENS_PER_SECOND)
  return {
    inputTokens: inputAudioTokens + textTokens,
    inputAudioTokens,
    outputTokens: Math.min(said, limits.maxOutputTokens ?? said),
    audioSeconds,
  }
}
