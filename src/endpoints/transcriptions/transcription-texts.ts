import { isJsonObject } from '../../core/json.ts'
import { sseData } from '../../wire/sse.ts'
import { formTexts, withFormTexts } from '../form-texts.ts'
import type { RequestPlaces } from '../request-texts.ts'
import {
  type AnswerObject,
  type EndpointTexts,
  NO_TEXT,
  type TextPart,
  type TextStep,
  type TextStreamReader,
  textsIn,
} from '../texts.ts'
import { TranscriptionForm } from './transcription-form.ts'
import type { TranscriptionRequest } from './transcription-request.ts'

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
