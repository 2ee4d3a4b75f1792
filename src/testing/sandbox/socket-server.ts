import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { CallReceiver, VendorConnection } from './delivery-steps.ts'

/** A server on 127.0.0.1 that hands every call to a receiver. */
export interface SocketServer {
  readonly origin: string
  readonly port: number
  /** Sockets that are open now, idle ones included. */
  readonly sockets: ReadonlySet<Socket>
  /** Cuts all connections and stops listening. */
  close(): Promise<void>
}

// Longer than clients keep connections open, so that no connection closes while it is reused.
const KEEP_ALIVE_MS = 120_000

/** Listens on a port of 127.0.0.1, or on a free one for 0. Rejects if the port is unavailable. */
export async function socketServer(port: number, receive: CallReceiver): Promise<SocketServer> {
  const sockets = new Set<Socket>()
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: 0 }, (request, response) => {
    readCall(request, response, receive)
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await listening(server, port)
  const { port: actualPort } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${actualPort}`,
    port: actualPort,
    sockets,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function readCall(request: IncomingMessage, response: ServerResponse, receive: CallReceiver): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const url = request.url ?? ''
    const mark = url.indexOf('?')
    const headers: Record<string, string> = {}
    for (const [name, value] of Object.entries(request.headers)) {
      headers[name] = Array.isArray(value) ? value.join(', ') : (value ?? '')
    }
    receive(
      {
        method: request.method ?? '',
        path: mark === -1 ? url : url.slice(0, mark),
        query: mark === -1 ? '' : url.slice(mark + 1),
        headers,
        bytes: Buffer.concat(chunks),
      },
      new SocketConnection(response),
    )
  })
  // A caller that disconnects while sending has not made a call. Without a listener, the error would end the process.
  request.on('error', () => response.destroy())
}

/** A connection over a socket. */
class SocketConnection implements VendorConnection {
  readonly #response: ServerResponse
  #onDisconnect: (() => void) | undefined
  #isEnded = false

  constructor(response: ServerResponse) {
    this.#response = response
    // A write may meet a socket that has just closed; the close itself is what counts, and it is reported below.
    response.on('error', () => response.destroy())
    response.on('close', () => {
      if (this.#isEnded) return
      this.#isEnded = true
      this.#onDisconnect?.()
    })
  }

  get closed(): boolean {
    return this.#isEnded
  }

  head(status: number, headers: readonly string[]): void {
    if (this.#isEnded) return
    this.#response.writeHead(status, [...headers])
    // Sends headers immediately, like a vendor, even if the body starts later.
    this.#response.flushHeaders()
  }

  write(bytes: Uint8Array): boolean {
    return !this.#isEnded && this.#response.write(bytes)
  }

  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#response.end()
  }

  reset(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    const { socket } = this.#response
    // Before the headers the caller gets a reset, later a plain close, after which the sent bytes can still be read.
    if (this.#response.headersSent) socket?.destroySoon()
    else socket?.resetAndDestroy()
  }

  refuse(): void {
    this.reset()
  }

  onDrain(listener: () => void): void {
    this.#response.on('drain', listener)
  }

  onDisconnect(listener: () => void): void {
    this.#onDisconnect = listener
  }
}
