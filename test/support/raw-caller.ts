import { connect, type Socket } from 'node:net'
import { TEST_KEY } from './start-gateway.ts'

/** A caller on a bare socket, which can leave at any moment. */
export interface RawCaller {
  /** Resolves when the bytes received so far hold `text`. */
  received(text: string): Promise<string>
  /** Everything received, once the other side has closed. */
  readonly closed: Promise<string>
  /** Cuts the connection, and returns the time in Unix milliseconds. */
  leave(): number
}

/** Posts JSON over a socket of its own. */
export function rawPost(url: string, path: string, body: unknown): RawCaller {
  const { hostname, port } = new URL(url)
  const json = JSON.stringify(body)
  const socket: Socket = connect(Number(port), hostname)
  let text = ''
  let isClosed = false
  const watchers = new Set<() => void>()
  const closed = new Promise<string>((resolve) => {
    socket.on('close', () => {
      isClosed = true
      resolve(text)
      for (const watcher of watchers) watcher()
    })
  })
  socket.on('error', () => undefined)
  socket.on('data', (chunk) => {
    text += chunk.toString('utf8')
    for (const watcher of watchers) watcher()
  })
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${TEST_KEY}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(json)}\r\nconnection: close\r\n\r\n${json}`,
  )
  return {
    closed,
    received: (part) =>
      new Promise((resolve, reject) => {
        const watcher = (): void => {
          if (text.includes(part)) {
            watchers.delete(watcher)
            resolve(text)
          } else if (isClosed) reject(new Error(`closed before ${JSON.stringify(part)} came: ${text}`))
        }
        watchers.add(watcher)
        watcher()
      }),
    leave() {
      socket.destroy()
      return Date.now()
    },
  }
}
