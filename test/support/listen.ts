import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server that a test has started. */
export interface Listening {
  readonly port: number
  /** `http://127.0.0.1:…` */
  readonly origin: string
  /** Ends open connections too. */
  readonly close: () => Promise<void>
}

/** Listens on a free loopback port. */
export async function listen(server: Server | RequestListener): Promise<Listening> {
  const listening = typeof server === 'function' ? createServer(server) : server
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
  const { port } = listening.address() as AddressInfo
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        listening.close(() => resolve())
        listening.closeAllConnections()
      }),
  }
}
