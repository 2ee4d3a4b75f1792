import type { VendorFailure } from '../stream-transform.ts'

/** A part of a text for one call, and the vendor's name of the voice. */
export interface SpeechPart {
  readonly text: string
  readonly voice: string
}

/**
 * Receives samples from a decoder: signed, 16 bits, little-endian, mono. They may end in the middle of a sample. If the vendor
 * sends a file, it receives the bytes unchanged.
 */
export type TakeSamples = (samples: Uint8Array) => void

/** Tokens that a vendor reports as used. */
export interface SpeechTokens {
  readonly inputTokens: number
  readonly outputTokens: number
}

/** Reads a vendor's streamed answer for one part: vendor bytes in, samples out. Pure and synchronous. */
export interface SpeechDecoder {
  /** Reads a chunk. May throw if the bytes cannot be read, which ends the answer. */
  push(chunk: Uint8Array): void
  /** Called if the vendor's body ended without a network fault. */
  end(): void
  /** Whether the vendor reported that the part is complete. */
  readonly isComplete: boolean
  /** Error that the vendor sent inside the stream. */
  readonly failure: VendorFailure | undefined
  /** Used tokens, or `undefined` if the vendor counts none. */
  readonly tokens: SpeechTokens | undefined
}

/** Encodes samples as a file while they arrive. */
export interface SoundEncoder {
  /** Returns the bytes of the file for these samples. */
  encode(samples: Uint8Array): readonly Uint8Array[]
  /** Returns the end of the file. Called once. */
  finish(): readonly Uint8Array[]
}
