import type { Colour, ColourBands } from '../files/draw-picture.ts'
import { H264Bits } from './h264-bits.ts'

/** A film as units of H.264, without start codes. */
export interface H264Film {
  readonly sequenceParameters: Buffer
  readonly pictureParameters: Buffer
  /** One unit for each picture; only the first can be decoded without the one before it. */
  readonly pictures: readonly Buffer[]
}

/** Pixels of a macroblock's side. */
export const MACROBLOCK_SIDE = 16
/** Macroblocks in a picture, by the level 4.0 that the film announces (ITU-T H.264, table A-1). */
export const MAX_MACROBLOCKS = 8192

// Header bytes: importance for later pictures, and the type of the unit (ITU-T H.264, table 7-1).
const SEQUENCE_UNIT = 0x67
const PICTURE_UNIT = 0x68
const FIRST_SLICE_UNIT = 0x65
const LATER_SLICE_UNIT = 0x41

// With these a level of brightness counts 8 and one of colour 4 (ITU-T H.264, 8.5.10 and 8.5.11).
const QUANTISER = 46
const COLOUR_QUANTISER_OFFSET = -10
const BRIGHTNESS_STEP = 8
const COLOUR_STEP = 4

const FRAME_NUMBER_BITS = 4

/** Macroblock types of a picture that stands alone, 16 by 16 pixels predicted at once (ITU-T H.264, table 7-11). */
const FROM_ABOVE = 1
const FROM_MEAN = 3
const FROM_MEAN_WITH_COLOUR = 7
const COLOUR_FROM_MEAN = 0
const COLOUR_FROM_ABOVE = 2

/** Codes for the coefficients of a block: none, a single 1 or -1, a single other one (ITU-T H.264, table 9-5). */
const BRIGHTNESS_CODES = { none: '1', unit: '01', other: '000101' }
const COLOUR_CODES = { none: '01', unit: '1', other: '000111' }

type Levels = readonly [brightness: number, blue: number, red: number]
const MIDDLE: Levels = [0, 0, 0]

/**
 * A film of columns in the colours of the pattern, that stand still: H.264, Constrained Baseline, level 4.0. The first
 * picture says where a column begins and copies downwards; the others repeat it. Sides must be even.
 */
export function encodeH264(bands: ColourBands, pictureCount: number): H264Film {
  const columns = Math.ceil(bands.width / MACROBLOCK_SIDE)
  const rows = Math.ceil(bands.height / MACROBLOCK_SIDE)
  const pictures = [firstPicture(bands, columns, rows)]
  while (pictures.length < pictureCount) pictures.push(repeatedPicture(pictures.length, columns * rows))
  return {
    sequenceParameters: sequenceParameters(bands, columns, rows),
    pictureParameters: pictureParameters(),
    pictures,
  }
}

function sequenceParameters({ width, height }: ColourBands, columns: number, rows: number): Buffer {
  const bits = new H264Bits().add(66, 8).add(0xc0, 8).add(40, 8)
  // Number of the set, frame numbers of 4 bits, pictures shown in the order they come, one of them kept, without gaps.
  bits
    .addUnsigned(0)
    .addUnsigned(FRAME_NUMBER_BITS - 4)
    .addUnsigned(2)
    .addUnsigned(1)
    .add(0, 1)
  bits.addUnsigned(columns - 1).addUnsigned(rows - 1)
  // Whole frames, direct prediction by 8 by 8 blocks, and what is cut off right and below, in pairs of pixels.
  bits.add(1, 1).add(1, 1).add(1, 1)
  bits.addUnsigned(0).addUnsigned((columns * MACROBLOCK_SIDE - width) / 2)
  bits.addUnsigned(0).addUnsigned((rows * MACROBLOCK_SIDE - height) / 2)
  return bits.add(0, 1).unit(SEQUENCE_UNIT)
}

function pictureParameters(): Buffer {
  const bits = new H264Bits().addUnsigned(0).addUnsigned(0).add(0, 2)
  // One group of slices, one picture to refer to in each list, no weights.
  bits.addUnsigned(0).addUnsigned(0).addUnsigned(0).add(0, 3)
  bits
    .addSigned(QUANTISER - 26)
    .addSigned(0)
    .addSigned(COLOUR_QUANTISER_OFFSET)
  // Slices say whether edges are smoothed.
  return bits.add(1, 1).add(0, 2).unit(PICTURE_UNIT)
}

function firstPicture(bands: ColourBands, columns: number, rows: number): Buffer {
  const bits = new H264Bits().addUnsigned(0).addUnsigned(7).addUnsigned(0).add(0, FRAME_NUMBER_BITS).addUnsigned(0)
  bits.add(0, 2).addSigned(0)
  withoutSmoothing(bits)
  const levels = bands.colours.map(levelsOf)
  let previous = MIDDLE
  for (let column = 0; column < columns; column++) {
    const wanted = levels[bands.columnOf(column * MACROBLOCK_SIDE) % levels.length] ?? previous
    addTopMacroblock(bits, previous, wanted)
    previous = wanted
  }
  for (let count = columns * (rows - 1); count > 0; count--) {
    bits.addUnsigned(FROM_ABOVE).addUnsigned(COLOUR_FROM_ABOVE).addSigned(0)
    addLevel(bits, 0, BRIGHTNESS_CODES)
  }
  return bits.unit(FIRST_SLICE_UNIT)
}

/** The first macroblock of all is predicted as middle grey, the others of the row as their left neighbour. */
function addTopMacroblock(bits: H264Bits, previous: Levels, wanted: Levels): void {
  const isChanged = wanted !== previous
  bits
    .addUnsigned(isChanged ? FROM_MEAN_WITH_COLOUR : FROM_MEAN)
    .addUnsigned(COLOUR_FROM_MEAN)
    .addSigned(0)
  addLevel(bits, wanted[0] - previous[0], BRIGHTNESS_CODES)
  if (!isChanged) return
  addLevel(bits, wanted[1] - previous[1], COLOUR_CODES)
  addLevel(bits, wanted[2] - previous[2], COLOUR_CODES)
}

/** A block with no other coefficient than its mean (ITU-T H.264, 9.2). */
function addLevel(bits: H264Bits, level: number, codes: typeof BRIGHTNESS_CODES): void {
  if (level === 0) {
    addText(bits, codes.none)
    return
  }
  if (Math.abs(level) === 1) {
    addText(bits, codes.unit)
    bits.add(level < 0 ? 1 : 0, 1)
  } else {
    addText(bits, codes.other)
    const code = 2 * Math.abs(level) - (level < 0 ? 3 : 4)
    if (code < 14) bits.add(1, code + 1)
    else if (code < 30) bits.add(1, 15).add(code - 14, 4)
    else bits.add(1, 16).add(code - 30, 12)
  }
  // No zeros before the coefficient.
  bits.add(1, 1)
}

function addText(bits: H264Bits, code: string): void {
  bits.add(Number.parseInt(code, 2), code.length)
}

/** A picture that skips all macroblocks and so equals the one before it. */
function repeatedPicture(index: number, macroblocks: number): Buffer {
  const frameNumber = index % 2 ** FRAME_NUMBER_BITS
  const bits = new H264Bits().addUnsigned(0).addUnsigned(5).addUnsigned(0).add(frameNumber, FRAME_NUMBER_BITS)
  bits.add(0, 3).addSigned(0)
  withoutSmoothing(bits)
  return bits.addUnsigned(macroblocks).unit(LATER_SLICE_UNIT)
}

function withoutSmoothing(bits: H264Bits): void {
  bits.addUnsigned(1)
}

/** Distances from middle grey (ITU-R BT.601), in steps. */
function levelsOf([red, green, blue]: Colour): Levels {
  return [
    Math.round((16 + 0.257 * red + 0.504 * green + 0.098 * blue - 128) / BRIGHTNESS_STEP),
    Math.round((0.439 * blue - 0.148 * red - 0.291 * green) / COLOUR_STEP),
    Math.round((0.439 * red - 0.368 * green - 0.071 * blue) / COLOUR_STEP),
  ]
}
