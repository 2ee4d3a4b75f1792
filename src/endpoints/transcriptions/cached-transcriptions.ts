import { Buffer } from 'node:buffer'
import type { CachedAnswers, CachedPart } from '../cached-answers.ts'
import { fieldName } from './transcription-form.ts'
import type { TranscriptionOffer } from './transcription-operation.ts'
import type { TranscriptionRequest } from './transcription-request.ts'

/** How transcriptions are answered from the cache: the same bytes with the same fields, whatever the file is called. */
export const cachedTranscriptions: CachedAnswers<TranscriptionRequest, TranscriptionOffer> = {
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
