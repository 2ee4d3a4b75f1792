import { colourBands } from '../pictures/colour-bands.ts'
import { encodeH264, MACROBLOCK_SIDE, MAX_MACROBLOCKS } from './encode-h264.ts'
import { encodeMp4 } from './encode-mp4.ts'

/** A video to draw. */
export interface VideoDrawing {
  /** Pixels; even. */
  readonly width: number
  /** Pixels; even. At most 8192 macroblocks of 16 by 16 pixels in all: a picture of 1920 by 1080 is just smaller. */
  readonly height: number
  /** 34 (one picture) to 600,000. */
  readonly durationMs: number
  /** Equal seeds give equal bytes; the colours and the number of columns come from it. */
  readonly seed: string
}

const PICTURES_PER_SECOND = 30
const MAX_DURATION_MS = 600_000

/**
 * Draws an MP4 file (H.264, 30 pictures a second, no sound) that any player opens: columns in four colours that stand still.
 * 15 seconds of 1920 by 1080 pixels take 15 KB. Throws RangeError when {@link isDrawable} is false.
 */
export function drawVideo(drawing: VideoDrawing): Uint8Array {
  const { width, height, durationMs, seed } = drawing
  if (!isDrawable(drawing)) throw new RangeError(`cannot draw ${durationMs} ms of ${width} by ${height} pixels`)
  const pictureCount = Math.round((durationMs * PICTURES_PER_SECOND) / 1000)
  const film = encodeH264(colourBands(width, height, seed), pictureCount)
  return encodeMp4({ ...film, width, height, picturesPerSecond: PICTURES_PER_SECOND })
}

/** True when the sides and the duration are within the bounds of {@link VideoDrawing}. */
export function isDrawable({ width, height, durationMs }: Omit<VideoDrawing, 'seed'>): boolean {
  const sides = [width, height]
  if (!sides.every((side) => Number.isInteger(side) && side >= 2 && side % 2 === 0)) return false
  const [columns = 0, rows = 0] = sides.map((side) => Math.ceil(side / MACROBLOCK_SIDE))
  return columns * rows <= MAX_MACROBLOCKS && durationMs >= 34 && durationMs <= MAX_DURATION_MS
}
