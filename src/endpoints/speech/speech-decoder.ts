import type { VendorFailure } from '../stream-transform.ts'

/** A part of a text that a vendor speaks in one call, and the vendor's name of the voice. */
export interface SpeechPart {
  readonly text: string
  readonly voice: string
}

/**
 * Takes samples as a decoder reads them: signed, 16 bits, little-endian, mono. They may end in the middle of a sample. Takes the bytes of a
 * file unchanged if the vendor makes the file.
 */
export type TakeSamples = (samples: Uint8Array) => void

/** Tokens that a vendor reports as used. */
export interface SpeechTokens {
  readonly inputTokens: number
  readonly outputTokens: number
}

/** Reads a vendor's streamed answer to one part: the vendor's bytes in, samples out. Pure and synchronous. */
export interface SpeechDecoder {
  /** May throw when the bytes cannot be read; the answer is then over. */
  push(chunk: Uint8Array): void
  /** The vendor's body ended without a network fault. */
  end(): void
  /** True once the vendor reported that the part is complete. */
  readonly isComplete: boolean
  /** An error that the vendor sent inside the stream. */
  readonly failure: VendorFailure | undefined
  /** Undefined when the vendor counts no tokens. */
  readonly tokens: SpeechTokens | undefined
}

/** Makes a file of samples that arrive bit by bit. */
export interface SoundEncoder {
  /** Bytes of the file for so many samples. */
  encode(samples: Uint8Array): readonly Uint8Array[]
  /** The end of the file. Called once. */
  finish(): readonly Uint8Array[]
}
