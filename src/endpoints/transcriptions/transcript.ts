import type { Usage } from '../../core/usage.ts'

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
}
