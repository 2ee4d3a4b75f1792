import { Buffer } from 'node:buffer'
import { audioHeader } from '../wire/audio/audio-header.ts'
import { Base64Bytes } from '../wire/base64-bytes.ts'
import { imageHeader } from '../wire/image-header.ts'
import { pdfPages } from '../wire/pdf-header.ts'

/** What an input is that the model does not read as text. `conversation` is a history that the vendor keeps. */
export const MEDIA_KINDS = ['image', 'audio', 'video', 'document', 'conversation'] as const

/** What a media input is; `conversation` is a history that the vendor keeps. */
export type MediaKind = (typeof MEDIA_KINDS)[number]

/** An input of a request that is no text of its body. */
export interface MediaInput {
  readonly kind: MediaKind
  /** The string of the body that holds it, as base64 or as a `data:` URL; absent: only the vendor knows its size. */
  readonly data?: string
  /** Lower-case: `application/pdf`. Absent: that of the `data:` URL, else unknown. */
  readonly mediaType?: string
  /** How closely the model shall look: `low`, `high`, `original`. */
  readonly detail?: string
  /** Most tokens of it, by the request itself. */
  readonly maxTokens?: number
}

/** What the headers of an input tell. A field is absent where they do not tell it, or its bytes are elsewhere. */
export interface MediaFacts extends Omit<MediaInput, 'data'> {
  /** Absent: the bytes are elsewhere, and nothing else is known. */
  readonly byteLength?: number
  /** Pixels. */
  readonly width?: number
  readonly height?: number
  /** Of sound. */
  readonly seconds?: number
  /** Of a PDF file. */
  readonly pages?: number
}

/** Tokens held for an input whose size only the vendor knows, by its kind. */
export type UnknownInputBounds = { readonly [Kind in MediaKind]?: number }

/** The same, with other bounds for some models, by their public ids. */
export interface UnknownInputTokens extends UnknownInputBounds {
  readonly models?: Readonly<Record<string, UnknownInputBounds>>
}

/** How a vendor counts inputs that are no text. */
export interface MediaRules {
  /** Tokens of an input at a model, from above; undefined: the vendor publishes no rule for it. */
  tokens(media: MediaFacts, upstream: string): number | undefined
  /** Most input tokens of a call; undefined: not known. */
  contextTokens(upstream: string): number | undefined
}

const DATA_URL = /^data:([^;,]*)[^,]*,/i
/** Longest beginning of a `data:` URL before its data. */
const LONGEST_PREFIX = 256

/** Reads what the headers of inputs tell; of each input a bounded number of bytes. */
export function mediaFacts({ data, ...input }: MediaInput): MediaFacts {
  if (data === undefined) return input
  const prefix = DATA_URL.exec(data.slice(0, LONGEST_PREFIX))
  const bytes = new Base64Bytes(prefix === null ? data : data.slice(prefix[0].length))
  const mediaType = input.mediaType ?? (prefix?.[1]?.trim().toLowerCase() || undefined)
  const kind = kindOfType(mediaType) ?? input.kind
  const { byteLength } = bytes
  const facts = { ...input, kind, ...(mediaType === undefined ? {} : { mediaType }), byteLength }
  if (kind === 'image') return { ...facts, ...imageSize(bytes) }
  if (kind === 'audio') return { ...facts, seconds: secondsOf(bytes, mediaType) }
  if (kind === 'document' && isPdf(mediaType, bytes)) return { ...facts, pages: pagesOf(bytes) }
  return facts
}

/** A file may be a picture or sound; its media type says so. */
function kindOfType(mediaType: string | undefined): MediaKind | undefined {
  const [type] = mediaType?.split('/') ?? []
  return type === 'image' || type === 'audio' || type === 'video' ? type : undefined
}

// Cameras put previews and colour profiles before the size of a picture.
const IMAGE_WINDOWS = [4 * 1024, 64 * 1024, 1024 * 1024]

function imageSize(bytes: Base64Bytes): { width: number; height: number } | undefined {
  for (const length of IMAGE_WINDOWS) {
    const window = bytes.read(0, length)
    if (/^GIF8[79]a/.test(window.toString('latin1', 0, 6)) && window.length >= 10)
      return { width: window.readUInt16LE(6), height: window.readUInt16LE(8) }
    const header = imageHeader([window])
    if (header !== undefined) return { width: header.width, height: header.height }
    if (bytes.byteLength <= length) return undefined
  }
  return undefined
}

/** Raw samples as OpenAI takes them: 24,000 a second of two bytes each. */
const PCM_BYTES_PER_SECOND = 48_000
/** For formats that are not read: speech at 16 kbit/s, below what their encoders usually make. */
const FEWEST_BYTES_PER_SECOND = 2_000

function secondsOf(bytes: Base64Bytes, mediaType: string | undefined): number {
  if (/\/(?:pcm|l16)/.test(mediaType ?? '')) return bytes.byteLength / PCM_BYTES_PER_SECOND
  return audioHeader(bytes)?.seconds ?? bytes.byteLength / FEWEST_BYTES_PER_SECOND
}

/** For files whose page tree is compressed: less than a page of text takes with its share of the fonts. */
const FEWEST_BYTES_PER_PAGE = 4_000

function pagesOf(bytes: Base64Bytes): number {
  return pdfPages(bytes) ?? Math.ceil(bytes.byteLength / FEWEST_BYTES_PER_PAGE)
}

function isPdf(mediaType: string | undefined, bytes: Base64Bytes): boolean {
  return mediaType === 'application/pdf' || bytes.read(0, 5).toString('latin1') === '%PDF-'
}

/** A `data:` URL, or base64 without one, and not the address of something elsewhere. */
export function isInline(text: string): boolean {
  return /^data:/i.test(text) || !/^[a-z][a-z0-9+.-]*:/i.test(text.slice(0, 32))
}

/** JSON of a body without the strings that hold media, or undefined if none of them does. */
export function textBeside(inputs: readonly MediaInput[], body: object): Buffer | undefined {
  if (inputs.length === 0) return undefined
  const held = new Map<unknown, number>()
  for (const { data } of inputs) if (data !== undefined) held.set(data, (held.get(data) ?? 0) + 1)
  if (held.size === 0) return undefined
  const beside = JSON.stringify(body, (_name, value: unknown) => {
    const left = held.get(value) ?? 0
    if (left === 0) return value
    // A text that repeats the data of a picture is text.
    held.set(value, left - 1)
    return ''
  })
  return Buffer.from(beside)
}
