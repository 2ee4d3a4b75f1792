import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A way to a server on which answers can get lost. */
export interface LosingProxy {
  /** The address of the server, with the port of this way. */
  readonly url: string
  /** Loses one of `count` answers, together with its connection, from now on. With 0, none is lost. */
  loseOneIn(count: number): void
  /** Resolves when so many more answers were lost. */
  lost(count: number): Promise<void>
  close(): Promise<void>
}

/** Starts a proxy that loses answers. The server has executed the query; only its answer does not arrive. */
export async function losingProxy(serverUrl: string): Promise<LosingProxy> {
  const target = new URL(serverUrl)
  const sockets = new Set<Socket>()
  let oneIn = 0
  let answers = 0
  let losses = 0
  let wake = (): void => {}
  const server = createServer((caller) => {
    const callee = connect(Number(target.port), target.hostname)
    let isGreeted = false
    const end = (): void => {
      for (const socket of [caller, callee]) {
        sockets.delete(socket)
        socket.destroy()
      }
    }
    for (const socket of [caller, callee]) {
      sockets.add(socket)
      socket.on('error', end)
      socket.on('close', end)
    }
    caller.on('data', (asked) => callee.write(asked))
    callee.on('data', (answer) => {
      // The first one only opens the connection.
      const mayBeLost = isGreeted && oneIn > 0
      isGreeted = true
      if (mayBeLost && ++answers % oneIn === 0) {
        losses++
        wake()
        end()
      } else caller.write(answer)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(serverUrl)
  url.port = `${(server.address() as AddressInfo).port}`
  return {
    url: url.href,
    loseOneIn(count) {
      oneIn = count
    },
    async lost(count) {
      const enough = losses + count
      while (losses < enough) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
