import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'

/** Exchange whose answer a payload carries. */
export interface PayloadOwner {
  /** Sends the head; earlier chunks follow by {@link write}. */
  startDirect(): void
  write(bytes: Uint8Array): boolean
  /** Reports that more may be written. */
  drained(): void
}

/**
 * Stream that `onSend` hooks receive for a chunked answer. If Fastify pipes it to the response, later chunks bypass the stream.
 * If a hook returns another stream that reads this one, all chunks go through it.
 */
export class FastifyPayload extends Readable {
  readonly #response: ServerResponse
  readonly #owner: PayloadOwner
  #isDirect = false
  #isFull = false
  #isLast = false

  constructor(response: ServerResponse, owner: PayloadOwner) {
    // With these options, Fastify waits only for `end`, which `leave` emits before the response ends.
    super({ autoDestroy: false, emitClose: false, highWaterMark: 64 * 1024 })
    this.#response = response
    this.#owner = owner
  }

  /** Whether chunks go to the response itself. */
  get isDirect(): boolean {
    return this.#isDirect
  }

  /** Adds a chunk. Returns false if the owner must wait until `drained` is called. */
  add(bytes: Uint8Array | string): boolean {
    this.#isFull = bytes.length > 0 && !this.push(bytes)
    return !this.#isFull
  }

  /** Adds the last chunk. From here on, the stream itself carries its buffered chunks. */
  addLast(bytes: Uint8Array | string | undefined): void {
    this.#isLast = true
    if (bytes !== undefined) this.add(bytes)
  }

  /** Emits the end of the stream. Otherwise Fastify would log an early end. */
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
