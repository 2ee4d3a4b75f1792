import { isJsonObject, objectOf } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import type { VendorFailure } from '../stream-transform.ts'
import { longestReport, type Recording } from './transcription-request.ts'

/** A segment of a transcript with its times, in seconds from the beginning. */
export interface TranscriptSegment {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** A vendor's transcript of a recording. */
export interface Transcript {
  readonly text: string
  /** Absent if the vendor returned no times. */
  readonly segments?: readonly TranscriptSegment[]
  /** Codes of the languages that the vendor detected. */
  readonly languages?: readonly string[]
  /** Usage that the vendor reports, if any. */
  readonly usage: Usage | undefined
  /** The vendor's own answer, if it is in the dialect and in the requested format. */
  readonly body?: readonly Uint8Array[]
  /** Error for the caller if the text is not the whole transcript. */
  readonly failure?: VendorFailure | undefined
}

/**
 * Returns the failure for a chat model's finish reason, or `undefined` if the transcript is complete. Transcripts have no place for
 * a finish reason, so callers would take a part for the whole. A model with longer output may still answer.
 * @param told The vendor's own name of the reason.
 */
export function incompleteTranscript(reason: unknown, told: unknown = reason): VendorFailure | undefined {
  const failure = { kind: 'caller', status: 0, param: 'file' } as const
  if (reason === 'length')
    return {
      ...failure,
      concerns: 'size',
      code: 'transcript_too_long',
      message: 'file: the transcript is longer than this model can write; send the recording in parts',
    }
  if (reason !== 'content_filter') return undefined
  return { ...failure, code: 'content_blocked', message: `file: the vendor withheld the transcript (${told})` }
}

/**
 * Reads the usage that a vendor reports (OpenAI API, "Create transcription"): the tokens of `usage`, else its `seconds`, else the
 * `duration` of the answer. Returns `undefined` without a report, so that the length is measured here. A count of 0 is ignored,
 * because a recording has some length. An impossible report becomes an implausible number, so that it is replaced and reported.
 */
export function transcriptionUsage(answer: Readonly<Record<string, unknown>>, recording: Recording): Usage | undefined {
  const reported = objectOf(answer['usage'])
  const tokens = tokensIn(reported)
  if (tokens !== undefined) return tokens
  for (const value of [reported['seconds'], answer['duration']]) {
    const seconds = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof seconds === 'number' && seconds !== 0) return heardSeconds(seconds, recording)
  }
  return undefined
}

/** Converts seconds that a vendor reports to usage. */
export function heardSeconds(seconds: number, recording: Recording): Usage {
  return { audioSeconds: seconds <= longestReport(recording) ? seconds : Number.POSITIVE_INFINITY }
}

function tokensIn(usage: Readonly<Record<string, unknown>>): Usage | undefined {
  const { input_tokens: input, output_tokens: output, input_token_details: details } = usage
  if (typeof input !== 'number' || input === 0) return undefined
  const audio = isJsonObject(details) ? details['audio_tokens'] : undefined
  return {
    inputTokens: input,
    ...(typeof audio === 'number' ? { inputAudioTokens: audio } : {}),
    ...(typeof output === 'number' ? { outputTokens: output } : {}),
  }
}

/** Returns usage in the dialect, or `undefined` if nothing is known. */
export function shownTranscriptionUsage(usage: Usage | undefined, reported: Usage | undefined): object | undefined {
  const { inputTokens, inputAudioTokens = 0, outputTokens = 0, audioSeconds } = usage ?? {}
  const isByTokens = reported?.inputTokens !== undefined
  if (!isByTokens && audioSeconds !== undefined) return { type: 'duration', seconds: audioSeconds }
  if (inputTokens === undefined) return undefined
  return {
    type: 'tokens',
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    input_token_details: { audio_tokens: inputAudioTokens, text_tokens: inputTokens - inputAudioTokens },
  }
}
