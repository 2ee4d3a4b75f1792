// See docs/decisions/0029-speed.md.

import { MessageChannel } from 'node:worker_threads'
import { GatewayError } from './errors.ts'

const RETRY_AFTER_SECONDS = 1

/** Reason why the process rejects new requests. */
type OverloadReason = 'in-flight' | 'held-bytes' | 'event-loop-delay'

class OverloadCause extends Error {}

/** Returns the error of a request that exceeds the capacity of the process. */
export function overloaded(reason: OverloadReason): GatewayError {
  return new GatewayError('overloaded', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause: new OverloadCause(reason),
  })
}

/** Returns the reason of an overload for its response header, or `undefined` for other errors. */
export function overloadReason({ code, cause }: GatewayError): string | undefined {
  return code === 'overloaded' && cause instanceof OverloadCause ? cause.message : undefined
}

/** Counter of bytes that the process holds for requests in progress: their bodies, and media that were fetched for them. */
export class HeldBytes {
  /** Maximum number of bytes, or `undefined` if there is no limit. */
  readonly max: number | undefined
  #bytes = 0

  constructor(max: number | undefined) {
    this.max = max
  }

  /**
   * Adds bytes, or removes them if the number is negative.
   * @throws GatewayError `overloaded` if the limit would be exceeded.
   */
  add(bytes: number): void {
    if (bytes > 0 && this.max !== undefined && this.#bytes + bytes > this.max) throw overloaded('held-bytes')
    this.#bytes += bytes
  }
}

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
