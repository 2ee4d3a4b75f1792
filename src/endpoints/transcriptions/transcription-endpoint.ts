// See docs/decisions/0023-transcription-billing.md.

import { Buffer } from 'node:buffer'
import type { ModelFacts } from '../../catalog/model-facts.ts'
import { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { audioHeader } from '../../wire/audio/audio-header.ts'
import { ChunkedBytes } from '../../wire/audio/container-headers.ts'
import { sseData } from '../../wire/sse.ts'
import type { CachedAnswers, CachedPart } from '../answer-json.ts'
import { defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { invalidField } from '../field-errors.ts'
import { formTexts, withFormTexts } from '../forms.ts'
import { checkRequest, jsonSchemaOf } from '../schema.ts'
import {
  type AnswerObject,
  type EndpointTexts,
  NO_TEXT,
  type RequestPlaces,
  type TextPart,
  type TextStep,
  type TextStreamReader,
  textsIn,
} from '../texts.ts'
import {
  checkTranscriptionAbilities,
  createTranscriptionOperation,
  type TranscriptionOffer,
  transcriptType,
} from './transcription-operation.ts'
import {
  audioLength,
  fieldName,
  MAX_LIST,
  type TranscriptionFields,
  TranscriptionForm,
  type TranscriptionRequest,
  transcriptionFormSchema,
  transcriptionSchema,
} from './transcription-request.ts'

const LISTS = ['keywords']
const PLACES: RequestPlaces = {
  kinds: { prompt: 'text', keywords: 'text' },
  last: ['prompt', 'keywords'],
  roleOf: () => 'user',
}

/** Where the texts of transcriptions are. */
export const transcriptionTexts: EndpointTexts<TranscriptionRequest> = {
  request: ({ form }) => formTexts(form, PLACES, LISTS),
  replace(request, texts) {
    const form = withFormTexts(request.form, texts, LISTS)
    const { prompt, keywords, known_speaker_names: names } = new TranscriptionForm(form).fields
    const changed = { prompt, keywords, known_speaker_names: names } as Partial<TranscriptionRequest>
    return {
      ...request,
      ...Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== undefined)),
      form,
    }
  },
  answer: {
    whole: (answer) => [...transcriptIn(answer['text'], ['text'], 0), ...segmentTexts(answer)],
    replaced: withoutTokens,
    refusal: ({ usage }, message) => ({ text: message, ...(usage === undefined ? {} : { usage }) }),
    stream: () => new TranscriptReader(),
  },
}

function transcriptIn(value: unknown, path: readonly (string | number)[], index: number): TextPart[] {
  return textsIn(value, path, { kindOf: () => 'transcript', index })
}

function segmentTexts({ segments }: AnswerObject): TextPart[] {
  if (!Array.isArray(segments)) return []
  return segments.flatMap((segment, index) =>
    isJsonObject(segment) ? transcriptIn(segment['text'], ['segments', index, 'text'], index) : [],
  )
}

/** Words, tokens and their probabilities repeat the text piece by piece. */
function withoutTokens(answer: AnswerObject): void {
  delete answer['words']
  delete answer['logprobs']
  if (!Array.isArray(answer['segments'])) return
  for (const segment of answer['segments'])
    if (isJsonObject(segment)) {
      delete segment['tokens']
      delete segment['words']
    }
}

const DELTA = 'transcript.text.delta'
const SEGMENT = 'transcript.text.segment'
const DONE = 'transcript.text.done'

/** Reads the events of a streamed transcript (OpenAI API, "Transcription events"). */
class TranscriptReader implements TextStreamReader {
  readonly repeats = true
  #segments = 0
  #isDone = false

  read(event: AnswerObject): TextStep {
    switch (event['type']) {
      case DELTA: {
        const added = idOf(transcriptIn(event['delta'], ['delta'], 0), 'text')
        return { added, repeated: [], ended: [], isBare: added.length === 1 && event['segment_id'] === undefined }
      }
      case SEGMENT: {
        const index = this.#segments++
        const id = `segments[${index}].text`
        const added = idOf(transcriptIn(event['text'], ['text'], index), id)
        return { added, repeated: [], ended: [id], isBare: false }
      }
      case DONE: {
        const repeated = idOf(transcriptIn(event['text'], ['text'], 0), 'text')
        return { added: [], repeated, ended: [''], isBare: false }
      }
      default:
        return NO_TEXT
    }
  }

  more(_event: AnswerObject, _part: TextPart, text: string): AnswerObject {
    return { type: DELTA, delta: text }
  }

  replaced(event: AnswerObject): void {
    withoutTokens(event)
  }

  sent(event: AnswerObject): void {
    if (event['type'] === DONE) this.#isDone = true
  }

  refusal(message: string): string {
    return this.#isDone ? '' : sseData(JSON.stringify({ type: DONE, text: message }))
  }
}

/** The ids are those of the whole answer. */
function idOf(parts: readonly TextPart[], id: string): TextPart[] {
  return parts.map((part) => ({ ...part, id }))
}

/** How transcriptions are answered from the cache: the same bytes with the same fields, whatever the file is called. */
const cachedTranscriptions: CachedAnswers<TranscriptionRequest, TranscriptionOffer> = {
  leftOut: new Set(['model', 'stream']),
  parts: ({ form }) =>
    form.map(
      (part): CachedPart =>
        part.kind === 'file'
          ? { name: part.name, chunks: part.chunks }
          : { name: fieldName(part.name), chunks: [Buffer.from(part.value)] },
    ),
  form: ({ stream }) => (stream ? 'stream' : ''),
  isDeterministic: ({ temperature = 0 }) => temperature === 0,
  isExcluded: () => false,
  refusals: [],
}

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
const MIN_OUTPUT_TOKENS = 64

/** Models are sold by the second, or by tokens; the estimate names both. */
function estimate(request: TranscriptionRequest, textTokens: number, { limits }: ModelFacts): Usage {
  const audioSeconds = audioLength(request)
  const inputAudioTokens = Math.ceil(audioSeconds * INPUT_TOKENS_PER_SECOND)
  const said = MIN_OUTPUT_TOKENS + Math.ceil(audioSeconds * OUTPUT_TOKENS_PER_SECOND)
  return {
    inputTokens: inputAudioTokens + textTokens,
    inputAudioTokens,
    outputTokens: Math.min(said, limits.maxOutputTokens ?? said),
    audioSeconds,
  }
}
