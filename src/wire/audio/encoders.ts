// See docs/decisions/0001-packages.md.

import { Buffer } from 'node:buffer'
import type { WasmMediaEncoder } from 'wasm-media-encoders'

/** Bit rate in kilobits per second: transparent for a single voice. All frames have the same size. */
export const MP3_KILOBITS = 64

/** Maximum number of idle encoders kept for reuse. Each has its own WebAssembly memory of about one megabyte. */
const MAX_IDLE_ENCODERS = 16

const FULL_SCALE = 32_768

type Engine = WasmMediaEncoder<'audio/mpeg'>

const idle: Engine[] = []
let firstEngine: Promise<void> | undefined
/** Compiled program of the first engine. */
let compiled: WebAssembly.Module | undefined

/**
 * Loads the encoder in advance, so that no request waits for it or fails without it. The package is loaded once, at the first
 * call. After a failed call, the next call retries.
 */
export function loadMp3Encoder(): Promise<void> {
  firstEngine ??= makeEngine().then(
    (engine) => {
      idle.push(engine)
    },
    (error) => {
      firstEngine = undefined
      throw error
    },
  )
  return firstEngine
}

/** The package unpacks and compiles its program for each engine, which takes ten times as long as all other steps. */
async function makeEngine(): Promise<Engine> {
  const { createEncoder, createMp3Encoder } = await import('wasm-media-encoders')
  if (compiled !== undefined) return createEncoder('audio/mpeg', compiled)
  const engine = await createMp3Encoder()
  compiled = compiledOf(engine)
  return engine
}

/** Returns the program of an engine, which the package does not export. Undefined if it is not at its place in version 0.7. */
function compiledOf(engine: Engine): WebAssembly.Module | undefined {
  const exported: unknown = Reflect.get(engine, 'module')
  const program: unknown =
    typeof exported === 'object' && exported !== null ? Reflect.get(exported, 'module') : undefined
  return program instanceof WebAssembly.Module ? program : undefined
}

/**
 * Creates an encoder for one file.
 * @param sampleRate Samples per second; a rate of MPEG audio, such as 24000.
 */
export async function mp3Encoder(sampleRate: number): Promise<Mp3Encoder> {
  return new Mp3Encoder(idle.pop() ?? (await makeEngine()), sampleRate)
}

/**
 * Creates an MP3 file (MPEG layer III, mono, {@link MP3_KILOBITS}) from samples that arrive in chunks. It has no leading tags, so
 * a partial file can be played. One second of audio takes about 5 ms without a pause, so pass long audio in parts.
 */
export class Mp3Encoder {
  #engine: Engine | undefined

  /** Called by {@link mp3Encoder}. */
  constructor(engine: Engine, sampleRate: number) {
    engine.configure({ sampleRate, channels: 1, bitrate: MP3_KILOBITS })
    this.#engine = engine
  }

  /** Returns the bytes of the file for these whole samples (signed, 16 bits, little-endian, mono). The last frames follow later. */
  encode(samples: Uint8Array): readonly Uint8Array[] {
    if (this.#engine === undefined) throw new Error('the file is finished')
    return samples.length < 2 ? [] : copyOf(this.#engine.encode([waveOf(samples)]))
  }

  /** Returns the last frames. The encoder cannot be used afterwards. */
  finish(): readonly Uint8Array[] {
    const engine = this.#engine
    if (engine === undefined) return []
    this.#engine = undefined
    const last = copyOf(engine.finalize())
    if (idle.length < MAX_IDLE_ENCODERS) idle.push(engine)
    return last
  }
}

/** Converts the samples to floats from -1 to 1, the format of the engine. */
function waveOf(samples: Uint8Array): Float32Array {
  const view = new DataView(samples.buffer, samples.byteOffset, samples.byteLength)
  const wave = new Float32Array(samples.length >> 1)
  for (let index = 0; index < wave.length; index++) wave[index] = view.getInt16(2 * index, true) / FULL_SCALE
  return wave
}

/** The engine returns a view of its own memory, which its next call overwrites. */
function copyOf(bytes: Uint8Array): readonly Uint8Array[] {
  return bytes.length === 0 ? [] : [Buffer.from(bytes)]
}

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
