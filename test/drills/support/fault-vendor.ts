import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { type CallForm, rightAnswer } from './right-answer.ts'
import { selfSignedCertificate } from './self-signed-certificate.ts'
import { answerRightly, STRIKES, type VendorFault } from './vendor-faults.ts'

/** How a connection to a vendor goes wrong before a request is on it. */
export type ConnectionFault = 'refused' | 'silent TLS' | 'reset in TLS' | 'no TLS' | 'untrusted certificate'

/** All of them. */
export const CONNECTION_FAULTS: readonly ConnectionFault[] = [
  'refused',
  'silent TLS',
  'reset in TLS',
  'no TLS',
  'untrusted certificate',
]

/** A vendor on a port of 127.0.0.1. */
export interface FaultVendor {
  readonly origin: string
  /** Connections that are open now. */
  readonly sockets: ReadonlySet<Socket>
  /** Numbers of the calls that a fault struck. */
  readonly struck: ReadonlySet<number>
  /** Cuts all connections and stops listening. */
  close(): Promise<void>
}

/** Builds a prompt with the number of the call, and the fault that affects it at a faulty vendor. */
export function promptOf(call: number, fault: VendorFault | undefined): string {
  return `call ${call}, fault ${fault ?? 'none'};`
}

const PROMPT = /call (\d+), fault ([\w ]+);/

/**
 * Starts a vendor in OpenAI's dialect on bare sockets. A faulty one does to each request what its prompt says, every time;
 * another one answers all of them.
 */
export async function startFaultVendor({ isFaulty }: { readonly isFaulty: boolean }): Promise<FaultVendor> {
  const struck = new Set<number>()
  const onRequest = (socket: Socket, path: string, body: string): void => {
    const [, call = '', fault = ''] = PROMPT.exec(body) ?? []
    const answer = rightAnswer(formOf(path, body), call)
    const strike = isFaulty ? STRIKES.get(fault as VendorFault) : undefined
    if (strike === undefined) {
      answerRightly(socket, answer)
      return
    }
    struck.add(Number(call))
    strike(socket, answer)
  }
  const started = await listening(
    createServer((socket) => readRequests(socket, onRequest)),
    'http',
  )
  return { ...started, struck }
}

/** Starts a vendor that never gets as far as a request. */
export async function startUnreachableVendor(fault: ConnectionFault): Promise<FaultVendor> {
  switch (fault) {
    case 'refused': {
      const started = await listening(createServer(), 'http')
      await started.close()
      return { ...started, close: async () => {} }
    }
    case 'silent TLS':
      return await listening(
        createServer((socket) => void socket.resume()),
        'https',
      )
    case 'reset in TLS':
      return await listening(
        createServer((socket) => socket.once('data', () => socket.resetAndDestroy())),
        'https',
      )
    case 'no TLS':
      return await listening(
        createServer((socket) => socket.once('data', () => socket.write('HTTP/1.1 400 No\r\n\r\n'))),
        'https',
      )
    case 'untrusted certificate':
      return await listening(createTlsServer(selfSignedCertificate('localhost')), 'https')
  }
}

function formOf(path: string, body: string): CallForm {
  if (path.endsWith('/embeddings')) return 'embeddings'
  if (path.endsWith('/generations')) return 'image'
  return /"stream":\s*true/.test(body) ? 'stream' : 'chat'
}

/** Reads requests from a connection, one after another. */
function readRequests(socket: Socket, onRequest: (socket: Socket, path: string, body: string) => void): void {
  let text = ''
  socket.setNoDelay(true)
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1')
    const headBytes = text.indexOf('\r\n\r\n') + 4
    if (headBytes < 4) return
    const bodyBytes = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? 0)
    if (text.length < headBytes + bodyBytes) return
    const path = text.split(' ', 2)[1] ?? ''
    const body = text.slice(headBytes, headBytes + bodyBytes)
    text = text.slice(headBytes + bodyBytes)
    onRequest(socket, path, body)
  })
}

async function listening(server: Server, scheme: 'http' | 'https'): Promise<FaultVendor> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    // A caller that resets is part of the drill; the close that follows is what counts.
    socket.on('error', () => socket.destroy())
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    origin: `${scheme}://127.0.0.1:${port}`,
    sockets,
    struck: new Set(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}
