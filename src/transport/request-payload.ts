import { isStreamedBody, type TransportRequest } from './transport.ts'

/** Bodies in chunks are joined up to this size, because undici sends each chunk in a separate write and turn, which costs more. */
const JOINED_BYTES = 16 * 1024

interface RequestPayload {
  readonly headers: string[]
  readonly body: Uint8Array | string | null
}

/**
 * Headers and body for undici, which also accepts iterables (see `dispatch`). Throws if the chunks do not match the
 * `content-length`.
 */
export function payloadOf({ headers, body }: TransportRequest): RequestPayload {
  if (body === null || typeof body === 'string' || body instanceof Uint8Array) {
    return { headers: headers as string[], body }
  }
  if (isStreamedBody(body)) {
    const { byteLength, content } = body
    const withLength = [...headers, 'content-length', String(byteLength)]
    return { headers: withLength, body: content as unknown as Uint8Array }
  }
  const byteLength = body.reduce((sum, piece) => sum + piece.byteLength, 0)
  const given = headerIn(headers, 'content-length')
  if (given !== undefined && given !== String(byteLength)) {
    throw new Error(`the content-length is ${given}, but the body has ${byteLength} bytes`)
  }
  if (byteLength <= JOINED_BYTES) {
    return { headers: headers as string[], body: byteLength === 0 ? null : Buffer.concat(body, byteLength) }
  }
  return {
    headers: given === undefined ? [...headers, 'content-length', String(byteLength)] : (headers as string[]),
    body: body as Iterable<Uint8Array> as Uint8Array,
  }
}

function headerIn(headers: readonly string[], name: string): string | undefined {
  for (let position = 0; position + 1 < headers.length; position += 2) {
    if (headers[position]?.toLowerCase() === name) return headers[position + 1]
  }
  return undefined
}
