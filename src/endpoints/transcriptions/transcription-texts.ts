import { isJsonObject } from '../../core/json.ts'
import type { FormPart } from '../../wire/multipart.ts'
import { sseData } from '../../wire/sse.ts'
import {
  type AnswerObject,
  type EndpointTexts,
  NO_TEXT,
  type TextPart,
  type TextStep,
  type TextStreamReader,
  textsIn,
} from '../texts.ts'
import { fieldName } from './transcription-form.ts'
import type { TranscriptionRequest } from './transcription-request.ts'

/** Where the texts of transcriptions are. */
export const transcriptionTexts: EndpointTexts<TranscriptionRequest> = {
  request: ({ prompt, keywords }) => [
    ...textsIn(prompt, ['prompt'], { kindOf: () => 'text', index: 0, role: 'user' }),
    ...(keywords ?? []).flatMap((keyword, index) =>
      textsIn(keyword, ['keywords', index], { kindOf: () => 'text', index, role: 'user' }),
    ),
  ],
  replace: withFormTexts,
  answer: {
    whole: (answer) => [...transcriptIn(answer['text'], ['text'], 0), ...segmentTexts(answer)],
    replaced: withoutTokens,
    refusal: ({ usage }, message) => ({ text: message, ...(usage === undefined ? {} : { usage }) }),
    stream: () => new TranscriptReader(),
  },
}

/** A form goes to the vendor as it came, so its own fields are replaced too. */
function withFormTexts(request: TranscriptionRequest, texts: ReadonlyMap<string, string>): TranscriptionRequest {
  const prompt = texts.get('prompt') ?? request.prompt
  const keywords = request.keywords?.map((keyword, index) => texts.get(`keywords[${index}]`) ?? keyword)
  let keyword = 0
  const form = request.form.map((part): FormPart => {
    if (part.kind === 'file') return part
    if (part.name === 'prompt' && prompt !== undefined) return { ...part, value: prompt }
    if (fieldName(part.name) !== 'keywords') return part
    const value = keywords?.[keyword] ?? part.value
    keyword += 1
    return { ...part, value }
  })
  return {
    ...request,
    ...(prompt === undefined ? {} : { prompt }),
    ...(keywords === undefined ? {} : { keywords }),
    form,
  }
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
