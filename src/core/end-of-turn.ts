/** Writer that has buffered data instead of passing it to the socket. */
export interface Sender {
  /** Sends the buffered data. Must not throw. */
  sendHeld(): void
}

let senders: Sender[] = []

/** Maximum number of senders per batch, so that the first of hundreds need not wait for the last, nor keep their memory. */
const MAX_SENDERS = 32

/**
 * Sends the buffered data at the end of this turn of the event loop, together with all other data that became ready in it. A
 * write wakes its reader. If the reader has gone to sleep since the last write, waking it costs more than the write, so
 * consecutive writes wake a local caller only once. The delay never exceeds work that the event loop would have done next anyway.
 */
export function sendAtEndOfTurn(sender: Sender): void {
  if (senders.length === 0) setImmediate(sendAll)
  if (senders.push(sender) >= MAX_SENDERS) sendAll()
}

/** Runs a function at the end of this turn of the event loop, after the buffered data is sent. */
export function workAtEndOfTurn(work: () => void): void {
  setImmediate(() => {
    sendAll()
    work()
  })
}

/** Resolves at the end of this turn of the event loop, after the buffered data is sent. */
export function endOfTurn(): Promise<void> {
  return new Promise((resolve) => workAtEndOfTurn(resolve))
}

/** Size of a request body, in bytes, above which each step runs in a separate turn of the event loop. */
const LARGE_BYTES = 256 * 1024

/** Returns whether a body is so large that it is processed in several turns of the event loop. */
export function isLargeBody(bytes: Uint8Array | undefined): boolean {
  return bytes !== undefined && bytes.byteLength > LARGE_BYTES
}

function sendAll(): void {
  const sending = senders
  senders = []
  for (const sender of sending) sender.sendHeld()
}
