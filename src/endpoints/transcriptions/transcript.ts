import type { Usage } from '../../core/usage.ts'
import type { VendorFailure } from '../stream-transform.ts'

/** A piece of a transcript with its times, in seconds from the beginning. */
export interface TranscriptSegment {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** What a vendor made of a recording. */
export interface Transcript {
  readonly text: string
  /** Absent: the vendor gave no times. */
  readonly segments?: readonly TranscriptSegment[]
  /** Codes of the languages that the vendor heard. */
  readonly languages?: readonly string[]
  /** What the vendor reports; undefined: nothing. */
  readonly usage: Usage | undefined
  /** The vendor's own answer, where it is one of the dialect in the format that it was asked for. */
  readonly body?: readonly Uint8Array[]
  /** Set where the text is not the whole transcript: what its caller is told. */
  readonly failure?: VendorFailure | undefined
}

/**
 * The failure that a chat model's finish reason means; undefined: the transcript is whole. Transcripts have no place for such a reason, so
 * that a part would be read as the whole. A model that writes more may still answer.
 * @param told The vendor's own word for it.
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
