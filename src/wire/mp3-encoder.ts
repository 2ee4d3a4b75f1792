import { Buffer } from 'node:buffer'
import type { WasmMediaEncoder } from 'wasm-media-encoders'

/** Kilobits a second: what speech of one voice needs to sound as it came. One frame has the same size as the next. */
export const MP3_KILOBITS = 64

/** Encoders that are kept for later. Each has a WebAssembly memory of its own, of which it uses about one megabyte. */
const MAX_IDLE_ENCODERS = 16

const FULL_SCALE = 32_768

type Engine = WasmMediaEncoder<'audio/mpeg'>

const idle: Engine[] = []
let firstEngine: Promise<void> | undefined
/** The encoder as the first engine was made of it. */
let compiled: WebAssembly.Module | undefined

/**
 * Loads the encoder, so that a request need not wait for it later, or fail for want of it. The package is read once, at the
 * first call; a call that fails is tried again by the next.
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

/** The package unpacks and compiles its program anew for each engine, which takes ten times as long as all the rest. */
async function makeEngine(): Promise<Engine> {
  const { createEncoder, createMp3Encoder } = await import('wasm-media-encoders')
  if (compiled !== undefined) return createEncoder('audio/mpeg', compiled)
  const engine = await createMp3Encoder()
  compiled = compiledOf(engine)
  return engine
}

/** The program behind an engine, which the package keeps to itself; undefined when it is not where version 0.7 has it. */
function compiledOf(engine: Engine): WebAssembly.Module | undefined {
  const exported: unknown = Reflect.get(engine, 'module')
  const program: unknown =
    typeof exported === 'object' && exported !== null ? Reflect.get(exported, 'module') : undefined
  return program instanceof WebAssembly.Module ? program : undefined
}

/**
 * Makes an encoder for one file.
 * @param sampleRate Samples a second; one that MPEG audio knows, such as 24000.
 */
export async function mp3Encoder(sampleRate: number): Promise<Mp3Encoder> {
  return new Mp3Encoder(idle.pop() ?? (await makeEngine()), sampleRate)
}

/**
 * Makes an MP3 file (MPEG layer III, mono, {@link MP3_KILOBITS}) of samples that arrive bit by bit. It has no tags in front,
 * so what was made so far can be played at any time. A second of sound takes about 5 ms, in one go, so long pieces should come in parts.
 */
export class Mp3Encoder {
  #engine: Engine | undefined

  /** Called by {@link mp3Encoder}. */
  constructor(engine: Engine, sampleRate: number) {
    engine.configure({ sampleRate, channels: 1, bitrate: MP3_KILOBITS })
    this.#engine = engine
  }

  /**
   * Bytes of the file for so many whole samples (signed, 16 bits, little-endian, mono); those of the last frames come later.
   */
  encode(samples: Uint8Array): readonly Uint8Array[] {
    if (this.#engine === undefined) throw new Error('the file is finished')
    return samples.length < 2 ? [] : copyOf(this.#engine.encode([waveOf(samples)]))
  }

  /** The last frames. The encoder cannot be used any more. */
  finish(): readonly Uint8Array[] {
    const engine = this.#engine
    if (engine === undefined) return []
    this.#engine = undefined
    const last = copyOf(engine.finalize())
    if (idle.length < MAX_IDLE_ENCODERS) idle.push(engine)
    return last
  }
}

/** The samples as the engine takes them: from -1 to 1. */
function waveOf(samples: Uint8Array): Float32Array {
  const view = new DataView(samples.buffer, samples.byteOffset, samples.byteLength)
  const wave = new Float32Array(samples.length >> 1)
  for (let index = 0; index < wave.length; index++) wave[index] = view.getInt16(2 * index, true) / FULL_SCALE
  return wave
}

/** What the engine gives is part of its own memory, and is overwritten by its next call. */
function copyOf(bytes: Uint8Array): readonly Uint8Array[] {
  return bytes.length === 0 ? [] : [Buffer.from(bytes)]
}
