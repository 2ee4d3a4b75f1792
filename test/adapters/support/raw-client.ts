import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A client that writes HTTP by hand, so that a test decides when it leaves and what it sends. */
export class RawClient {
  readonly socket: Socket
  /** Why the connection broke; undefined when it closed in order. */
  failure: Error | undefined
  #received = ''

  private constructor(socket: Socket) {
    this.socket = socket
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      this.#received += text
      socket.emit('received')
    })
    socket.on('error', (error) => {
      this.failure = error
    })
    socket.on('close', () => socket.emit('received'))
  }

  static async open(port: number): Promise<RawClient> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return new RawClient(socket)
  }

  /** Sends a request head; `lines` are further headers. */
  send(method: string, path: string, lines: readonly string[] = [], body = ''): void {
    this.socket.write([`${method} ${path} HTTP/1.1`, 'host: gateway.example', ...lines, '', body].join('\r\n'))
  }

  /** Resolves with everything received once it holds `text`; rejects when the connection closes first. */
  async until(text: string): Promise<string> {
    while (!this.#received.includes(text)) {
      if (this.socket.destroyed) throw new Error(`closed before "${text}"; received: ${this.#received}`)
      await once(this.socket, 'received')
    }
    return this.#received
  }

  /** Resolves with everything received once the connection has closed. */
  async ended(): Promise<string> {
    while (!this.socket.destroyed) await once(this.socket, 'received')
    return this.#received
  }

  get received(): string {
    return this.#received
  }

  leave(): void {
    this.socket.destroy()
  }
}
