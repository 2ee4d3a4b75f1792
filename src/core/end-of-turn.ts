/** Has written something and kept it back from the socket. */
export interface Sender {
  /** Sends it; must not throw. */
  sendHeld(): void
}

let senders: Sender[] = []

/** So many are sent at once: where hundreds are ready in a turn, the first do not wait for the last, nor does their memory. */
const MAX_SENDERS = 32

/**
 * Sends when this turn of the event loop ends, with everything else that became ready in it. A write wakes its reader, which costs more
 * than the write where the reader has fallen asleep since the one before; so writes that follow each other wake a caller on the same
 * machine once. Nothing waits longer than for what the loop would have done next anyway.
 */
export function sendAtEndOfTurn(sender: Sender): void {
  if (senders.length === 0) setImmediate(sendAll)
  if (senders.push(sender) >= MAX_SENDERS) sendAll()
}

/** Runs something when this turn of the event loop ends, after what is sent then. */
export function workAtEndOfTurn(work: () => void): void {
  setImmediate(() => {
    sendAll()
    work()
  })
}

/** Resolves when this turn of the event loop has ended and what waited for that is sent. */
export function endOfTurn(): Promise<void> {
  return new Promise((resolve) => workAtEndOfTurn(resolve))
}

/** Bytes of a request above which each step of the work on it has a turn of its own, so that other requests run in between. */
const LARGE_BYTES = 256 * 1024

/** Returns whether the work on so many bytes is to be done in several turns. */
export function isLargeBody(bytes: Uint8Array | undefined): boolean {
  return bytes !== undefined && bytes.byteLength > LARGE_BYTES
}

function sendAll(): void {
  const sending = senders
  senders = []
  for (const sender of sending) sender.sendHeld()
}
