/** One connection, which carries one call at a time. */
export interface Connection {
  /** False until it is made and once it is lost. */
  readonly isOpen: boolean
  /** Waits for its call. */
  close(): Promise<void>
  /** Fails its call. */
  destroy(): void
}

/**
 * Most idle connections that are kept for one origin. Idle ones end by themselves when their keep-alive time is over, so this is
 * for the moment after a burst.
 */
export const MAX_IDLE_CONNECTIONS = 1_024

/**
 * The connections to one origin, of which any number may be busy. The one used last is used next, so that the others become
 * idle for long enough to end.
 */
export class ConnectionList<Kind extends Connection> {
  readonly #make: (list: ConnectionList<Kind>) => Kind
  /** Those with a call too. */
  readonly #all = new Set<Kind>()
  readonly #free: Kind[] = []

  constructor(make: (list: ConnectionList<Kind>) => Kind) {
    this.#make = make
  }

  get size(): number {
    return this.#all.size
  }

  /** True when no connection has a call. */
  get isUnused(): boolean {
    return this.#free.length === this.#all.size
  }

  /** A connection for one call, which must be given back. */
  take(): Kind {
    const free = this.#free.pop()
    if (free !== undefined) return free
    const made = this.#make(this)
    this.#all.add(made)
    return made
  }

  /** Takes a connection back whose call has ended well. */
  giveBack(connection: Kind): void {
    if (connection.isOpen && this.#free.length < MAX_IDLE_CONNECTIONS) this.#free.push(connection)
    else {
      this.#all.delete(connection)
      void connection.close()
    }
  }

  /** Takes a connection back on which nothing more can be sent. */
  giveUp(connection: Kind): void {
    this.#all.delete(connection)
    connection.destroy()
  }

  /** An idle connection has ended: it is not handed out again. One with a call is given back by that. */
  lost(connection: Kind): void {
    const index = this.#free.lastIndexOf(connection)
    if (index === -1) return
    this.#free.splice(index, 1)
    this.giveUp(connection)
  }

  /** Ends the idle connections, and waits for the calls of the others. */
  async close(): Promise<void> {
    await Promise.all([...this.#all].map((connection) => connection.close()))
  }
}
