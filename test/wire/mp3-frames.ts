/** Facts in the frames of an MP3 file. */
export interface Mp3Frames {
  readonly frames: number
  readonly sampleRate: number
  readonly kilobits: number
  readonly channels: number
  readonly seconds: number
}

// MPEG-2, layer III (ISO/IEC 13818-3): one granule of 576 samples a frame.
const KILOBITS = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
const SAMPLE_RATES = [22_050, 24_000, 16_000]
const SAMPLES_PER_FRAME = 576

/** Walks a file from frame to frame; throws where the next one does not begin where the last one ends. */
export function mp3Frames(file: Uint8Array): Mp3Frames {
  let position = 0
  let frames = 0
  let last = { sampleRate: 0, kilobits: 0, channels: 0 }
  while (position < file.length) {
    const [sync = 0, version = 0, rates = 0, mode = 0] = file.subarray(position, position + 4)
    if (sync !== 0xff || (version & 0xfe) !== 0xf2) throw new Error(`no MPEG-2 layer III frame at byte ${position}`)
    const kilobits = KILOBITS[rates >> 4] ?? 0
    const sampleRate = SAMPLE_RATES[(rates >> 2) & 3] ?? 0
    last = { sampleRate, kilobits, channels: mode >> 6 === 3 ? 1 : 2 }
    position += Math.floor((72_000 * kilobits) / sampleRate) + ((rates >> 1) & 1)
    frames++
  }
  if (position !== file.length) throw new Error('the last frame is cut')
  return { frames, ...last, seconds: (frames * SAMPLES_PER_FRAME) / last.sampleRate }
}
