import { Buffer } from 'node:buffer'

/** Bytes of a header made by {@link wavHeader}. */
export const WAV_HEADER_BYTES = 44

/**
 * The length of a sound that is still being generated. Of the values in use, only this one means "until the file ends" to
 * sox, ffmpeg and browsers; for the largest possible number sox reports a truncated file.
 */
const UNKNOWN_LENGTH = 0x7ffff000

const BYTES_PER_SAMPLE = 2

/** Beginning of a WAV file of 16-bit mono sound whose length is not known yet (RIFF, WAVE format with PCM data). */
export function wavHeader(sampleRate: number): Uint8Array {
  const header = Buffer.alloc(WAV_HEADER_BYTES)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(UNKNOWN_LENGTH + WAV_HEADER_BYTES - 8, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(sampleRate, 24)
  header.writeUInt32LE(sampleRate * BYTES_PER_SAMPLE, 28)
  header.writeUInt16LE(BYTES_PER_SAMPLE, 32)
  header.writeUInt16LE(8 * BYTES_PER_SAMPLE, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(UNKNOWN_LENGTH, 40)
  return header
}

/**
 * Offset of the samples in the first bytes of a sound: after the header of a WAV file, whatever chunks it has, or 0 without
 * a header. The bytes must contain the complete header.
 */
export function soundStart(bytes: Buffer): number {
  if (bytes.length < 12 || bytes.toString('latin1', 0, 4) !== 'RIFF' || bytes.toString('latin1', 8, 12) !== 'WAVE')
    return 0
  let position = 12
  while (position + 8 <= bytes.length) {
    if (bytes.toString('latin1', position, position + 4) === 'data') return position + 8
    const chunkBytes = bytes.readUInt32LE(position + 4)
    position += 8 + chunkBytes + (chunkBytes % 2)
  }
  return bytes.length
}

/** Makes a WAV file from samples that arrive in chunks: a header before the first of them, and nothing after the last. */
export class WavEncoder {
  readonly #sampleRate: number
  #hasHeader = false

  /** @param sampleRate Samples per second. */
  constructor(sampleRate: number) {
    this.#sampleRate = sampleRate
  }

  /** Bytes of the file for these samples: signed, 16 bits, little-endian, mono. The samples are not copied. */
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
