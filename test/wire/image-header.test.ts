import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ImageHeader, imageHeader } from '../../src/wire/image-header.ts'
import { cut } from './support/write-form.ts'

const ascii = (text: string): Buffer => Buffer.from(text, 'latin1')
const bytes = (...values: number[]): Buffer => Buffer.from(values)

function png(width: number, height: number, colourType: number): Buffer {
  const sides = Buffer.alloc(8)
  sides.writeUInt32BE(width, 0)
  sides.writeUInt32BE(height, 4)
  return Buffer.concat([ascii('\x89PNG\r\n\x1a\n\0\0\0\rIHDR'), sides, bytes(8, colourType, 0, 0, 0)])
}

const segment = (marker: number, content: Buffer): Buffer =>
  Buffer.concat([bytes(0xff, marker, (content.length + 2) >> 8, (content.length + 2) & 0xff), content])
const frame = (marker: number, width: number, height: number): Buffer =>
  segment(marker, bytes(8, height >> 8, height & 0xff, width >> 8, width & 0xff, 3))
const jpeg = (...segments: Buffer[]): Buffer => Buffer.concat([bytes(0xff, 0xd8), ...segments])

const webp = (kind: string, data: Buffer): Buffer =>
  Buffer.concat([ascii('RIFF\0\0\0\0WEBP'), ascii(kind), Buffer.alloc(4), data])
const lossy = (width: number, height: number, first = 0): Buffer =>
  bytes(first, 0, 0, 0x9d, 0x01, 0x2a, width & 0xff, width >> 8, height & 0xff, height >> 8)
function lossless(width: number, height: number, upperBits = 0): Buffer {
  const data = Buffer.alloc(5, 0x2f)
  data.writeUInt32LE(((width - 1) | ((height - 1) << 14) | (upperBits << 28)) >>> 0, 1)
  return data
}
function extended(width: number, height: number, flags: number): Buffer {
  const data = Buffer.alloc(10)
  data.writeUInt8(flags, 0)
  data.writeUIntLE(width - 1, 4, 3)
  data.writeUIntLE(height - 1, 7, 3)
  return data
}

const header = (format: ImageHeader['format'], width: number, height: number, hasAlpha = false): ImageHeader => ({
  format,
  width,
  height,
  hasAlpha,
})

const KNOWN: readonly [string, Buffer, ImageHeader][] = [
  ['PNG in colour', png(640, 480, 2), header('png', 640, 480)],
  ['PNG in grey', png(1, 1, 0), header('png', 1, 1)],
  ['PNG with a palette', png(7, 9, 3), header('png', 7, 9)],
  ['PNG in grey with alpha', png(3, 4, 4), header('png', 3, 4, true)],
  ['PNG in colour with alpha', png(3, 4, 6), header('png', 3, 4, true)],
  ['PNG with the largest sides, unsigned', png(0xffffffff, 0x80000000, 6), header('png', 4294967295, 2147483648, true)],
  ['baseline JPEG', jpeg(frame(0xc0, 640, 480)), header('jpeg', 640, 480)],
  ['progressive JPEG with the largest sides', jpeg(frame(0xc2, 65535, 65535)), header('jpeg', 65535, 65535)],
  ['arithmetic JPEG', jpeg(frame(0xcf, 5, 6)), header('jpeg', 5, 6)],
  [
    'JPEG after EXIF with a thumbnail, tables and fill bytes',
    jpeg(
      segment(0xe1, Buffer.concat([ascii('Exif\0\0'), jpeg(frame(0xc0, 16, 12))])),
      segment(0xc4, Buffer.alloc(40)),
      segment(0xcc, bytes(1)),
      bytes(0xff, 0xff, 0xff),
      frame(0xc1, 300, 200),
    ),
    header('jpeg', 300, 200),
  ],
  [
    'JPEG after 20 long segments',
    jpeg(...Array.from({ length: 20 }, () => segment(0xe2, Buffer.alloc(65_533))), frame(0xc0, 9, 8)),
    header('jpeg', 9, 8),
  ],
  ['lossy WebP', webp('VP8 ', lossy(640, 480)), header('webp', 640, 480)],
  ['lossy WebP with a scale', webp('VP8 ', lossy(640 | 0x4000, 480 | 0xc000)), header('webp', 640, 480)],
  ['lossless WebP', webp('VP8L', lossless(1, 16384)), header('webp', 1, 16384)],
  ['lossless WebP with alpha', webp('VP8L', lossless(16384, 1, 1)), header('webp', 16384, 1, true)],
  ['extended WebP', webp('VP8X', extended(640, 480, 0x2c)), header('webp', 640, 480)],
  [
    'extended WebP with alpha and the largest sides',
    webp('VP8X', extended(1 << 24, 1 << 24, 0x10)),
    header('webp', 1 << 24, 1 << 24, true),
  ],
]

test.each(KNOWN)('%s is known by its header, however it is cut', (_title, file, expected) => {
  expect(imageHeader([file])).toEqual(expected)
  expect(imageHeader([Buffer.alloc(0), ...cut(file, 1000), Buffer.alloc(0)])).toEqual(expected)
  expect(imageHeader(cut(Buffer.concat([file, Buffer.from('more')]), file.length > 1000 ? 11 : 1))).toEqual(expected)
})

test('a file in plain byte arrays is known as well', () => {
  expect(imageHeader([new Uint8Array(png(2, 3, 2))])).toEqual(header('png', 2, 3))
})

test('a header that is cut short is not known', () => {
  for (const [title, file] of KNOWN) {
    // After the size of a JPEG comes the number of its components, which nobody reads here; the same goes for PNG's tail.
    const needed = title.includes('JPEG') ? file.length - 1 : Math.min(file.length, title.includes('PNG') ? 26 : 30)
    for (let length = Math.max(0, needed - 40); length < needed; length++) {
      expect(imageHeader([file.subarray(0, length)]), `${title}, ${length} bytes`).toBeUndefined()
    }
  }
})

describe('no header is seen in', () => {
  test.each<[string, Buffer]>([
    ['nothing', Buffer.alloc(0)],
    ['a GIF', ascii('GIF89a\x10\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0')],
    ['a PNG without a size', png(0, 5, 2)],
    ['a PNG whose first chunk is another', Buffer.concat([ascii('\x89PNG\r\n\x1a\n\0\0\0\rPLTE'), Buffer.alloc(20)])],
    ['a JPEG without a height', jpeg(frame(0xc0, 5, 0))],
    ['a JPEG whose picture begins before its size', jpeg(segment(0xda, Buffer.alloc(8)), frame(0xc0, 5, 5))],
    ['a JPEG that ends before its size', jpeg(bytes(0xff, 0xd9), frame(0xc0, 5, 5))],
    ['a JPEG with a segment of no length', jpeg(bytes(0xff, 0xe0, 0, 0), frame(0xc0, 5, 5))],
    ['a JPEG with bytes between its segments', jpeg(bytes(0, 0), frame(0xc0, 5, 5))],
    [
      'a JPEG of nothing but tiny segments',
      jpeg(...Array.from({ length: 5000 }, () => bytes(0xff, 0xe0, 0, 2)), frame(0xc0, 5, 5)),
    ],
    ['a WebP of an unknown kind', webp('ICCP', Buffer.alloc(20))],
    ['a lossy WebP that begins with a delta', webp('VP8 ', lossy(5, 5, 1))],
    ['a lossy WebP without its start code', webp('VP8 ', Buffer.alloc(10))],
    ['a lossy WebP without a size', webp('VP8 ', lossy(0, 5))],
    ['a lossless WebP of another version', webp('VP8L', lossless(5, 5, 2))],
    ['a lossless WebP without its signature', webp('VP8L', Buffer.alloc(10))],
    ['a RIFF file of another kind', Buffer.concat([ascii('RIFF\0\0\0\0WAVEVP8L'), Buffer.alloc(20)])],
  ])('%s', (_title, file) => {
    expect(imageHeader([file])).toBeUndefined()
  })
})

test('any bytes are read without an error, and sides are never below 1', () => {
  const starts = fc.constantFrom(...KNOWN.map(([, file]) => file.subarray(0, 30)), Buffer.alloc(0))
  fc.assert(
    fc.property(
      starts,
      fc.integer({ min: 0, max: 30 }),
      fc.uint8Array({ maxLength: 60 }),
      fc.integer({ min: 1, max: 9 }),
      (start, kept, noise, size) => {
        const found = imageHeader(cut(Buffer.concat([start.subarray(0, kept), noise]), size))

        expect(found === undefined || (found.width >= 1 && found.height >= 1)).toBe(true)
      },
    ),
    { numRuns: 2_000 },
  )
})
