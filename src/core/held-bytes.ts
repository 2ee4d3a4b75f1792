import { GatewayError } from './errors.ts'

const RETRY_AFTER_SECONDS = 1

/** Reason why the process rejects new requests. */
export type OverloadReason = 'in-flight' | 'held-bytes' | 'event-loop-delay'

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
