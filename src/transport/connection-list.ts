/** Connection that carries one call at a time. */
export interface Connection {
  /** Whether the connection is established and not lost. */
  readonly isOpen: boolean
  /** Closes the connection after its call. */
  close(): Promise<void>
  /** Closes the connection and fails its call. */
  destroy(): void
}

/**
 * Maximum number of idle connections per origin. Matters only right after a burst, because idle connections end when their
 * keep-alive time expires.
 */
export const MAX_IDLE_CONNECTIONS = 1_024

/**
 * Connections to one origin, of which any number may be busy. The connection used last is reused first, so that the others stay
 * idle until they end.
 */
export class ConnectionList<Kind extends Connection> {
  readonly #make: (list: ConnectionList<Kind>) => Kind
  /** All connections, including busy ones. */
  readonly #all = new Set<Kind>()
  readonly #free: Kind[] = []

  constructor(make: (list: ConnectionList<Kind>) => Kind) {
    this.#make = make
  }

  get size(): number {
    return this.#all.size
  }

  /** Whether no connection has a call. */
  get isUnused(): boolean {
    return this.#free.length === this.#all.size
  }

  /** Returns a connection for one call. It must be given back. */
  take(): Kind {
    const free = this.#free.pop()
    if (free !== undefined) return free
    const made = this.#make(this)
    this.#all.add(made)
    return made
  }

  /** Returns a connection to the list after a successful call. */
  giveBack(connection: Kind): void {
    if (connection.isOpen && this.#free.length < MAX_IDLE_CONNECTIONS) this.#free.push(connection)
    else {
      this.#all.delete(connection)
      void connection.close()
    }
  }

  /** Removes a connection on which nothing more can be sent. */
  giveUp(connection: Kind): void {
    this.#all.delete(connection)
    connection.destroy()
  }

  /** Removes an idle connection that has ended. A busy connection is removed when its call ends. */
  lost(connection: Kind): void {
    const index = this.#free.lastIndexOf(connection)
    if (index === -1) return
    this.#free.splice(index, 1)
    this.giveUp(connection)
  }

  /** Closes the idle connections, and waits for the calls of the others. */
  async close(): Promise<void> {
    await Promise.all([...this.#all].map((connection) => connection.close()))
  }
}
