import { Buffer } from 'node:buffer'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'

/** A request that the gateway makes of itself: JSON, without other headers. */
export function innerRequest(path: string, body: Uint8Array): GatewayRequest {
  return {
    method: 'POST',
    path,
    query: '',
    header: (name) => (name === 'content-type' ? 'application/json' : undefined),
    readBody: (_limitBytes, listener) => listener(undefined, [body]),
  }
}

/** Takes an answer that is sent to nobody. */
export const NOWHERE: ByteSink = {
  closed: false,
  head: () => undefined,
  write: () => true,
  end: () => undefined,
  destroy: () => undefined,
  onDrain: () => undefined,
  onClose: () => undefined,
}

/** The caller's side of a request that the gateway makes of itself: keeps what is answered, and may leave as any caller. */
export class InnerCaller implements ByteSink {
  readonly #chunks: Uint8Array[] = []
  #status = 0
  #hasLeft = false
  #onLeft: (() => void) | undefined

  get closed(): boolean {
    return this.#hasLeft
  }

  /** 0: nothing was answered. */
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
