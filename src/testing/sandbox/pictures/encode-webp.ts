import type { ColourBands } from '../files/draw-picture.ts'
import { LowFirstBits } from './bit-writer.ts'
import { FixedPrefixCode } from './fixed-prefix-code.ts'

const LENGTH_CODES = 24
const LONGEST_COPY = 4096
// Codes of the two distances used (RFC 9649, section 5.2.2): the pixel above, and the pixel to the left.
const ABOVE = 0
const LEFT = 1
const OPAQUE = 255

/** A lossless WebP file (RFC 9649): first lines of rows as pixels and runs, all else as copies of the line above. */
export function encodeWebp(bands: ColourBands): Uint8Array {
  const bits = new LowFirstBits()
  bits.add(0x2f, 8)
  bits.add(bands.width - 1, 14)
  bits.add(bands.height - 1, 14)
  // No alpha and version 0; no transform, no colour cache, no meta prefix codes.
  bits.add(0, 1 + 3)
  bits.add(0, 1 + 1 + 1)
  writeImage(bits, bands)
  const data = bits.finish()
  const padding = Buffer.alloc(data.length % 2)
  return Buffer.concat([
    Buffer.from('RIFF'),
    doubleWord(4 + 8 + data.length + padding.length),
    Buffer.from('WEBPVP8L'),
    doubleWord(data.length),
    data,
    padding,
  ])
}

function writeImage(bits: LowFirstBits, bands: ColourBands): void {
  const lengths = Array.from({ length: LENGTH_CODES }, (_, code) => 256 + code)
  const green = new FixedPrefixCode(256 + LENGTH_CODES, [...bands.colours.map((colour) => colour[1]), ...lengths])
  const red = new FixedPrefixCode(
    256,
    bands.colours.map((colour) => colour[0]),
  )
  const blue = new FixedPrefixCode(
    256,
    bands.colours.map((colour) => colour[2]),
  )
  const alpha = new FixedPrefixCode(256, [OPAQUE])
  const distance = new FixedPrefixCode(40, [ABOVE, LEFT])
  for (const code of [green, red, blue, alpha, distance]) code.describe(bits)

  const copy = (count: number, from: number): void => {
    for (let left = count; left > 0; left -= LONGEST_COPY) {
      writeLength(bits, green, Math.min(left, LONGEST_COPY))
      distance.write(bits, from)
    }
  }
  for (const rowBand of runs(bands.height, bands.rowOf)) {
    for (const columnBand of runs(bands.width, bands.columnOf)) {
      const [r, g, b] = bands.colours[(columnBand.band + rowBand.band) % bands.colours.length] ?? [0, 0, 0]
      green.write(bits, g)
      red.write(bits, r)
      blue.write(bits, b)
      alpha.write(bits, OPAQUE)
      copy(columnBand.pixels - 1, LEFT)
    }
    copy((rowBand.pixels - 1) * bands.width, ABOVE)
  }
}

/** A length is a prefix code and the bits that it leaves open (RFC 9649, section 5.2.2). */
function writeLength(bits: LowFirstBits, green: FixedPrefixCode, length: number): void {
  const value = length - 1
  if (value < 4) {
    green.write(bits, 256 + value)
    return
  }
  const highest = 31 - Math.clz32(value)
  const openBits = highest - 1
  green.write(bits, 256 + 2 * highest + ((value >> openBits) & 1))
  bits.add(value & ((1 << openBits) - 1), openBits)
}

interface Run {
  readonly band: number
  readonly pixels: number
}

/** Neighbouring pixels of one band, in order. */
function runs(side: number, bandOf: (position: number) => number): Run[] {
  const found: Run[] = []
  let start = 0
  for (let position = 1; position <= side; position++) {
    if (position < side && bandOf(position) === bandOf(start)) continue
    found.push({ band: bandOf(start), pixels: position - start })
    start = position
  }
  return found
}

function doubleWord(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
