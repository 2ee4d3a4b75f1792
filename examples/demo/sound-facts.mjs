// @ts-check

/** Kilobits per second by the number in the header (ISO/IEC 13818-3, MPEG-2, layer III). */
const BIT_RATES = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
/** Samples per second (same source). */
const SAMPLE_RATES = [22_050, 24_000, 16_000]
const SAMPLES_PER_FRAME = 576
const WAV_HEADER_BYTES = 44

/**
 * Returns format and length of an audio file that the gateway has written.
 * @param {Buffer} bytes
 * @returns {{ format: 'mp3' | 'wav', seconds: number }}
 * @throws Error for anything else.
 */
export function soundFacts(bytes) {
  const seconds = mp3Seconds(bytes)
  if (seconds !== undefined) return { format: 'mp3', seconds }
  if (
    bytes.length > WAV_HEADER_BYTES &&
    bytes.toString('latin1', 0, 4) === 'RIFF' &&
    bytes.toString('latin1', 8, 12) === 'WAVE'
  ) {
    // A file that is streamed while it is generated has no length in its header, so the file size decides.
    return { format: 'wav', seconds: (bytes.length - WAV_HEADER_BYTES) / bytes.readUInt32LE(28) }
  }
  throw new Error(`${bytes.length} bytes are not MP3 or WAV`)
}

/**
 * Walks from frame to frame; undefined unless the file is frames from its first byte to its last.
 * @param {Buffer} bytes
 */
function mp3Seconds(bytes) {
  let position = 0
  let seconds = 0
  while (position + 4 <= bytes.length) {
    // Eleven bits of one, MPEG-2, layer III.
    if ((bytes.readUInt16BE(position) & 0xfffe) !== 0xfff2) return undefined
    const settings = bytes.readUInt8(position + 2)
    const bitRate = BIT_RATES[settings >> 4]
    const sampleRate = SAMPLE_RATES[(settings >> 2) & 3]
    if (!bitRate || sampleRate === undefined) return undefined
    position += Math.floor((SAMPLES_PER_FRAME / 8) * ((bitRate * 1000) / sampleRate)) + ((settings >> 1) & 1)
    seconds += SAMPLES_PER_FRAME / sampleRate
  }
  return position > 0 && position === bytes.length ? seconds : undefined
}
