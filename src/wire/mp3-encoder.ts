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
