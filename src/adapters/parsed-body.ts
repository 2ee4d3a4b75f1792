import { mediaType } from '../wire/headers.ts'

const encoder = new TextEncoder()

/**
 * True for the empty object that some body parsers (body-parser 1, in Express 4) put on every request they do not parse.
 * It is a caller's own `{}` only when two bytes were announced.
 */
export function isPlaceholder(body: unknown, contentLength: string | undefined): boolean {
  if (typeof body !== 'object' || body === null || contentLength === '2') return false
  return Object.getPrototypeOf(body) === Object.prototype && Object.keys(body).length === 0
}

/**
 * The bytes of a body that a body parser left on the request after it had read the stream; undefined when they cannot
 * be rebuilt: nothing was kept, or a form with files or nested fields was parsed.
 * JSON is written anew, so white space and repeated members of the caller's own text are lost.
 */
export function parsedBodyBytes(body: unknown, contentType: string | undefined): Uint8Array | undefined {
  if (body === undefined) return undefined
  if (body instanceof Uint8Array) return body
  if (typeof body === 'string') return encoder.encode(body)
  const type = mediaType(contentType)
  if (type.startsWith('multipart/')) return undefined
  if (type === 'application/x-www-form-urlencoded') return formBytes(body)
  const text = JSON.stringify(body)
  return text === undefined ? undefined : encoder.encode(text)
}

function formBytes(body: unknown): Uint8Array | undefined {
  if (typeof body !== 'object' || body === null) return undefined
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(body)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (typeof item !== 'string') return undefined
      form.append(name, item)
    }
  }
  return encoder.encode(form.toString())
}
