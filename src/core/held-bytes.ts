import { GatewayError } from './errors.ts'

const RETRY_AFTER_SECONDS = 1

/** Why the process takes no further requests. */
export type OverloadReason = 'in-flight' | 'held-bytes' | 'event-loop-delay'

class OverloadCause extends Error {}

/** Returns the error of a request for which the process has no room. */
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

/** Bytes that the process holds for requests in progress: their bodies, and media that were fetched for them. */
export class HeldBytes {
  /** Maximum number of bytes; `undefined` if there is no bound. */
  readonly max: number | undefined
  #bytes = 0

  constructor(max: number | undefined) {
    this.max = max
  }

  /**
   * Adds bytes, or removes them if the number is negative.
   * @throws GatewayError `overloaded` if more bytes have no room.
   */
  add(bytes: number): void {
    if (bytes > 0 && this.max !== undefined && this.#bytes + bytes > this.max) throw overloaded('held-bytes')
    this.#bytes += bytes
  }
}
