import { crc32, deflateSync } from 'node:zlib'

/** A black square as a PNG file (PNG specification, section 5). */
export function drawPng(side) {
  const head = Buffer.alloc(13)
  head.writeUInt32BE(side, 0)
  head.writeUInt32BE(side, 4)
  // Eight bits, red, green and blue.
  head.set([8, 2, 0, 0, 0], 8)
  const rows = Buffer.alloc(side * (1 + side * 3))
  const signature = Buffer.from('89504e470d0a1a0a', 'hex')
  return Buffer.concat([
    signature,
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type, data) {
  const typed = Buffer.concat([Buffer.from(type), data])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(data.byteLength, 0)
  frame.writeUInt32BE(crc32(typed), 4)
  return Buffer.concat([frame.subarray(0, 4), typed, frame.subarray(4)])
}
