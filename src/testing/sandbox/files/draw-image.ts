import { createHash } from 'node:crypto'
import { crc32, deflateSync } from 'node:zlib'

/** File formats that {@link drawPicture} writes. */
export type PictureFormat = 'png' | 'jpeg' | 'webp'

/** An image to draw. */
export interface PictureRequest {
  /** Width in pixels, 1 to 16,384. */
  readonly width: number
  /** Height in pixels, 1 to 16,384. */
  readonly height: number
  /** PNG with a palette, baseline JPEG, or lossless WebP. */
  readonly format: PictureFormat
  /** Seed of the content. Equal seeds produce equal bytes. */
  readonly seed: string
}

// Maximum side of a WebP file, in pixels.
const MAX_SIDE = 16_384

/**
 * Draws an image as a complete file without alpha that any viewer opens: a PNG of bands in four colours, a JPEG or WebP of one
 * colour, all from the seed. At 2048 by 2048 pixels, PNG takes 11 KB, JPEG 74 KB and WebP 34 bytes. Throws RangeError if a side is
 * not an integer from 1 to 16,384.
 */
export function drawPicture({ width, height, format, seed }: PictureRequest): Uint8Array {
  for (const side of [width, height]) {
    if (!Number.isInteger(side) || side < 1 || side > MAX_SIDE)
      throw new RangeError(`a picture's side must be a whole number from 1 to ${MAX_SIDE}, not ${side}`)
  }
  if (format === 'png') return encodePng(colourBands(width, height, seed))
  const colour = createHash('sha256').update(seed).digest()
  return format === 'jpeg' ? plainJpeg(width, height, colour) : plainWebp(width, height, colour)
}

const JPEG_FIRST_DIVISORS = [25, 94, 163]
const JPEG_HEIGHT = 232
const JPEG_WIDTH = 234
const JPEG_SCAN = 305
const FIRST_BLOCK_BITS = 21
const EQUAL_BLOCK_BITS = 9

/** Returns the JPEG fixture with another size and colour, its block repeated over the whole image. */
function plainJpeg(width: number, height: number, colour: Uint8Array): Uint8Array {
  const fixture = Buffer.from(ONE_PIXEL_JPEG, 'base64')
  for (const [index, at] of JPEG_FIRST_DIVISORS.entries()) fixture[at] = 1 + ((colour[index] ?? 0) & 127)
  fixture.writeUInt16BE(height, JPEG_HEIGHT)
  fixture.writeUInt16BE(width, JPEG_WIDTH)
  const blocks = Math.ceil(width / 8) * Math.ceil(height / 8)
  const bits = FIRST_BLOCK_BITS + (blocks - 1) * EQUAL_BLOCK_BITS
  const scan = Buffer.alloc(Math.ceil(bits / 8))
  // The fixture's scan ends with three one bits that fill its last byte. Here they follow the last block.
  scan.writeUIntBE(fixture.readUIntBE(JPEG_SCAN, 3) & ~7, 0, 3)
  const last = scan.length - 1
  scan.writeUInt8(scan.readUInt8(last) | ((1 << (scan.length * 8 - bits)) - 1), last)
  return Buffer.concat([fixture.subarray(0, JPEG_SCAN), scan, fixture.subarray(JPEG_SCAN + 3)])
}

/**
 * Returns a lossless WebP file (RFC 9649). Each of its five prefix codes has a single symbol, which takes no bits, so an image of
 * one colour is only a header, whatever its size.
 */
function plainWebp(width: number, height: number, [red = 0, green = 0, blue = 0]: Uint8Array): Uint8Array {
  const opaque = 255
  const file = Buffer.alloc(34)
  file.write('RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f', 'latin1')
  file.writeUInt32LE((width - 1) | ((height - 1) << 14), 21)
  // No transform, colour cache or meta codes: three zero bits. Then the codes: 1 (simple), 0 (one symbol), 1 (of eight bits).
  const codes = [green, red, blue, opaque, 0].reduceRight(
    (bits, symbol) => (bits << 11n) | BigInt(5 | (symbol << 3)),
    0n,
  )
  file.writeBigUInt64LE(codes << 3n, 25)
  return file
}

/** Red, green and blue, 0 to 255 each. */
type Colour = readonly [number, number, number]

/** A pattern of columns and rows. A crossing has the colour `(column + row) % 4`. */
interface ColourBands {
  /** Width in pixels. */
  readonly width: number
  /** Height in pixels. */
  readonly height: number
  /** Four different colours. */
  readonly colours: readonly Colour[]
  /** Returns the column, from 0, at a pixel's distance from the left. */
  columnOf(x: number): number
  /** Returns the row, from 0, at a pixel's distance from the top. */
  rowOf(y: number): number
}

/** Returns the pattern of a seed: its four colours and 3 to 10 columns and rows. */
export function colourBands(width: number, height: number, seed: string): ColourBands {
  const digest = createHash('sha256').update(seed).digest()
  // Each colour has its own quarter of the range of red, so that no two of the four are equal.
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

/** Returns a PNG file with a palette of four colours, two bits per pixel (PNG specification, third edition). */
function encodePng(bands: ColourBands): Uint8Array {
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

/** Only the first line of a row has pixels; the filter marks the others as equal to the line above. */
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

/**
 * A JPEG file of one pixel, as base64 (ITU-T T.81, JFIF). Three tables of divisors, for Y, Cb and Cr, have their first entries at
 * 25, 94 and 163; the height and the width are at 232 and 234. The scan, from 305 to the end mark, is 21 bits of one block: its
 * distances from middle grey are 7, 7 and -7 eighths of the first divisors. In its Huffman tables, a block that equals the one
 * before is nine zero bits.
 */
const ONE_PIXEL_JPEG =
  '/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAj/2wBDAQgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAj/2wBDAggICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAj/wAARCAABAAEDAREAAhEBAxEC/8QAFQAAAQEAAAAAAAAAAAAAAAAAAAP/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/9oADAMBAAIAAwAAPwBcuQf/2Q=='

/** One frame of H.264. */
export interface H264Picture {
  /** Configuration of the decoder: an `avcC` record with the sequence and picture parameters (ISO/IEC 14496-15, 5.3.3.1). */
  readonly configuration: string
  /** The slice, without a start code or a length. */
  readonly slice: string
}

/**
 * Frames of one blue (#3a7ca5) in each video size that the stand-ins render, as base64: H.264, Main profile, one independent slice.
 * Created with ffmpeg 5.1 and libx264: `ffmpeg -f lavfi -i color=c=0x3a7ca5:s=1280x720 -frames:v 1 -profile:v main -pix_fmt yuv420p
 * -crf 40 -preset veryslow`.
 */
export const H264_PICTURES: ReadonlyMap<string, H264Picture> = new Map(
  `
832x480 AU1AFv/hABhnTUAW2gNA9sBEAAADAAQAAAMACDxYuoABAAVo7wOSyA== ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAAAMAA2gMVmgYAkR5+AAAAwARUAQQA/AE/AjIEPAkoFcBDwLoCzAhwIcAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAJOB
480x832 AU1AFv/hABhnTUAW2geBpsBEAAADAAQAAAMACDxYuoABAAVo7wOSyA== ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMCSWxAu4yG3w7YAACegAqJCz/PxW3szFSvVU8pcAAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwACzw==
624x624 AU1AFv/hABhnTUAW2gJwT7ARAAADAAEAAAMAAg8WLqABAAVo7wOSyA== ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAABLNAUEKGTvhikAAACxgCqBmBJBDBLhjiLjaGSKAWYswAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAAgIQ==
1280x720 AU1AH//hABhnTUAf2gFAFuwEQAAAAwBAAAADAIPGDKgBAAVo7wOSyA== ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAAAMAAAMBII7T/bCPZE10AAADAAADAHyAAKaAAT0AAygAC/AAOsABAQAEqAAd4ACiAAQwACIAARAAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMABAU=
720x1280 AU1AH//hABhnTUAf2gLQKGwEQAAAAwBAAAADAIPGDKgBAAVo7wOSyA== ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAAAMAWz+PvCDe/uuvAAADAAggAqYJYCiA6QV4MMGgDfCCBfBIA5QAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMCAw==
960x960 AU1AH//hABhnTUAf2gPAebARAAADAAEAAAMAAg8YMqABAAVo7wOSyA== ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAAAMAAD36zxvlv6moiMAAAAMACxgBFgBAwBSQCPAEUAJcAWQBGQC+ALgAiACIAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAAGzQ==
1088x832 AU1AH//hABhnTUAf2gEQGmwEQAAAAwBAAAADAIPGDKgBAAVo7wOSyA== ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAAAMAAAmMbJnldHsia6AAAAMAACHAASEAE9ABkAAvwAdYAPsAJUAHSAFEAECAEQAEQAAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwNn
832x1088 AU1AH//hABhnTUAf2gNAImwEQAAAAwBAAAADAIPGDKgBAAVo7wOSyA== ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAAAMAA2gMVmgYAkR5+AAAAwARUAQQA/AE/AjIEPAkoFcBDwLoCzAhwIcAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAFvB
1104x832 AU1AH//hABhnTUAf2gEUGmwEQAAAAwBAAAADAIPGDKgBAAVo7wOSyA== ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAAAMAAAfRHUMJdHsia6AAAAMAABuQAOEADUABHQAX4ALcAGqADYAB4gBDQA0QAlgAdgAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAJqE=
832x1104 AU1AH//hABhnTUAf2gNAIuwEQAAAAwBAAAADAIPGDKgBAAVo7wOSyA== ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAAAMAA2gMVmgYAkR5+AAAAwARUAQQA/AE/AjIEPAkoFcBDwLoCzAhwIcAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAAMAAt8=
1920x1080 AU1AKP/hABlnTUAo2gHgCJ+XARAAAAMAEAAAAwAg8YMqAQAFaO8Dksg= ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAAAMAAAMAAEnjtP9sI9kTXQAAAwAAAwAACAAAAwACmgAAAwE9AAADAMoAAAMAvwAAAwDrAAADAQoAAAMBKgAAAwHiAAADAogAAARAAAAIgAAAEQAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwBbwQ==
1080x1920 AU1AKP/hABlnTUAo2gEQDx5fARAAAAMAEAAAAwAg8YMqAQAFaO8Dksg= ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAAAMAAAmMbJnldHsia6AAAAMAACHAASEAE9ABkAAvwAdYAPsAJUAHSAFEAECAEQAEQAAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwA4oQ==
1440x1440 AU1AKP/hABhnTUAo2gFoC1sBEAAAAwAQAAADACDxgyoBAAVo7wOSyA== ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAAAMAAAMAM41Nicsj2RNdAAADAAADAAWUAAFNAABsAAA+AAAj4AAW4AAVAAAUgAAZoAAXwAAgIAAlgAAyAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAABNQQ==
1632x1248 AU1AKP/hABhnTUAo2gGYCdsBEAAAAwAQAAADACDxgyoBAAVo7wOSyA== ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAAAMAAAMABoWpsTlkeyJroAAAAwAAAwAWoAAApoAABsAAAH8AAAj4AAC3AAAVwAACkAAAZoAAC+AAAgIAAEsAAAyAAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAUN
1248x1632 AU1AKP/hABhnTUAo2gE4DNsBEAAAAwAQAAADACDxgyoBAAVo7wOSyA== ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAAAMAAAMBmGpsTlkeyJroAAADAAADAWEAApoABsAAHoAAj4AC3AAWYACWAARwACGgAWwADRAAiAAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwNn
1648x1248 AU1AKP/hABhnTUAo2gGcCdsBEAAAAwAQAAADACDxgyoBAAVo7wOSyA== ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAAAMAAAMABYIPsTlkeyJroAAAAwAAAwATEAAAcoAABPQAAD+AAAPMAABFQAAFcAAAlgAADxAAAXwAADaAAAYoAAEQAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAAADAABswQ==
1248x1648 AU1AKP/hABhnTUAo2gE4DPsBEAAAAwAQAAADACDxgyoBAAVo7wOSyA== ZYiEBWv+oD4+BQthBvyYRowH+5PjnI4mnepOldQ/v04AAAMAAAMAAAMAAAMBmGpsTlkeyJroAAADAAADAWEAApoABsAAHoAAj4AC3AAWYACWAARwACGgAWwADRAAiAAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwAAAwBNQQ==
`
    .trim()
    .split('\n')
    .map((row) => {
      const [size = '', configuration = '', slice = ''] = row.split(' ')
      return [size, { configuration, slice }]
    }),
)
