import type { Socket } from 'node:net'

/** Request that waits for the answers to earlier ones of its connection. */
export interface PipelinedRequest {
  /** Called when the connection has closed. */
  callerLeft(): void
}

/** Pipelined requests by their socket, until their own response has a socket. */
const pipelined = new WeakMap<Socket, Set<PipelinedRequest>>()

/**
 * Calls `callerLeft` when the socket closes. For pipelined requests only: their response has no socket until the earlier
 * answers are sent, and Node does not report that the caller disconnected before that.
 */
export function watchSocket(socket: Socket, request: PipelinedRequest): void {
  const waiting = pipelined.get(socket) ?? new Set<PipelinedRequest>()
  if (!pipelined.has(socket)) {
    pipelined.set(socket, waiting)
    // One listener per socket: a long pipeline must not cause Node's warning about too many listeners.
    socket.once('close', () => {
      for (const each of waiting) each.callerLeft()
    })
  }
  waiting.add(request)
}

/** Stops watching; see {@link watchSocket}. */
export function unwatchSocket(socket: Socket, request: PipelinedRequest): void {
  pipelined.get(socket)?.delete(request)
}
