import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listen } from '../../support/listen.ts'

/** A call as the vendor got it. */
export interface ArrivedCall {
  readonly path: string
  readonly byteLength: number
  /** SHA-256 of the body, hexadecimal. */
  readonly digest: string
}

/** A vendor behind a real socket that gives every call the same answer, in pieces that are written one after another. */
export interface ScriptedVendor {
  readonly origin: string
  readonly calls: readonly ArrivedCall[]
  close(): Promise<void>
}

/** Starts a scripted vendor. Its content type identifies a stream. */
export async function scriptedVendor(
  contentType: string,
  pieces: readonly (string | Buffer)[],
): Promise<ScriptedVendor> {
  const calls: ArrivedCall[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const hash = createHash('sha256')
    let byteLength = 0
    for await (const chunk of request) {
      hash.update(chunk as Buffer)
      byteLength += (chunk as Buffer).byteLength
    }
    calls.push({ path: request.url ?? '', byteLength, digest: hash.digest('hex') })
    response.writeHead(200, { 'content-type': contentType })
    for (const piece of pieces) response.write(piece)
    response.end()
  }
  const server = createServer((request, response) => {
    answer(request, response).catch((error: Error) => response.destroy(error))
  })
  const { origin, close } = await listen(server)
  return {
    origin,
    calls,
    close,
  }
}
