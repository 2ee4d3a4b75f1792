import { Buffer } from 'node:buffer'
import { audioHeader } from '../wire/audio/audio-header.ts'
import { Base64Bytes } from '../wire/base64.ts'
import { imageHeader, pdfPages } from '../wire/image-header.ts'

export const MEDIA_KINDS = ['image', 'audio', 'video', 'document', 'conversation'] as const

/** Kind of a media input. `conversation` is a history that the vendor stores. */
export type MediaKind = (typeof MEDIA_KINDS)[number]

/** An input of a request that is not text of its body. */
export interface MediaInput {
  readonly kind: MediaKind
  /** The base64 string or `data:` URL of the body. If omitted, only the vendor knows the size. */
  readonly data?: string
  /** Media type in lower case: `application/pdf`. Defaults to the type of the `data:` URL, if any. */
  readonly mediaType?: string
  /** Requested level of detail: `low`, `high`, `original`. */
  readonly detail?: string
  /** Maximum tokens of the input, set by the request. */
  readonly maxTokens?: number
}

/** Facts that the headers of an input state. Unknown facts are omitted. */
export interface MediaFacts extends Omit<MediaInput, 'data'> {
  /** Length in bytes. If omitted, the bytes are elsewhere and nothing else is known. */
  readonly byteLength?: number
  /** Width in pixels. */
  readonly width?: number
  readonly height?: number
  /** Duration of audio. */
  readonly seconds?: number
  /** Number of pages of a PDF file. */
  readonly pages?: number
}

/** Tokens held for an input whose size only the vendor knows, by the kind of input. */
export type UnknownInputBounds = { readonly [Kind in MediaKind]?: number }

/** Bounds for all models, with other bounds for some models by public id. */
export interface UnknownInputTokens extends UnknownInputBounds {
  readonly models?: Readonly<Record<string, UnknownInputBounds>>
}

/** How a vendor counts inputs other than text. */
export interface MediaRules {
  /** Returns an upper bound of the tokens of an input, or `undefined` if the vendor publishes no rule for it. */
  tokens(media: MediaFacts, upstream: string): number | undefined
  /** Maximum input tokens of a call, or `undefined` if unknown. */
  contextTokens(upstream: string): number | undefined
}

const DATA_URL = /^data:([^;,]*)[^,]*,/i
/** Longest prefix of a `data:` URL before its data. */
const MAX_PREFIX = 256

/** Reads the headers of an input, up to a bounded number of bytes. */
export function mediaFacts({ data, ...input }: MediaInput): MediaFacts {
  if (data === undefined) return input
  const prefix = DATA_URL.exec(data.slice(0, MAX_PREFIX))
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

/** The kind `document` may be an image or audio; its media type decides. */
function kindOfType(mediaType: string | undefined): MediaKind | undefined {
  const [type] = mediaType?.split('/') ?? []
  return type === 'image' || type === 'audio' || type === 'video' ? type : undefined
}

// Cameras write previews and colour profiles before the size of an image.
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

/** Raw samples in OpenAI's format: 24,000 per second of two bytes each. */
const PCM_BYTES_PER_SECOND = 48_000
/** For formats that are not parsed: speech at 16 kbit/s, below the usual rate of their encoders. */
const MIN_BYTES_PER_SECOND = 2_000

function secondsOf(bytes: Base64Bytes, mediaType: string | undefined): number {
  if (/\/(?:pcm|l16)/.test(mediaType ?? '')) return bytes.byteLength / PCM_BYTES_PER_SECOND
  return audioHeader(bytes)?.seconds ?? bytes.byteLength / MIN_BYTES_PER_SECOND
}

/** For files with a compressed page tree: less than a page of text and its share of the fonts. */
const MIN_BYTES_PER_PAGE = 4_000

function pagesOf(bytes: Base64Bytes): number {
  return pdfPages(bytes) ?? Math.ceil(bytes.byteLength / MIN_BYTES_PER_PAGE)
}

function isPdf(mediaType: string | undefined, bytes: Base64Bytes): boolean {
  return mediaType === 'application/pdf' || bytes.read(0, 5).toString('latin1') === '%PDF-'
}

/** Whether the text is a `data:` URL or bare base64, rather than an address. */
export function isInline(text: string): boolean {
  return /^data:/i.test(text) || !/^[a-z][a-z0-9+.-]*:/i.test(text.slice(0, 32))
}

/** Returns the JSON of a body without its media strings, or `undefined` if no input has one. */
export function textBeside(inputs: readonly MediaInput[], body: object): Buffer | undefined {
  if (inputs.length === 0) return undefined
  const held = new Map<unknown, number>()
  for (const { data } of inputs) if (data !== undefined) held.set(data, (held.get(data) ?? 0) + 1)
  if (held.size === 0) return undefined
  const beside = JSON.stringify(body, (_name, value: unknown) => {
    const left = held.get(value) ?? 0
    if (left === 0) return value
    // A string that repeats the data of an image is text.
    held.set(value, left - 1)
    return ''
  })
  return Buffer.from(beside)
}
