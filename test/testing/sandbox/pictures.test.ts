import { createHash } from 'node:crypto'
import { crc32, inflateSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { colourBands, drawPicture, type PictureFormat } from '../../../src/testing/sandbox/files/draw-image.ts'
import { imageHeader } from '../../../src/wire/image-header.ts'

const FORMATS: readonly PictureFormat[] = ['png', 'jpeg', 'webp']
const draw = (format: PictureFormat, width: number, height: number, seed = 'seed'): Buffer =>
  Buffer.from(drawPicture({ format, width, height, seed }))

describe.each(FORMATS)('a %s file', (format) => {
  test.each([
    [1, 1],
    [2, 3],
    [17, 1],
    [1, 300],
    [1024, 1536],
    [4096, 4096],
    [16_384, 3],
    [3, 16_384],
  ])('has a header with its size, %i by %i pixels, and no alpha', (width, height) => {
    expect(imageHeader([draw(format, width, height)])).toEqual({ format, width, height, hasAlpha: false })
  })

  test('is the same for the same seed, and another for another', () => {
    expect(draw(format, 64, 64, 'a')).toEqual(draw(format, 64, 64, 'a'))
    expect(draw(format, 64, 64, 'a')).not.toEqual(draw(format, 64, 64, 'b'))
  })

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 16_385, 2 ** 32])('cannot have a side of %d', (side) => {
    expect(() => draw(format, side, 8)).toThrow(RangeError)
    expect(() => draw(format, 8, side)).toThrow(RangeError)
  })

  test('is small at 2048 by 2048 pixels', () => {
    expect(draw(format, 2048, 2048).length).toBeLessThan(100_000)
  })
})

test.each([
  [1, 1],
  [37, 29],
  [130, 64],
])('a PNG of %i by %i pixels holds the bands of its seed', (width, height) => {
  const { chunks, lines } = readPng(draw('png', width, height, 'a cat'))
  const bands = colourBands(width, height, 'a cat')

  expect(chunks.map(({ type }) => type)).toEqual(['IHDR', 'PLTE', 'IDAT', 'IEND'])
  expect([...(chunks[1]?.data ?? [])]).toEqual(bands.colours.flat())
  expect(lines).toEqual(
    Array.from({ length: height }, (_, y) =>
      Array.from({ length: width }, (_unused, x) => (bands.columnOf(x) + bands.rowOf(y)) % 4),
    ),
  )
})

test('the four colours of any seed differ', () => {
  for (let seed = 0; seed < 200; seed++) {
    expect(new Set(colourBands(8, 8, String(seed)).colours.map(String)).size).toBe(4)
  }
})

test('a JPEG is a chain of segments, one scan without stray markers, and an end', () => {
  const file = draw('jpeg', 300, 200)
  const markers: number[] = []
  let position = 2
  while (markers.at(-1) !== 0xda) {
    expect(file.readUInt8(position)).toBe(0xff)
    markers.push(file.readUInt8(position + 1))
    position += 2 + file.readUInt16BE(position + 2)
  }
  const scan = file.subarray(position, -2)

  expect(markers).toEqual([0xe0, 0xdb, 0xdb, 0xdb, 0xc0, 0xc4, 0xc4, 0xda])
  expect([...scan].every((byte, index) => byte !== 0xff || scan[index + 1] === 0)).toBe(true)
  expect(file.subarray(-2)).toEqual(Buffer.from([0xff, 0xd9]))
})

test.each([1, 2, 3, 4, 5])('a WebP counts its own bytes and ends on an even one (seed %i)', (seed) => {
  const file = draw('webp', 33, 44, String(seed))
  const dataBytes = file.readUInt32LE(16)

  expect(file.readUInt32LE(4)).toBe(file.length - 8)
  expect(file.length).toBe(20 + dataBytes + (dataBytes % 2))
})

// libjpeg and libwebp opened these bytes without a warning. Both returned 123 by 77 pixels of one colour.
test.each([
  ['jpeg', 'f04651fff51f6d7a6bc1346c4f3592d1f0b8384d06398acf4fe3d8d6ae311324'],
  ['webp', 'b06ccbbd5e19570777a9a5327bb030f666df67a27cac412343796adb0b8dd8ae'],
] as const)('a %s file has the bytes that decoders were seen to open', (format, hash) => {
  expect(
    createHash('sha256')
      .update(draw(format, 123, 77, 's0'))
      .digest('hex'),
  ).toBe(hash)
})

interface PngChunk {
  readonly type: string
  readonly data: Buffer
}

/** Returns the chunks of a PNG with two bits per pixel, and its pixels as indexes into the palette. */
function readPng(file: Buffer): { readonly chunks: readonly PngChunk[]; readonly lines: readonly number[][] } {
  const chunks: PngChunk[] = []
  for (let position = 8; position < file.length; ) {
    const end = position + 8 + file.readUInt32BE(position)
    expect(file.readUInt32BE(end)).toBe(crc32(file.subarray(position + 4, end)))
    chunks.push({ type: file.toString('latin1', position + 4, position + 8), data: file.subarray(position + 8, end) })
    position = end + 4
  }
  const width = file.readUInt32BE(16)
  const height = file.readUInt32BE(20)
  const packed = inflateSync(chunks.find(({ type }) => type === 'IDAT')?.data ?? Buffer.alloc(0))
  const lineBytes = Math.ceil(width / 4)
  expect(packed.length).toBe((lineBytes + 1) * height)
  let above = Buffer.alloc(lineBytes)
  const lines = Array.from({ length: height }, (_, y) => {
    const start = y * (lineBytes + 1)
    const isUp = packed[start] === 2
    const line = packed
      .subarray(start + 1, start + 1 + lineBytes)
      .map((byte, at) => (isUp ? (byte + (above[at] ?? 0)) & 0xff : byte))
    above = Buffer.from(line)
    return Array.from({ length: width }, (_unused, x) => ((line[x >> 2] ?? 0) >> (6 - 2 * (x & 3))) & 3)
  })
  return { chunks, lines }
}
