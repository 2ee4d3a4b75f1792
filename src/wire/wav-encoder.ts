import { wavHeader } from './wav-header.ts'

/** Makes a WAV file of samples that arrive bit by bit: a header before the first of them, and nothing after the last. */
export class WavEncoder {
  readonly #sampleRate: number
  #hasHeader = false

  /** @param sampleRate Samples a second. */
  constructor(sampleRate: number) {
    this.#sampleRate = sampleRate
  }

  /** Bytes of the file for so many samples: signed, 16 bits, little-endian, mono. The samples are not copied. */
  encode(samples: Uint8Array): readonly Uint8Array[] {
    if (this.#hasHeader) return [samples]
    this.#hasHeader = true
    return [wavHeader(this.#sampleRate), samples]
  }

  /** The end of the file. */
  finish(): readonly Uint8Array[] {
    return []
  }
}
