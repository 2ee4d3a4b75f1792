import { crc32, deflateSync } from 'node:zlib'
import type { ColourBands } from './colour-bands.ts'

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
const PIXELS_PER_BYTE = 4
const FILTER_UP = 2

/** A PNG file with a palette of four colours, two bits for a pixel (PNG specification, third edition). */
export function encodePng(bands: ColourBands): Uint8Array {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(bands.width, 0)
  header.writeUInt32BE(bands.height, 4)
  // Bit depth 2, colour type 3: palette. Compression, filter and interlace methods are 0.
  header.set([2, 3], 8)
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('PLTE', Buffer.from(bands.colours.flat())),
    chunk('IDAT', deflateSync(scanlines(bands), { level: 1 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** Only the first line of a row holds pixels; the filter says of the others that they equal the line above. */
function scanlines(bands: ColourBands): Buffer {
  const lineBytes = 1 + Math.ceil(bands.width / PIXELS_PER_BYTE)
  const lines = Buffer.alloc(lineBytes * bands.height)
  let previousRow = -1
  for (let y = 0; y < bands.height; y++) {
    const row = bands.rowOf(y)
    const start = y * lineBytes
    if (row === previousRow) {
      lines[start] = FILTER_UP
      continue
    }
    previousRow = row
    for (let x = 0; x < bands.width; x++) {
      const colour = (bands.columnOf(x) + row) % 4
      const at = start + 1 + Math.floor(x / PIXELS_PER_BYTE)
      lines[at] = (lines[at] ?? 0) | (colour << (6 - 2 * (x % PIXELS_PER_BYTE)))
    }
  }
  return lines
}

function chunk(type: string, data: Buffer): Buffer {
  const bytes = Buffer.alloc(12 + data.length)
  bytes.writeUInt32BE(data.length, 0)
  bytes.write(type, 4, 'latin1')
  bytes.set(data, 8)
  bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + data.length)), 8 + data.length)
  return bytes
}
