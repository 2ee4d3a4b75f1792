import { MessageChannel } from 'node:worker_threads'

/**
 * Bytes up to this length are left to V8: freeing them costs as much as it saves. Those below half of `Buffer.poolSize` share
 * their memory with others anyway.
 */
const KEPT_BYTES = 8 * 1024

/** Can the memory of these bytes be freed? Only that of a buffer which holds nothing else, so that no other bytes go with it. */
export function isFreeable(bytes: Uint8Array | string | undefined): bytes is Uint8Array {
  if (typeof bytes === 'string' || bytes === undefined || bytes.length <= KEPT_BYTES) return false
  const { buffer } = bytes
  return bytes.length === buffer.byteLength && buffer instanceof ArrayBuffer
}

/**
 * Frees the memory of bytes that are not read again, if it holds nothing else. The bytes are empty after that, for everyone who still
 * has them.
 *
 * V8 would free them too, but late: they are outside of its heap. When enough of them have come together, it collects the whole heap,
 * which is dear for a process through which megabytes pass.
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
