import { ServerResponse } from 'node:http'

// Headers of the host to which the gateway's own are appended instead of replacing them.
const ADDED = new Set(['vary', 'set-cookie'])

/**
 * Writes status and headers (a flat list). Headers that middleware has set are kept unless the list names them; `vary` and
 * `set-cookie` are appended.
 */
export function writeResponseHead(response: ServerResponse, status: number, headers: readonly string[]): void {
  // Middleware that replaces `writeHead` may handle only headers set one by one; `writeHead` itself replaces `vary` and, on
  // Node 20, drops repeated headers once any header has been set.
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

function namedBefore(headers: readonly string[], index: number): boolean {
  for (let earlier = 0; earlier < index; earlier += 2) if (headers[earlier] === headers[index]) return true
  return false
}
