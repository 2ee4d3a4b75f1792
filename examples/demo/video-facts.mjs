// @ts-check

/**
 * Returns length and size of an MP4 file, whose boxes must fill it to its last byte.
 * @param {Buffer} bytes
 * @returns {{ seconds: number, width: number, height: number }} pixels
 * @throws Error for anything else.
 */
export function videoFacts(bytes) {
  const boxes = boxesOf(bytes)
  const movie = boxesOf(boxes.get('moov'))
  const film = movie.get('mvhd')
  const track = boxesOf(movie.get('trak')).get('tkhd')
  const data = boxes.get('mdat')
  if (!boxes.has('ftyp') || film === undefined || track === undefined || data === undefined || data.length === 0) {
    throw new Error(`${bytes.length} bytes are not a complete MP4`)
  }
  // ISO/IEC 14496-12: ticks per second and ticks; both sides in 16.16 bits at the end.
  return {
    seconds: film.readUInt32BE(16) / film.readUInt32BE(12),
    width: track.readUInt16BE(track.length - 8),
    height: track.readUInt16BE(track.length - 4),
  }
}

/**
 * The contents of the boxes of a file or a box, by type; the last one if several have the same type. Empty if the boxes do not fill it.
 * @param {Buffer | undefined} bytes
 * @returns {Map<string, Buffer>}
 */
function boxesOf(bytes = Buffer.alloc(0)) {
  /** @type {Map<string, Buffer>} */
  const boxes = new Map()
  for (let position = 0; position < bytes.length; ) {
    const length = position + 8 <= bytes.length ? bytes.readUInt32BE(position) : 0
    if (length < 8 || position + length > bytes.length) return new Map()
    boxes.set(bytes.toString('latin1', position + 4, position + 8), bytes.subarray(position + 8, position + length))
    position += length
  }
  return boxes
}
