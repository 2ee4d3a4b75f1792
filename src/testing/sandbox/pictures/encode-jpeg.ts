import type { Colour, ColourBands } from '../files/draw-picture.ts'
import { HighFirstBits } from './bit-writer.ts'

// A block is 8 by 8 pixels; with one sample of colour for each pixel, a unit of the scan is one block of Y, Cb and Cr.
const BLOCK_SIDE = 8

// Codes of the tables below (T.81, tables K.3 to K.6, shortened to what flat blocks need).
// The number of codes of each length, then the symbols: the size in bits of a step of brightness or colour.
const STEP_CODE_COUNTS = [0, 1, 5, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
const STEP_SIZES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
// One code of one bit: nothing but the end of the block.
const DETAIL_CODE_COUNTS = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
const END_OF_BLOCK = 0
// Three times the code of no step and the end of a block; by these tables all of them are zeros.
const UNCHANGED_UNIT_BITS = 9
// With a divisor of 8 for the mean of a block, a step of 1 is one level of brightness.
const DIVISORS = new Array<number>(64).fill(8)

/** A baseline JPEG file (ITU-T T.81, JFIF) of flat blocks; the edges of bands fall on the edges of blocks. */
export function encodeJpeg(bands: ColourBands): Uint8Array {
  return Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    segment(0xe0, [...Buffer.from('JFIF\0'), 1, 1, 0, 0, 1, 0, 1, 0, 0]),
    segment(0xdb, [0, ...DIVISORS]),
    segment(0xc0, [8, ...word(bands.height), ...word(bands.width), 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]),
    segment(0xc4, [0x00, ...STEP_CODE_COUNTS, ...STEP_SIZES]),
    segment(0xc4, [0x10, ...DETAIL_CODE_COUNTS, END_OF_BLOCK]),
    segment(0xda, [3, 1, 0, 2, 0, 3, 0, 0, 63, 0]),
    scan(bands),
    Buffer.from([0xff, 0xd9]),
  ])
}

function scan(bands: ColourBands): Buffer {
  const bits = new HighFirstBits()
  const codes = stepCodes()
  const levels = bands.colours.map(levelsOf)
  const blockColumns = Math.ceil(bands.width / BLOCK_SIDE)
  const columns = Array.from({ length: blockColumns }, (_, block) => bands.columnOf(block * BLOCK_SIDE))
  let previous: Colour = [0, 0, 0]
  for (let y = 0; y < bands.height; y += BLOCK_SIDE) {
    const row = bands.rowOf(y)
    for (const column of columns) {
      const unit = levels[(column + row) % levels.length] ?? previous
      if (unit === previous) {
        bits.add(0, UNCHANGED_UNIT_BITS)
        continue
      }
      for (let component = 0; component < 3; component++) {
        const step = (unit[component] ?? 0) - (previous[component] ?? 0)
        const size = 32 - Math.clz32(Math.abs(step))
        const { code, length } = codes.get(size) ?? { code: 0, length: 0 }
        bits.add(code, length)
        // Steps down are written as their distance from the lowest one of the size (T.81, F.1.2.1).
        bits.add((step < 0 ? step + 2 ** size - 1 : step) << 1, size + 1)
      }
      previous = unit
    }
  }
  return bits.finish()
}

/** Y, Cb and Cr less 128 (JFIF, "Conversion to and from RGB"). */
function levelsOf([red, green, blue]: Colour): Colour {
  return [
    Math.round(0.299 * red + 0.587 * green + 0.114 * blue) - 128,
    Math.round(-0.1687 * red - 0.3313 * green + 0.5 * blue),
    Math.round(0.5 * red - 0.4187 * green - 0.0813 * blue),
  ]
}

interface StepCode {
  readonly code: number
  readonly length: number
}

/** The codes that a table of counts stands for (T.81, annex C). */
function stepCodes(): ReadonlyMap<number, StepCode> {
  const codes = new Map<number, StepCode>()
  let code = 0
  let index = 0
  STEP_CODE_COUNTS.forEach((count, position) => {
    for (let taken = 0; taken < count; taken++)
      codes.set(STEP_SIZES[index++] ?? 0, { code: code++, length: position + 1 })
    code <<= 1
  })
  return codes
}

function segment(marker: number, content: readonly number[]): Buffer {
  return Buffer.from([0xff, marker, ...word(content.length + 2), ...content])
}

function word(value: number): [number, number] {
  return [value >> 8, value & 0xff]
}
