import type { Readable } from 'node:stream'

import { systemClock } from '../core/clock.ts'

/** At most so many bytes of a refused body are read and thrown away. */
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024

/** At most so long is a refused body read. */
const MAX_DISCARD_MS = 5_000

/**
 * Reads the rest of a request and throws it away, within bounds, then calls `done` once. Closing a socket with unread
 * bytes makes the system reset the connection, and the caller, still sending, would lose the answer.
 */
export function discardRequest(request: Readable, done: () => void): void {
  let discardedBytes = 0
  const finish = (): void => {
    timer.cancel()
    request.off('data', count)
    request.off('end', finish)
    request.off('close', finish)
    done()
  }
  const count = (chunk: Uint8Array | string): void => {
    discardedBytes += chunk.length
    if (discardedBytes > MAX_DISCARDED_BYTES) finish()
  }
  const timer = systemClock.schedule(MAX_DISCARD_MS, finish)
  request.on('data', count)
  request.on('end', finish)
  request.on('close', finish)
  request.resume()
}
