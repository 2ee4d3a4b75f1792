import { Buffer } from 'node:buffer'
import type { Usage } from '../../core/usage.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import { OversizeEventError } from '../../wire/sse.ts'
import { countCharacters } from '../character-count.ts'
import type { IncrementalEncoder, StreamTransform, VendorFailure } from '../stream-transform.ts'
import { estimateTokens } from '../token-estimate.ts'
import type { SoundEncoder, SpeechDecoder, SpeechTokens, TakeSamples } from './speech-decoder.ts'
import type { SpeechEnvelope } from './speech-envelope.ts'

/**
 * Bytes of samples encoded in one step: a fifth of a second at 24 kHz. MP3 takes about 1 ms, and at most 10 ms before the encoder's
 * code is compiled.
 */
const STEP_BYTES = 9_600

/** Inputs of a speech stream. */
export interface SpeechStreamOptions {
  readonly text: string
  /** Texts of the calls. Their bodies arrive one after another, and `end` is called after each. */
  readonly parts: readonly string[]
  /** Creates the decoder of one part. */
  readonly decoder: (take: TakeSamples) => SpeechDecoder
  /** The encoder or its promise. The first bytes must not arrive before `ready`. */
  readonly encoder: SoundEncoder | Promise<SoundEncoder>
  /** Whether the decoder passes on a vendor's file instead of samples. A file may have an odd length. */
  readonly isVendorFile?: boolean
  /** Whether encoding is slow, so that it can be spread over turns of the event loop. */
  readonly isCpuBound: boolean
  /** Whether the decoder reads a media type. Defaults to server-sent events. */
  readonly takes?: ((mediaType: string) => boolean) | undefined
  readonly envelope: SpeechEnvelope
}

/**
 * Joins the parts of a spoken text into one file, without gaps or headers between them. The charge covers the characters of the
 * text, whatever the vendor counts. If the stream is cut, it covers those of the parts that were sent.
 */
export class SpeechStream implements StreamTransform {
  hasContent = false
  isComplete = false
  failure: VendorFailure | undefined
  readonly outputBytesSeen = 0
  readonly countsUsage = true
  /** Returned chunks contain only whole events. */
  readonly atBoundary = true
  /** Set while the encoder is loading. */
  readonly ready: Promise<void> | undefined
  /** Set if a second of audio takes milliseconds to encode. Does the work of `push` in steps. */
  readonly encoder: IncrementalEncoder | undefined

  readonly #options: SpeechStreamOptions
  #soundEncoder: SoundEncoder | undefined
  #decoder: SpeechDecoder
  /** Index of the current part. Parts are sent one after another. */
  #part = 0
  #sentCharacters: number
  #half: Uint8Array | undefined
  #hasSound = false
  /** Whole samples that are not yet encoded. */
  #sound: Uint8Array[] = []
  #file: Uint8Array[] = []
  #tokens: SpeechTokens | undefined

  constructor(options: SpeechStreamOptions) {
    this.#options = options
    this.#sentCharacters = countCharacters(options.parts[0] ?? '')
    this.#decoder = options.decoder(this.#take)
    this.encoder = options.isCpuBound ? this.#incrementally() : undefined
    if (!(options.encoder instanceof Promise)) this.#soundEncoder = options.encoder
    else {
      this.ready = options.encoder.then((encoder) => {
        this.#soundEncoder = encoder
      })
    }
  }

  get takes(): ((mediaType: string) => boolean) | undefined {
    return this.#options.takes
  }

  /**
   * Characters sent to the vendor, which charges for them regardless of the audio received. `undefined` if there are none, or if
   * the vendor reported a failure instead of any audio.
   */
  get usage(): Usage | undefined {
    if (this.isComplete) return { characters: countCharacters(this.#options.text) }
    const { failure } = this.#decoder
    const isRefused = failure !== undefined && failure.kind !== 'invalid_response' && !this.#hasSound
    return isRefused || this.#sentCharacters === 0 ? undefined : { characters: this.#sentCharacters }
  }

  withdrawCall(): void {
    this.#sentCharacters -= countCharacters(this.#options.parts[this.#part] ?? '')
  }

  push(chunk: Uint8Array): Uint8Array | string | undefined {
    this.#accept(chunk)
    this.#encodeAll()
    return this.#given()
  }

  /** Called when the body of a part has ended. Drops an incomplete sample, because the next part starts a new one. */
  end(): Uint8Array | string | undefined {
    if (this.failure !== undefined || this.isComplete) return undefined
    this.#read(() => this.#decoder.end())
    this.#encodeAll()
    if (this.failure !== undefined) return this.#given()
    if (!this.#decoder.isComplete) {
      this.failure = unreadable('the stream ended before the sound was whole')
      return this.#given()
    }
    this.#half = undefined
    this.#addTokens(this.#decoder.tokens)
    this.#part += 1
    const next = this.#options.parts[this.#part]
    if (next === undefined) return this.#finish()
    this.#sentCharacters += countCharacters(next)
    this.#decoder = this.#options.decoder(this.#take)
    return this.#given()
  }

  readonly #take: TakeSamples = (samples) => {
    const bytes = this.#half === undefined ? samples : Buffer.concat([this.#half, samples])
    const wholeLength = this.#options.isVendorFile === true ? bytes.length : bytes.length - (bytes.length % 2)
    this.#half = wholeLength === bytes.length ? undefined : bytes.subarray(wholeLength)
    if (wholeLength === 0) return
    this.#hasSound = true
    this.#sound.push(bytes.subarray(0, wholeLength))
  }

  #incrementally(): IncrementalEncoder {
    const hasWork = (): boolean => this.#sound.length > 0
    return {
      take: (chunk) => this.#accept(chunk),
      get hasWork() {
        return hasWork()
      },
      next: () => {
        this.#encodeStep()
        return this.#given()
      },
    }
  }

  #accept(chunk: Uint8Array): void {
    if (this.failure === undefined && !this.isComplete) this.#read(() => this.#decoder.push(chunk))
  }

  #encodeAll(): void {
    const sound = this.#sound
    this.#sound = []
    for (const samples of sound) this.#encode(samples)
  }

  #encodeStep(): void {
    let room = STEP_BYTES
    while (room > 0) {
      const samples = this.#sound[0]
      if (samples === undefined) return
      if (samples.length <= room) this.#sound.shift()
      else this.#sound[0] = samples.subarray(room)
      const step = samples.subarray(0, room)
      room -= step.length
      this.#encode(step)
    }
  }

  #encode(samples: Uint8Array): void {
    if (this.#soundEncoder === undefined) throw new Error('sound came before the encoder was ready')
    this.#file.push(...this.#soundEncoder.encode(samples))
  }

  #read(step: () => void): void {
    try {
      step()
    } catch (error) {
      if (!(error instanceof OversizeEventError)) throw error
      this.failure = unreadable(error.message)
    }
    this.failure ??= this.#decoder.failure
  }

  /** A text without any audio is an invalid answer. */
  #finish(): Uint8Array | string | undefined {
    if (!this.#hasSound) return undefined
    this.#file.push(...(this.#soundEncoder?.finish() ?? []))
    const file = this.#given()
    this.isComplete = true
    const done = this.#options.envelope.done({
      ...(this.#tokens ?? { inputTokens: estimateTokens(Buffer.byteLength(this.#options.text)), outputTokens: 0 }),
      characters: countCharacters(this.#options.text),
    })
    return done === undefined || typeof file !== 'string' ? (file ?? done) : file + done
  }

  #given(): Uint8Array | string | undefined {
    if (this.#file.length === 0) return undefined
    const file = joinChunks(this.#file)
    this.#file = []
    this.hasContent = true
    return this.#options.envelope.wrap(file)
  }

  #addTokens(tokens: SpeechTokens | undefined): void {
    if (tokens === undefined) return
    this.#tokens = {
      inputTokens: (this.#tokens?.inputTokens ?? 0) + tokens.inputTokens,
      outputTokens: (this.#tokens?.outputTokens ?? 0) + tokens.outputTokens,
    }
  }
}

function unreadable(message: string): VendorFailure {
  return { kind: 'invalid_response', status: 0, message }
}
