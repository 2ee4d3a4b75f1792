import { drawPicture, type PictureFormat } from '../../../src/testing/sandbox/files/draw-image.ts'
import type { FormField, FormFile } from '../../../src/wire/write-form.ts'

/** Returns a text field of a form. */
export function fieldPart(name: string, value: string): FormField {
  return { kind: 'field', name, value }
}

/** Returns a file of a form, in two pieces if it is long enough. */
export function filePart(name: string, bytes: Uint8Array, contentType = 'image/png'): FormFile {
  const chunks = bytes.length < 2 ? [bytes] : [bytes.subarray(0, 9), bytes.subarray(9)]
  return { kind: 'file', name, filename: `${name}.file`, contentType, chunks, byteLength: bytes.length }
}

/** Returns a file with a real image, by default 16 pixels square. */
export function picturePart(
  name: string,
  { width = 16, height = 16, format = 'png' }: { width?: number; height?: number; format?: PictureFormat } = {},
): FormFile {
  return filePart(name, drawPicture({ width, height, format, seed: 'a' }), `image/${format}`)
}

/** Returns the start of a PNG file that claims a size. */
export function claimedPng(width: number, height: number): Uint8Array {
  const png = Buffer.from(drawPicture({ width: 1, height: 1, format: 'png', seed: 'a' }))
  png.writeUInt32BE(width, 16)
  png.writeUInt32BE(height, 20)
  return png
}
