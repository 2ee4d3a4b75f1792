import type { Base64Bytes } from './base64.ts'

/** Facts from the first bytes of an image file. */
export interface ImageHeader {
  readonly format: 'png' | 'jpeg' | 'webp'
  /** Width in pixels as stored, before any EXIF rotation; 1 or more. */
  readonly width: number
  /** Height in pixels as stored, before any EXIF rotation; 1 or more. */
  readonly height: number
  /**
   * Whether the file has an alpha channel. PNG: color types 4 and 6 (a palette with transparent colors does not count). WebP: the
   * alpha flag of its header. JPEG has none.
   */
  readonly hasAlpha: boolean
}

/**
 * Reads the header of a PNG (PNG specification, "IHDR"), JPEG (ITU-T T.81, annex B) or WebP file (RFC 9649). Reads only the
 * necessary bytes. Returns undefined for other files, for a file that ends before its size, and for a size of zero. Never throws.
 */
export function imageHeader(chunks: readonly Uint8Array[]): ImageHeader | undefined {
  const reader = new ChunkReader(chunks)
  const header = pngHeader(reader) ?? jpegHeader(reader) ?? webpHeader(reader)
  return header !== undefined && header.width > 0 && header.height > 0 ? header : undefined
}

function pngHeader(reader: ChunkReader): ImageHeader | undefined {
  const bytes = reader.read(0, 26)
  if (bytes === undefined || bytes.toString('latin1', 0, 16) !== '\x89PNG\r\n\x1a\n\0\0\0\rIHDR') return undefined
  const colourType = bytes.readUInt8(25)
  return {
    format: 'png',
    width: bytes.readUInt32BE(16),
    height: bytes.readUInt32BE(20),
    hasAlpha: colourType === 4 || colourType === 6,
  }
}

// Real files have a few dozen segments before their size. The limit stops the scan of a file that has only tiny segments.
const MAX_SEGMENTS = 1_000

function jpegHeader(reader: ChunkReader): ImageHeader | undefined {
  if (reader.read(0, 2)?.readUInt16BE() !== 0xffd8) return undefined
  let position = 2
  for (let count = 0; count < MAX_SEGMENTS; count++) {
    const start = reader.read(position, 2)
    if (start === undefined || start.readUInt8(0) !== 0xff) return undefined
    const marker = start.readUInt8(1)
    if (marker === 0xff) {
      // Any number of fill bytes may precede a marker.
      position++
      continue
    }
    if (isFrame(marker)) {
      const frame = reader.read(position + 5, 4)
      if (frame === undefined) return undefined
      return { format: 'jpeg', height: frame.readUInt16BE(0), width: frame.readUInt16BE(2), hasAlpha: false }
    }
    // Image data or the end came before a size.
    if (marker === 0xda || marker === 0xd9) return undefined
    const length = reader.read(position + 2, 2)?.readUInt16BE() ?? 0
    if (length < 2) return undefined
    position += 2 + length
  }
  return undefined
}

/** SOF0 to SOF15; three numbers among them are DHT, JPG and DAC. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
}

function webpHeader(reader: ChunkReader): ImageHeader | undefined {
  const bytes = reader.read(0, 30) ?? reader.read(0, 25)
  if (bytes === undefined || bytes.toString('latin1', 0, 4) !== 'RIFF' || bytes.toString('latin1', 8, 12) !== 'WEBP') {
    return undefined
  }
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return lossyHeader(bytes)
    case 'VP8L':
      return losslessHeader(bytes)
    case 'VP8X':
      return extendedHeader(bytes)
    default:
      return undefined
  }
}

function lossyHeader(bytes: Buffer): ImageHeader | undefined {
  const isKeyFrame = bytes.length >= 30 && (bytes.readUInt8(20) & 1) === 0
  if (!isKeyFrame || bytes.readUIntBE(23, 3) !== 0x9d012a) return undefined
  // The upper two bits of each number are a scale for the display.
  const width = bytes.readUInt16LE(26) & 0x3fff
  return { format: 'webp', width, height: bytes.readUInt16LE(28) & 0x3fff, hasAlpha: false }
}

function losslessHeader(bytes: Buffer): ImageHeader | undefined {
  const bits = bytes.readUInt32LE(21)
  // A signature byte, 14 bits for each side, one bit for alpha, and a version that must be zero.
  if (bytes.readUInt8(20) !== 0x2f || bits >>> 29 !== 0) return undefined
  return {
    format: 'webp',
    width: (bits & 0x3fff) + 1,
    height: ((bits >>> 14) & 0x3fff) + 1,
    hasAlpha: ((bits >>> 28) & 1) === 1,
  }
}

function extendedHeader(bytes: Buffer): ImageHeader | undefined {
  if (bytes.length < 30) return undefined
  return {
    format: 'webp',
    width: bytes.readUIntLE(24, 3) + 1,
    height: bytes.readUIntLE(27, 3) + 1,
    hasAlpha: (bytes.readUInt8(20) & 0x10) !== 0,
  }
}

/** Random access to chunked bytes, without joining them. Forward reads are fastest. */
class ChunkReader {
  readonly #chunks: readonly Uint8Array[]
  // The chunk of the last read and its offset.
  #index = 0
  #start = 0

  constructor(chunks: readonly Uint8Array[]) {
    this.#chunks = chunks
  }

  /** Returns a copy of `length` bytes from `offset`, or undefined if there are fewer. Intended for a few bytes at a time. */
  read(offset: number, length: number): Buffer | undefined {
    if (offset < this.#start) {
      this.#index = 0
      this.#start = 0
    }
    this.#moveTo(offset)
    const bytes = Buffer.alloc(length)
    let filled = 0
    let index = this.#index
    let from = offset - this.#start
    while (filled < length) {
      const chunk = this.#chunks[index]
      if (chunk === undefined) return undefined
      const piece = chunk.subarray(from, from + length - filled)
      bytes.set(piece, filled)
      filled += piece.byteLength
      index++
      from = 0
    }
    return bytes
  }

  #moveTo(offset: number): void {
    let chunk = this.#chunks[this.#index]
    while (chunk !== undefined && offset >= this.#start + chunk.byteLength) {
      this.#start += chunk.byteLength
      this.#index++
      chunk = this.#chunks[this.#index]
    }
  }
}

const WINDOW_BYTES = 64 * 1024
const LINEARIZED_BYTES = 1024

/**
 * Returns the number of pages of a PDF file (ISO 32000-1), from its linearization dictionary or the root of its page tree. Reads the
 * first and the last 64 KiB. Undefined if neither is there in plain text, because newer files compress the tree. Never throws.
 */
export function pdfPages(bytes: Base64Bytes): number | undefined {
  const start = bytes.read(0, WINDOW_BYTES).toString('latin1')
  if (!start.slice(0, LINEARIZED_BYTES).includes('%PDF-')) return undefined
  const head = start.slice(0, LINEARIZED_BYTES)
  if (head.includes('/Linearized')) {
    const stated = positive(/\/N\s+(\d{1,9})\b/.exec(head)?.[1])
    if (stated !== undefined) return stated
  }
  const end = bytes.read(Math.max(0, bytes.byteLength - WINDOW_BYTES), WINDOW_BYTES).toString('latin1')
  let most: number | undefined
  for (const text of bytes.byteLength > WINDOW_BYTES ? [start, end] : [start]) {
    // Nodes below the root count only their own pages, so the highest count belongs to the root.
    for (const [, count] of text.matchAll(/\/Count\s+(\d{1,9})\b/g)) most = Math.max(most ?? 0, positive(count) ?? 0)
  }
  return most === 0 ? undefined : most
}

function positive(digits: string | undefined): number | undefined {
  const value = Number(digits ?? 0)
  return value > 0 ? value : undefined
}
