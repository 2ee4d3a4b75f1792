import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'

/** Exchange whose answer a payload carries. */
export interface PayloadOwner {
  /** Sends the head; what was added before follows by {@link write}. */
  startDirect(): void
  write(bytes: Uint8Array): boolean
  /** Reports that more may be written. */
  drained(): void
}

/**
 * Stream that `onSend` hooks see of an answer that comes in pieces. If Fastify pipes it to the response, later pieces go around the
 * stream. If a hook returns another stream that reads this one, all pieces go through it.
 */
export class FastifyPayload extends Readable {
  readonly #response: ServerResponse
  readonly #owner: PayloadOwner
  #isDirect = false
  #isFull = false
  #isLast = false

  constructor(response: ServerResponse, owner: PayloadOwner) {
    // Fastify waits for `end` alone then, which `leave` emits before the response ends.
    super({ autoDestroy: false, emitClose: false, highWaterMark: 64 * 1024 })
    this.#response = response
    this.#owner = owner
  }

  /** Whether pieces go to the response itself. */
  get isDirect(): boolean {
    return this.#isDirect
  }

  /** Adds a piece. Returns false if the owner must wait until `drained` is called. */
  add(bytes: Uint8Array | string): boolean {
    this.#isFull = bytes.length > 0 && !this.push(bytes)
    return !this.#isFull
  }

  /** Adds the last piece. From here on, the stream itself carries what waits in it. */
  addLast(bytes: Uint8Array | string | undefined): void {
    this.#isLast = true
    if (bytes !== undefined) this.add(bytes)
  }

  /** Reports to Fastify that the stream ends. Without it Fastify would log an early end. */
  leave(): void {
    if (this.#isDirect) this.emit('end')
  }

  override pipe<Destination extends NodeJS.WritableStream>(
    destination: Destination,
    options?: { end?: boolean },
  ): Destination {
    if ((destination as unknown) !== this.#response || this.#isLast) return super.pipe(destination, options)
    this.#owner.startDirect()
    this.#isDirect = true
    for (let piece = this.read(); piece !== null; piece = this.read()) this.#owner.write(piece)
    this.#pulled()
    return destination
  }

  override _read(): void {
    if (!this.#isDirect) this.#pulled()
  }

  #pulled(): void {
    if (!this.#isFull) return
    this.#isFull = false
    this.#owner.drained()
  }
}
