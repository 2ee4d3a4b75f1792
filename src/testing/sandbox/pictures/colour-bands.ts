import { createHash } from 'node:crypto'

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
