import type { Socket } from 'node:net'

/** What is told about the end of a socket. */
export interface SocketWatcher {
  /** The socket has closed. */
  callerLeft(): void
}

const watchers = new WeakMap<Socket, Set<SocketWatcher>>()

/**
 * Tells `watcher` when the socket closes. For a pipelined request only: its response has no socket until the earlier
 * answers are out, and Node does not tell it when the caller leaves before that.
 */
export function watchSocket(socket: Socket, watcher: SocketWatcher): void {
  let waiting = watchers.get(socket)
  if (waiting === undefined) {
    const created = new Set<SocketWatcher>()
    waiting = created
    watchers.set(socket, created)
    // One listener for all of them: a long pipeline must not trip Node's warning about too many listeners.
    socket.once('close', () => {
      for (const each of created) each.callerLeft()
    })
  }
  waiting.add(watcher)
}

/** Takes the watcher off again. */
export function unwatchSocket(socket: Socket, watcher: SocketWatcher): void {
  watchers.get(socket)?.delete(watcher)
}
