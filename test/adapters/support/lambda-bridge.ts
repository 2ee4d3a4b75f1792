import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** An answer as a bridge hands it to the serverless host. */
export interface BridgedAnswer {
  readonly status: number
  readonly contentLength: number
  readonly body: Buffer
}

/**
 * Calls a request listener as the Lambda bridges `serverless-http` and `@codegenie/serverless-express` do: with a response whose
 * socket is a plain object. The socket ignores the encoding of a string, and `write` returns `writeResult`.
 */
export function callBridged(
  listener: RequestListener,
  { url, writeResult }: { readonly url: string; readonly writeResult: true | undefined },
): Promise<BridgedAnswer> {
  const request = new IncomingMessage({ remoteAddress: '10.0.0.1', destroy: () => undefined } as unknown as Socket)
  Object.assign(request, { method: 'GET', url, httpVersion: '1.1', httpVersionMajor: 1, complete: true })
  request.push(null)
  const response = new ServerResponse(request)
  const chunks: Buffer[] = []
  const socket = {
    writable: true,
    on: () => undefined,
    removeListener: () => undefined,
    destroy: () => undefined,
    cork: () => undefined,
    uncork: () => undefined,
    write: (data: string | Uint8Array, encoding?: unknown, callback?: unknown) => {
      chunks.push(Buffer.from(data as string))
      for (const done of [encoding, callback]) if (typeof done === 'function') done()
      return writeResult
    },
  }
  response.useChunkedEncodingByDefault = false
  response.assignSocket(socket as unknown as Socket)
  return new Promise((resolve) => {
    response.on('finish', () => {
      const bytes = Buffer.concat(chunks)
      const headEnd = bytes.indexOf('\r\n\r\n')
      const contentLength = Number(/content-length: (\d+)/i.exec(bytes.toString('latin1', 0, headEnd))?.[1])
      resolve({ status: response.statusCode, contentLength, body: bytes.subarray(headEnd + 4) })
    })
    listener(request, response)
  })
}
