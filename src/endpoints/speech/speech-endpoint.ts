import { Buffer } from 'node:buffer'
import type { Usage } from '../../core/usage.ts'
import { loadMp3Encoder, mp3Encoder, WavEncoder } from '../../wire/audio/encoders.ts'
import { joinChunks } from '../../wire/chunks.ts'
import { OversizeEventError, sseData } from '../../wire/sse.ts'
import { countCharacters } from '../character-count.ts'
import { defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { invalidField } from '../field-errors.ts'
import type { Operation, VendorCall, WireRequest } from '../operation.ts'
import { checkRequest, jsonSchemaOf } from '../schema.ts'
import type { IncrementalEncoder, StreamTransform, VendorFailure } from '../stream-transform.ts'
import { promptTexts } from '../texts.ts'
import { estimateTokens } from '../token-estimate.ts'
import { checkSpeechAbilities, type SpeechOptions, speechFormat, speechVoice } from './check-speech-abilities.ts'
import {
  GATEWAY_FORMATS,
  isGatewayFormat,
  type SpeechFormat,
  type SpeechRequest,
  speechSchema,
} from './speech-request.ts'

const CONTENT_TYPES: Readonly<Record<SpeechFormat, string>> = {
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
}
const EVENT_STREAM = 'text/event-stream; charset=utf-8'

/** Text to speech (API specification, "Speech request"; OpenAI API, "Create speech"). The audio is streamed. */
export const speechEndpoint = defineEndpoint<SpeechRequest, SpeechOffer>({
  id: 'speech',
  path: '/v1/audio/speech',
  kind: 'speech',
  servesUnlisted: ({ speech }) => speech !== undefined,
  errors: openaiErrors,
  unknownModel: { status: 400, code: 'endpoint_model_mismatch' },
  isPaidJob: true,
  parse(body, model) {
    const options = checkRequest<Omit<SpeechRequest, 'response_format'> & SpeechOptions>(speechSchema(), body)
    checkSpeechAbilities(options, model)
    return { ...options, response_format: speechFormat(options.response_format, model) } as SpeechRequest
  },
  requestSchema: () => jsonSchemaOf(speechSchema(), 'input'),
  prepare: (request) => (request.response_format === 'mp3' ? loadMp3Encoder() : undefined),
  isStream: () => true,
  streamType: (request) => (request.stream_format === 'sse' ? EVENT_STREAM : CONTENT_TYPES[request.response_format]),
  estimate: (request) => ({ characters: countCharacters(request.input) }),
  texts: promptTexts({
    kinds: { input: 'text', instructions: 'text' },
    last: ['instructions', 'input'],
    roleOf: (member) => (member === 'instructions' ? 'system' : 'user'),
  }),
  createOperation: ({ speech }, call) => speech && createSpeechOperation(speech, call),
})

/** Speech at one vendor, which is always streamed. All functions are pure. */
export interface SpeechOperation {
  /** Samples per second of decoded audio. */
  readonly sampleRate: number
  /**
   * Voice for requests without one or with an OpenAI voice, unless this is such a voice itself. Defaults to that of the API
   * specification.
   */
  readonly usualVoice?: string
  /**
   * Formats in which the vendor sends a complete file, which is passed on unchanged. The gateway encodes mp3, wav and pcm from
   * samples of every vendor. If omitted, the vendor sends only samples.
   */
  readonly files?: readonly SpeechFormat[]
  /** Whether the decoder reads an answer of this media type. Defaults to server-sent events. */
  takes?(mediaType: string): boolean
  /** Writes the call that speaks one part of the text. */
  toWire(call: VendorCall<SpeechRequest>, part: SpeechPart): WireRequest
  /** Reads the streamed 2xx answer for one part and passes on its samples, or the bytes of its file, while they arrive. */
  decoder(call: VendorCall<SpeechRequest>, take: TakeSamples): SpeechDecoder
}

/** Part of a vendor that handles speech. */
export interface SpeechOffer {
  readonly speech?: SpeechOperation
}

/**
 * Creates the speech operation of a vendor. A text above the vendor's limit is split and spoken part by part into one file, which
 * the gateway encodes from samples. Files of the vendor cannot be joined, so their text must fit into one call.
 * @throws GatewayError naming the field for a fallback that does not support the request.
 */
function createSpeechOperation(operation: SpeechOperation, call: VendorCall<SpeechRequest>): Operation {
  const { request, model } = call
  checkSpeechAbilities(request, model)
  const voice = speechVoice(request.voice, model.speech, operation.usualVoice)
  const parts = splitSpeechText(request.input, model.speech?.maxCharacters)
  const format = request.response_format
  const isVendorFile = !isGatewayFormat(format)
  if (isVendorFile && operation.files?.includes(format) !== true)
    throw invalidField(
      'response_format',
      `the vendor of this model offers ${[...GATEWAY_FORMATS, ...(operation.files ?? [])].join(', ')}`,
    )
  if (isVendorFile && parts.length > 1)
    throw invalidField(
      'response_format',
      `${format} needs an input of at most ${model.speech?.maxCharacters} characters; use ${GATEWAY_FORMATS.join(', ')} for longer text`,
    )
  return {
    requests: parts.map((text) => operation.toWire(call, { text, voice })),
    whole() {
      throw new TypeError('speech is always streamed')
    },
    stream: () =>
      new SpeechStream({
        text: request.input,
        parts,
        decoder: (take) => operation.decoder(call, take),
        encoder: encoderFor(format, operation.sampleRate),
        isVendorFile,
        isCpuBound: format === 'mp3',
        takes: operation.takes,
        envelope: request.stream_format === 'sse' ? EVENT_ENVELOPE : PLAIN_ENVELOPE,
      }),
  }
}

function encoderFor(format: SpeechFormat, sampleRate: number): SoundEncoder | Promise<SoundEncoder> {
  if (format === 'mp3') return mp3Encoder(sampleRate)
  return format === 'wav' ? new WavEncoder(sampleRate) : UNCHANGED
}

/** Passes bytes on: raw samples, or a file of the vendor. */
const UNCHANGED: SoundEncoder = { encode: (bytes) => [bytes], finish: () => [] }

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

/** Encoding of the file's bytes for the caller. */
interface SpeechEnvelope {
  /** Wraps some bytes of the file. */
  wrap(file: Uint8Array): Uint8Array | string
  /** Returns the bytes after the complete file, if any. */
  done(usage: SpeechUsage): string | undefined
}

/** Content of the last event. */
export interface SpeechUsage extends SpeechTokens {
  /** Charged characters of the text. */
  readonly characters: number
}

/** Sends the file itself. */
export const PLAIN_ENVELOPE: SpeechEnvelope = {
  wrap: (file) => file,
  done: () => undefined,
}

/** Sends OpenAI's events, `speech.audio.delta` and `speech.audio.done` (OpenAI API, "Speech events"). */
const EVENT_ENVELOPE: SpeechEnvelope = {
  wrap: (file) =>
    sseData(
      `{"type":"speech.audio.delta","audio":"${Buffer.from(file.buffer, file.byteOffset, file.byteLength).toString('base64')}"}`,
    ),
  done: ({ inputTokens, outputTokens, characters }) =>
    sseData(
      JSON.stringify({
        type: 'speech.audio.done',
        usage: {
          input_tokens: inputTokens,
          output_tokens: outputTokens,
          total_tokens: inputTokens + outputTokens,
          characters,
        },
      }),
    ),
}

// First character that counts double at some vendors: ideographs, kana, Hangul, full-width forms, and higher planes.
const FIRST_WIDE = 0x2e80

/** A boundary before this share of the limit would make a part too short. */
const EARLIEST_SHARE = 1 / 3

// An ASCII mark ends a sentence or clause only before white space: not in 3.14, 10,000 or example.com. Other marks are written as
// numbers, because one such character in a built file makes V8 store the file with two bytes per character: 。！？… and ”’）」』, then
// ，、；：
const SENTENCE_END =
  /[\u3002\uff01\uff1f\u2026\n]["'\u201d\u2019\uff09)\u300d\u300f]*|[.!?]+["'\u201d\u2019)\]]*(?=\s|$)/g
const CLAUSE_END = /[\uff0c\u3001\uff1b\uff1a]|[,;:](?=\s|$)/g
const SPACE = /\s+/g
const BORDERS = [SENTENCE_END, CLAUSE_END, SPACE]

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/**
 * Splits a text into parts that a vendor accepts, in order: at the end of a sentence, else of a clause, else at a space, else
 * between two characters. A text within the limit stays unchanged; otherwise parts are trimmed. Vendors bill an ideograph as two
 * characters and do not document how their limits count it, so it counts twice here.
 * @param maxCharacters Maximum characters per part, or `undefined` for no limit.
 */
export function splitSpeechText(text: string, maxCharacters: number | undefined): readonly string[] {
  if (maxCharacters === undefined) return [text]
  const parts: string[] = []
  let start = 0
  while (start < text.length) {
    const end = endOfRoom(text, start, maxCharacters)
    if (start === 0 && end === text.length) return [text]
    const border = end === text.length ? end : borderBefore(text, start, end)
    const part = text.slice(start, border).trim()
    if (part !== '') parts.push(part)
    start = border
  }
  return parts
}

/** Returns the index after the last character within the limit. Always greater than `start`. */
function endOfRoom(text: string, start: number, maxCharacters: number): number {
  let room = maxCharacters
  let index = start
  while (index < text.length) {
    const character = text.codePointAt(index) ?? 0
    room -= character >= FIRST_WIDE ? 2 : 1
    if (room < 0 && index > start) break
    index += character > 0xffff ? 2 : 1
  }
  return index
}

function borderBefore(text: string, start: number, end: number): number {
  const earliest = start + Math.ceil((end - start) * EARLIEST_SHARE)
  // Includes one more unit to see the character after a mark at the very end.
  const room = text.slice(start, end + 1)
  for (const pattern of BORDERS) {
    let border = 0
    for (const match of room.matchAll(pattern)) {
      const behind = start + match.index + match[0].length
      if (behind <= end) border = behind
    }
    if (border >= earliest) return border
  }
  return signBorder(text, start, end)
}

// Longer than any written sign. Boundaries are searched in this range.
const SIGN_UNITS = 64

/** Returns the last boundary between two visible characters, unless a single one exceeds the limit. */
function signBorder(text: string, start: number, end: number): number {
  const from = Math.max(start, end - SIGN_UNITS)
  const sign = graphemes.segment(text.slice(from, end + SIGN_UNITS)).containing(end - from)
  const border = sign === undefined ? end : from + sign.index
  return border > from ? border : end
}

/** A part of a text for one call, and the vendor's name of the voice. */
interface SpeechPart {
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
interface SoundEncoder {
  /** Returns the bytes of the file for these samples. */
  encode(samples: Uint8Array): readonly Uint8Array[]
  /** Returns the end of the file. Called once. */
  finish(): readonly Uint8Array[]
}
