// @ts-check
import { crc32, deflateSync } from 'node:zlib'

/**
 * Draws a mask: a PNG with alpha, black in the upper half and transparent in the lower half, where an edit may draw.
 * @param {number} width pixels
 * @param {number} height pixels
 */
export function drawMask(width, height) {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  // Eight bits each of red, green, blue and alpha (PNG specification, "IHDR").
  header.set([8, 6], 8)
  // Each line begins with the number of its filter; none is 0.
  const opaque = Buffer.concat([Buffer.of(0), ...Array.from({ length: width }, () => Buffer.of(0, 0, 0, 255))])
  const clear = Buffer.alloc(1 + 4 * width)
  const lines = Array.from({ length: height }, (_, line) => (line < height / 2 ? opaque : clear))
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.concat(lines))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/**
 * @param {string} type
 * @param {Buffer} content
 */
function chunk(type, content) {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content])
  const numbers = Buffer.alloc(8)
  numbers.writeUInt32BE(content.length, 0)
  numbers.writeUInt32BE(crc32(body), 4)
  return Buffer.concat([numbers.subarray(0, 4), body, numbers.subarray(4)])
}
