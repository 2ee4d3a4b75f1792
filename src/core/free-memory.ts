import { MessageChannel } from 'node:worker_threads'

/**
 * Size in bytes up to which V8 frees the memory: freeing it here costs as much as it saves. Buffers below half of
 * `Buffer.poolSize` share their memory anyway.
 */
const KEPT_BYTES = 8 * 1024

/** Whether the memory of bytes can be freed. Requires a buffer that contains nothing else, so that no other bytes are lost. */
export function isFreeable(bytes: Uint8Array | string | undefined): bytes is Uint8Array {
  if (typeof bytes === 'string' || bytes === undefined || bytes.length <= KEPT_BYTES) return false
  const { buffer } = bytes
  return bytes.length === buffer.byteLength && buffer instanceof ArrayBuffer
}

/**
 * Frees the memory of bytes that are not read again, if the buffer contains nothing else. The bytes are empty after that for
 * every holder of a reference.
 *
 * V8 would free them late because they are outside of its heap. When enough of them have accumulated, it collects the whole heap,
 * which is expensive for a process that handles megabytes.
 */
export function freeMemory(bytes: Uint8Array): void {
  if (isFreeable(bytes)) discard(bytes.buffer as ArrayBuffer)
}

/** Node supports `transfer` since version 22. */
type Transferable = ArrayBuffer & { transfer(newByteLength: number): ArrayBuffer }

const discard: (buffer: ArrayBuffer) => void =
  'transfer' in ArrayBuffer.prototype
    ? (buffer) => void (buffer as Transferable).transfer(0)
    : (buffer) => closedPort().postMessage(undefined, [buffer])

let port: MessageChannel['port1'] | undefined

/** Posting a message removes the transferred memory from the sender, and a closed port drops the message. */
function closedPort(): MessageChannel['port1'] {
  if (port === undefined) {
    port = new MessageChannel().port1
    port.close()
  }
  return port
}
