// @ts-check

/** @typedef {{ format: 'png' | 'jpeg' | 'webp', width: number, height: number }} PictureFacts */

/**
 * Returns format and size of an image file, which must be complete.
 * @param {Buffer} bytes
 * @returns {PictureFacts}
 * @throws Error for anything else.
 */
export function pictureFacts(bytes) {
  const facts = pngFacts(bytes) ?? jpegFacts(bytes) ?? webpFacts(bytes)
  if (facts === undefined) throw new Error(`${bytes.length} bytes are not a complete PNG, JPEG or WebP`)
  return facts
}

/**
 * PNG specification, "IHDR" and "IEND".
 * @param {Buffer} bytes
 * @returns {PictureFacts | undefined}
 */
function pngFacts(bytes) {
  const isWhole =
    bytes.toString('latin1', 0, 8) === '\x89PNG\r\n\x1a\n' &&
    bytes.toString('latin1', bytes.length - 8, bytes.length - 4) === 'IEND'
  return isWhole ? { format: 'png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) } : undefined
}

/**
 * ITU-T T.81, annex B: segments with their lengths, up to the frame header, and the mark of the end.
 * @param {Buffer} bytes
 * @returns {PictureFacts | undefined}
 */
function jpegFacts(bytes) {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8 || bytes.readUInt16BE(bytes.length - 2) !== 0xffd9)
    return undefined
  for (let position = 2; position + 9 <= bytes.length; position += 2 + bytes.readUInt16BE(position + 2)) {
    const marker = bytes.readUInt16BE(position)
    // Baseline and progressive.
    if (marker !== 0xffc0 && marker !== 0xffc2) continue
    return { format: 'jpeg', height: bytes.readUInt16BE(position + 5), width: bytes.readUInt16BE(position + 7) }
  }
  return undefined
}

/**
 * RFC 9649: a RIFF file that contains its length; VP8L stores each side minus one in 14 bits.
 * @param {Buffer} bytes
 * @returns {PictureFacts | undefined}
 */
function webpFacts(bytes) {
  if (bytes.length < 30 || bytes.toString('latin1', 0, 4) !== 'RIFF' || bytes.readUInt32LE(4) + 8 !== bytes.length)
    return undefined
  const kind = bytes.toString('latin1', 8, 16)
  if (kind === 'WEBPVP8 ') {
    return { format: 'webp', width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff }
  }
  if (kind === 'WEBPVP8X')
    return { format: 'webp', width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 }
  if (kind !== 'WEBPVP8L') return undefined
  const sides = bytes.readUInt32LE(21)
  return { format: 'webp', width: (sides & 0x3fff) + 1, height: ((sides >>> 14) & 0x3fff) + 1 }
}
