import type { Usage } from '../../core/usage.ts'
import type { VendorFailure } from '../stream-transform.ts'

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
