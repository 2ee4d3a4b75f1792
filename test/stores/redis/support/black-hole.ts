import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'

/** Takes the place of a server on its port: accepts every connection, reads, and never answers. */
export async function blackHole(port: number): Promise<{ close(): Promise<void> }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.resume()
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
