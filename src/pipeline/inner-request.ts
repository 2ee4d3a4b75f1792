import { Buffer } from 'node:buffer'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'

/** Request of the gateway to itself: JSON, without other headers. */
export function innerRequest(path: string, body: Uint8Array): GatewayRequest {
  return {
    method: 'POST',
    path,
    query: '',
    header: (name) => (name === 'content-type' ? 'application/json' : undefined),
    readBody: (_limitBytes, listener) => listener(undefined, [body]),
  }
}

/** Discards an answer. */
export const NOWHERE: ByteSink = {
  closed: false,
  head: () => undefined,
  write: () => true,
  end: () => undefined,
  destroy: () => undefined,
  onDrain: () => undefined,
  onClose: () => undefined,
}

/** Caller's side of a request of the gateway to itself. Stores the answer, and can disconnect like any caller. */
export class InnerCaller implements ByteSink {
  readonly #chunks: Uint8Array[] = []
  #status = 0
  #hasLeft = false
  #onLeft: (() => void) | undefined

  get closed(): boolean {
    return this.#hasLeft
  }

  /** HTTP status, or 0 without an answer. */
  get status(): number {
    return this.#status
  }

  /** The body of the answer. */
  get text(): string {
    return Buffer.concat(this.#chunks).toString('utf8')
  }

  leave(): void {
    if (this.#hasLeft) return
    this.#hasLeft = true
    this.#onLeft?.()
  }

  head(status: number): void {
    this.#status = status
  }

  write(bytes: Uint8Array | string): boolean {
    this.#chunks.push(typeof bytes === 'string' ? Buffer.from(bytes) : bytes)
    return true
  }

  end(bytes?: Uint8Array | string): void {
    if (bytes !== undefined) this.write(bytes)
  }

  destroy(): void {}

  onDrain(): void {}

  onClose(listener: () => void): void {
    this.#onLeft = listener
    if (this.#hasLeft) listener()
  }
}
