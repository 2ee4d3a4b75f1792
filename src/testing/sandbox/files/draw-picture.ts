import { createHash } from 'node:crypto'
import { crc32, deflateSync } from 'node:zlib'
import { encodeJpeg } from '../pictures/encode-jpeg.ts'
import { encodeWebp } from '../pictures/encode-webp.ts'

/** File formats that {@link drawPicture} writes. */
export type PictureFormat = 'png' | 'jpeg' | 'webp'

/** A picture to draw. */
export interface PictureRequest {
  /** Pixels, 1 to 16,384. */
  readonly width: number
  /** Pixels, 1 to 16,384. */
  readonly height: number
  /** PNG with a palette, baseline JPEG, lossless WebP. */
  readonly format: PictureFormat
  /** Equal seeds give equal bytes; the colours and the number of bands come from it. */
  readonly seed: string
}

// The most that a WebP file can hold.
const LONGEST_SIDE = 16_384

const ENCODERS = { png: encodePng, jpeg: encodeJpeg, webp: encodeWebp } as const

/**
 * Draws bands in four colours that shift from row to row, as a complete file without alpha that any viewer opens. Of 2048 by
 * 2048 pixels, WebP takes 2 KB, PNG 11 KB and JPEG 80 KB. Throws RangeError when a side is no whole number from 1 to 16,384.
 */
export function drawPicture({ width, height, format, seed }: PictureRequest): Uint8Array {
  for (const side of [width, height]) {
    if (!Number.isInteger(side) || side < 1 || side > LONGEST_SIDE) {
      throw new RangeError(`a picture's side must be a whole number from 1 to ${LONGEST_SIDE}, not ${side}`)
    }
  }
  return ENCODERS[format](colourBands(width, height, seed))
}

/** Red, green and blue, 0 to 255 each. */
export type Colour = readonly [number, number, number]

/** A pattern of columns and rows; where they cross stands the colour `(column + row) % 4`. */
export interface ColourBands {
  /** Pixels. */
  readonly width: number
  /** Pixels. */
  readonly height: number
  /** Four different colours. */
  readonly colours: readonly Colour[]
  /** The column, from 0 on, of a pixel's distance from the left. */
  columnOf(x: number): number
  /** The row, from 0 on, of a pixel's distance from the top. */
  rowOf(y: number): number
}

/** The pattern of a seed: its four colours and 3 to 10 columns and rows. */
export function colourBands(width: number, height: number, seed: string): ColourBands {
  const digest = createHash('sha256').update(seed).digest()
  // A quarter of the range for each colour's red, so that no two of the four are equal.
  const colours = [0, 1, 2, 3].map((index): Colour => {
    const at = index * 3
    return [index * 64 + (digest.readUInt8(at) % 64), digest.readUInt8(at + 1), digest.readUInt8(at + 2)]
  })
  const columns = 3 + (digest.readUInt8(12) % 8)
  const rows = 3 + (digest.readUInt8(13) % 8)
  return {
    width,
    height,
    colours,
    columnOf: (x) => Math.floor((x * columns) / width),
    rowOf: (y) => Math.floor((y * rows) / height),
  }
}

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
const PIXELS_PER_BYTE = 4
const FILTER_UP = 2

/** A PNG file with a palette of four colours, two bits for a pixel (PNG specification, third edition). */
export function encodePng(bands: ColourBands): Uint8Array {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(bands.width, 0)
  header.writeUInt32BE(bands.height, 4)
  // Bit depth 2, colour type 3: palette. Compression, filter and interlace methods are 0.
  header.set([2, 3], 8)
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('PLTE', Buffer.from(bands.colours.flat())),
    chunk('IDAT', deflateSync(scanlines(bands), { level: 1 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** Only the first line of a row holds pixels; the filter says of the others that they equal the line above. */
function scanlines(bands: ColourBands): Buffer {
  const lineBytes = 1 + Math.ceil(bands.width / PIXELS_PER_BYTE)
  const lines = Buffer.alloc(lineBytes * bands.height)
  let previousRow = -1
  for (let y = 0; y < bands.height; y++) {
    const row = bands.rowOf(y)
    const start = y * lineBytes
    if (row === previousRow) {
      lines[start] = FILTER_UP
      continue
    }
    previousRow = row
    for (let x = 0; x < bands.width; x++) {
      const colour = (bands.columnOf(x) + row) % 4
      const at = start + 1 + Math.floor(x / PIXELS_PER_BYTE)
      lines[at] = (lines[at] ?? 0) | (colour << (6 - 2 * (x % PIXELS_PER_BYTE)))
    }
  }
  return lines
}

function chunk(type: string, data: Buffer): Buffer {
  const bytes = Buffer.alloc(12 + data.length)
  bytes.writeUInt32BE(data.length, 0)
  bytes.write(type, 4, 'latin1')
  bytes.set(data, 8)
  bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + data.length)), 8 + data.length)
  return bytes
}
