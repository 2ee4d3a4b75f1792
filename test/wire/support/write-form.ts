/** The boundary of the forms that {@link writeForm} writes. */
export const BOUNDARY = 'a-boundary'

/** A `content-type` for forms with {@link BOUNDARY}. */
export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`

/** One part as its header lines and content; text is written as UTF-8. */
export type WrittenPart = readonly [headers: string, content: string | Uint8Array]

/** A form written by hand, so that reading is not checked against our own writing. */
export function writeForm(parts: readonly WrittenPart[]): Buffer {
  const pieces = parts.flatMap(([headers, content]) => [
    Buffer.from(`--${BOUNDARY}\r\n${headers}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([...pieces, Buffer.from(`--${BOUNDARY}--\r\n`)])
}

/** The header line of a text field. */
export const field = (name: string): string => `Content-Disposition: form-data; name="${name}"`

/** The header lines of a file. */
export const file = (name: string, filename: string, type = 'image/png'): string =>
  `Content-Disposition: form-data; name="${name}"; filename="${filename}"\r\nContent-Type: ${type}`

/** The same bytes in pieces of a size, all of them views of one buffer. */
export function cut(bytes: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  )
}
