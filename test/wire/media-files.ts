import { Buffer } from 'node:buffer'
import { deflateSync } from 'node:zlib'

/** Files of a few kinds that have the headers of real ones, and any size. */

export function pngFile(width: number, height: number, byteLength = 64): Buffer {
  const head = Buffer.from('89504e470d0a1a0a0000000d494844520000000000000000080200000000000000', 'hex')
  head.writeUInt32BE(width, 16)
  head.writeUInt32BE(height, 20)
  return Buffer.concat([head, Buffer.alloc(Math.max(0, byteLength - head.length), 0xa7)])
}

/** Builds a JPEG whose size comes after a colour profile of `profileBytes` bytes. */
export function jpegFile(width: number, height: number, profileBytes: number): Buffer {
  const segments: Buffer[] = [Buffer.from([0xff, 0xd8])]
  for (let left = profileBytes; left > 0; left -= 60_000) {
    const length = Math.min(left, 60_000)
    segments.push(Buffer.from([0xff, 0xe2, (length + 2) >> 8, (length + 2) & 0xff]), Buffer.alloc(length))
  }
  segments.push(Buffer.from([0xff, 0xc0, 0, 11, 8, height >> 8, height & 0xff, width >> 8, width & 0xff, 3, 0, 0, 0]))
  return Buffer.concat(segments)
}

export function gifFile(width: number, height: number): Buffer {
  const file = Buffer.alloc(32)
  file.write('GIF89a', 'latin1')
  file.writeUInt16LE(width, 6)
  file.writeUInt16LE(height, 8)
  return file
}

/** PCM of 16 bits. */
export function wavFile(seconds: number, rate = 16_000): Buffer {
  const head = Buffer.alloc(44)
  head.write('RIFF', 0, 'latin1')
  head.write('WAVEfmt ', 8, 'latin1')
  head.writeUInt32LE(16, 16)
  head.writeUInt32LE(rate, 24)
  head.writeUInt32LE(rate * 2, 28)
  head.write('data', 36, 'latin1')
  return Buffer.concat([head, Buffer.alloc(seconds * rate * 2)])
}

/** Builds MPEG-1 layer III of 44.1 kHz and 128 kbit/s, after a tag with a cover of a given size. */
export function mp3File(
  seconds: number,
  { coverBytes = 0, frames }: { coverBytes?: number; frames?: number } = {},
): Buffer {
  const tag = Buffer.alloc(coverBytes === 0 ? 0 : 10 + coverBytes)
  if (coverBytes > 0) {
    tag.write('ID3\x04', 'latin1')
    for (let index = 0; index < 4; index++) tag.writeUInt8((coverBytes >>> (7 * (3 - index))) & 0x7f, 6 + index)
  }
  const sound = Buffer.alloc(seconds * 16_000)
  for (let position = 0; position + 4 <= sound.length; position += 417) sound.writeUInt32BE(0xfffb9064, position)
  if (frames !== undefined) {
    sound.write('Xing', 36, 'latin1')
    sound.writeUInt32BE(1, 40)
    sound.writeUInt32BE(frames, 44)
  }
  return Buffer.concat([tag, sound])
}

export function flacFile(seconds: number, rate = 44_100): Buffer {
  const file = Buffer.alloc(4_096)
  file.write('fLaC', 'latin1')
  file.writeUInt8(34, 7)
  file.writeUIntBE(rate << 4, 18, 3)
  file.writeUInt32BE(seconds * rate, 22)
  return file
}

/** Builds an Opus file whose last page ends at `seconds`. */
export function oggFile(seconds: number, byteLength: number): Buffer {
  const file = Buffer.alloc(byteLength)
  file.write('OggS', 'latin1')
  file.writeUInt8(1, 26)
  file.write('OpusHead', 28, 'latin1')
  const page = byteLength - 500
  file.write('OggS', page, 'latin1')
  file.writeBigUInt64LE(BigInt(seconds * 48_000), page + 6)
  return file
}

/** Builds a PDF with a number of pages. Its page tree is plain text, or compressed as in newer files. */
export function pdfFile(pages: number, { isCompressed = false, byteLength = 0 } = {}): Buffer {
  const inner = Math.ceil(pages / 2)
  const tree = `<</Type/Pages/Count ${inner}/Kids[]>> <</Type/Pages /Count ${pages} /Kids[1 0 R]>>`
  const head = Buffer.from('%PDF-1.7\n', 'latin1')
  const body = isCompressed ? deflateSync(tree) : Buffer.from(tree, 'latin1')
  const padding = Buffer.alloc(Math.max(0, byteLength - head.length - body.length), 0x20)
  return Buffer.concat([head, padding, body])
}

/** Builds a PDF that is written for reading over a network. */
export function linearizedPdf(pages: number): Buffer {
  return Buffer.from(`%PDF-1.4\n1 0 obj<</Linearized 1/L 99999/N ${pages}/T 1>>endobj\n${'x'.repeat(5_000)}`, 'latin1')
}

export const dataUrl = (mediaType: string, file: Buffer): string =>
  `data:${mediaType};base64,${file.toString('base64')}`
