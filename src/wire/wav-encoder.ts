import { Buffer } from 'node:buffer'

/** Size in bytes of a header from {@link wavHeader}. */
export const WAV_HEADER_BYTES = 44

/**
 * Length field of audio that is still being generated. Among the values in use, only this one means "until the file ends" to sox,
 * ffmpeg and browsers; for the maximum value sox reports a truncated file.
 */
const UNKNOWN_LENGTH = 0x7ffff000

const BYTES_PER_SAMPLE = 2

/** Returns the header of a WAV file of 16-bit mono audio of unknown length (RIFF, WAVE format with PCM data). */
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
 * Returns the offset of the samples in the first bytes of an audio file: after the header of a WAV file with any chunks, or 0
 * without a header. The bytes must contain the complete header.
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

/** Creates a WAV file from samples that arrive in chunks: a header before the first samples, and nothing after the last. */
export class WavEncoder {
  readonly #sampleRate: number
  #hasHeader = false

  /** @param sampleRate Samples per second. */
  constructor(sampleRate: number) {
    this.#sampleRate = sampleRate
  }

  /** Returns the bytes of the file for these samples: signed, 16 bits, little-endian, mono. The samples are not copied. */
  encode(samples: Uint8Array): readonly Uint8Array[] {
    if (this.#hasHeader) return [samples]
    this.#hasHeader = true
    return [wavHeader(this.#sampleRate), samples]
  }

  /** Returns the end of the file. */
  finish(): readonly Uint8Array[] {
    return []
  }
}
