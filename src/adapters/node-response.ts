import { ServerResponse } from 'node:http'
import { Socket } from 'node:net'

// Headers for which the gateway's values are appended to those of the host.
const ADDED = new Set(['vary', 'set-cookie'])

/**
 * Writes status and headers (a flat list). Headers of middleware are kept unless the list names them; `vary` and `set-cookie` are
 * appended.
 */
export function writeResponseHead(response: ServerResponse, status: number, headers: readonly string[]): void {
  // Middleware that replaces `writeHead` may support only headers that are set one by one. `writeHead` itself replaces `vary`
  // and, on Node 20, drops repeated headers once any header has been set.
  if (response.writeHead === ServerResponse.prototype.writeHead && response.getHeaderNames().length === 0) {
    response.writeHead(status, headers as string[])
    return
  }
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index]!
    const value = headers[index + 1]!
    if (ADDED.has(name) || namedBefore(headers, index)) response.appendHeader(name, value)
    else response.setHeader(name, value)
  }
  response.writeHead(status)
}

/**
 * Node keeps the text of a sent head until the answer ends, as a tree of its pieces: 2 kB of an open stream. Reading a character
 * makes V8 join them.
 */
export function flattenHead(response: ServerResponse & { readonly _header?: unknown }): void {
  const { _header: head } = response
  if (typeof head === 'string') head.charCodeAt(0)
}

/**
 * Maximum number of bytes that wait for the end of the turn. A waiting body is joined to its head: Node puts a string into one
 * buffer with the head, and bytes after it.
 */
export const HELD_BYTES = 8 * 1024

export function isHeldBack(response: ServerResponse, bytes: Uint8Array | string | undefined): bytes is Uint8Array {
  return bytes instanceof Uint8Array && bytes.length <= HELD_BYTES && isPlain(response)
}

/**
 * Returns whether writes go to a socket of the system: no middleware has replaced them, and it is not HTTP/2. Bridges to
 * serverless hosts use a response object that ignores the encoding of a string and may keep the bytes.
 */
export function isPlain(response: ServerResponse): boolean {
  const { write, end } = ServerResponse.prototype
  // A pipelined response has no socket yet.
  return response.write === write && response.end === end && (response.socket ?? response.req.socket) instanceof Socket
}

export function endResponse(response: ServerResponse, text: string): void {
  try {
    response.end(text, 'latin1')
  } catch (error) {
    // Other work of the turn must continue.
    response.destroy(error instanceof Error ? error : undefined)
  }
}

function namedBefore(headers: readonly string[], index: number): boolean {
  for (let earlier = 0; earlier < index; earlier += 2) if (headers[earlier] === headers[index]) return true
  return false
}
