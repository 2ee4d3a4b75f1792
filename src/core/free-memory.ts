import { MessageChannel } from 'node:worker_threads'

/**
 * As much or less is left to V8. Node cuts what is smaller than half of `Buffer.poolSize` from memory that many buffers share, and
 * freeing little costs as much as it saves.
 */
const KEPT_BYTES = 8 * 1024

/** Can the memory of these bytes be freed? Only that of a buffer which holds nothing else, so that no other bytes go with it. */
export function isFreeable(bytes: Uint8Array | string | undefined): bytes is Uint8Array {
  if (typeof bytes === 'string' || bytes === undefined || bytes.length <= KEPT_BYTES) return false
  const { buffer } = bytes
  return bytes.length === buffer.byteLength && buffer instanceof ArrayBuffer
}

/**
 * Frees the memory of bytes that nobody reads again; whoever has kept them finds them empty. Without it the memory stays until V8
 * collects. V8 counts the memory outside its heap too, and starts a collection of the whole heap when that has grown, which
 * is dear for a process through which megabytes pass and in which little else is allocated.
 */
export function freeMemory(bytes: Uint8Array): void {
  if (isFreeable(bytes)) discard(bytes.buffer as ArrayBuffer)
}

/** Node has `transfer` since version 22. */
type Transferable = ArrayBuffer & { transfer(newByteLength: number): ArrayBuffer }

const discard: (buffer: ArrayBuffer) => void =
  'transfer' in ArrayBuffer.prototype
    ? (buffer) => void (buffer as Transferable).transfer(0)
    : (buffer) => closedPort().postMessage(undefined, [buffer])

let port: MessageChannel['port1'] | undefined

/** A message takes what is transferred with it away from the sender, and one to a closed port is dropped. */
function closedPort(): MessageChannel['port1'] {
  if (port === undefined) {
    port = new MessageChannel().port1
    port.close()
  }
  return port
}
