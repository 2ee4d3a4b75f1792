import { ServerResponse } from 'node:http'

// A host's header that the gateway's own adds to instead of replacing.
const ADDED = new Set(['vary', 'set-cookie'])

/**
 * Writes status and headers (a flat list). Headers that middlewares set before are kept unless the list names them;
 * `vary` and `set-cookie` are added to.
 */
export function writeResponseHead(response: ServerResponse, status: number, headers: readonly string[]): void {
  // A middleware that replaced `writeHead` may know only headers set one by one, and `writeHead` itself replaces `vary`
  // and, on Node 20, loses repeated headers once any header has been set before.
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
