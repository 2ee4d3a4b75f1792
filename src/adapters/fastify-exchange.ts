import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { sendAtEndOfTurn } from '../core/calls-in-flight.ts'
import { asBuffer } from '../wire/chunks.ts'
import { NodeExchange } from './node-exchange.ts'

/** Part of a Fastify reply that is used. */
export interface FastifyReplyShape {
  readonly raw: ServerResponse
  hijack(): unknown
  code(status: number): unknown
  header(name: string, value: unknown): unknown
  getHeaders(): Record<string, number | string | string[] | undefined>
  send(payload?: unknown): unknown
}

interface Head {
  readonly status: number
  readonly headers: readonly string[]
}

/**
 * One request and its answer over Fastify's reply, so that Fastify runs its `onSend` hooks: once with a whole answer, or once
 * with the stream of a chunked one. Unless a hook replaces the stream, its chunks are written directly to the response, as in
 * {@link NodeExchange}.
 */
export class FastifyExchange extends NodeExchange {
  readonly #reply: FastifyReplyShape
  /** Head of an answer of known length, until its body arrives. */
  #held: Head | undefined
  /** Payload of a chunked answer, after its head was sent. */
  #streamed: FastifyPayload | undefined
  /** Complete answer, while it waits for the end of the turn. */
  #payload: Buffer | undefined
  #isReady = false

  constructor(request: IncomingMessage, reply: FastifyReplyShape, path: string, hostRequest: unknown, body?: Readable) {
    super(request, reply.raw, path, hostRequest, body)
    this.#reply = reply
  }

  override head(status: number, headers: readonly string[]): void {
    // The inherited method rejects both.
    if (this.closed || this.#reply.raw.headersSent) super.head(status, headers)
    else if (isWhole(status, headers) && !this.hasRefusedBody) this.#held = { status, headers }
    else this.#stream({ status, headers })
  }

  override write(bytes: Uint8Array | string, mayFree?: boolean): boolean {
    const held = this.#held
    this.#held = undefined
    if (held !== undefined && !this.closed) this.#stream(held)
    const streamed = this.#streamed
    if (streamed === undefined || streamed.isDirect) return super.write(bytes, mayFree)
    return this.closed || this.isBodiless || streamed.add(bytes)
  }

  override end(given?: Uint8Array | string, mayFree?: boolean): void {
    const held = this.#held
    const streamed = this.#streamed
    const bytes = this.isBodiless ? undefined : given
    this.#held = undefined
    if (streamed !== undefined && !streamed.isDirect && !this.closed) {
      streamed.addLast(bytes)
      this.endedElsewhere(0)
      this.afterDiscarding(() => streamed.push(null))
      return
    }
    if (held === undefined || this.closed) {
      streamed?.leave()
      super.end(given, mayFree)
      return
    }
    this.endedElsewhere(bytes?.length ?? 0)
    this.#reply.code(held.status)
    setHeaders(this.#reply, held.headers)
    // Fastify adds a charset to the content type of a string.
    this.#payload = typeof bytes === 'string' ? Buffer.from(bytes) : bytes && asBuffer(bytes)
    this.#isReady = true
    sendAtEndOfTurn(this)
  }

  override sendHeld(): void {
    super.sendHeld()
    if (!this.#isReady) return
    this.#isReady = false
    const payload = this.#payload
    this.#payload = undefined
    try {
      this.#reply.send(payload)
    } catch {
      // Other work of the turn must continue, and no other answer may follow.
      this.destroy()
    }
  }

  override destroy(): void {
    // No other answer may follow.
    this.#reply.hijack()
    this.#streamed?.leave()
    super.destroy()
  }

  override callerLeft(): void {
    this.#streamed?.leave()
    super.callerLeft()
  }

  /** Fastify pipes the payload to the response; later chunks are written directly. */
  startDirect(): void {
    super.head(this.#reply.raw.statusCode, [])
  }

  #stream({ status, headers }: Head): void {
    if (this.hasRefusedBody) this.#reply.raw.shouldKeepAlive = false
    this.#reply.code(status)
    setHeaders(this.#reply, headers)
    this.#streamed = new FastifyPayload(this.#reply.raw, this)
    this.#reply.send(this.#streamed)
  }
}

/** Streams have no length, and neither do answers without a body. */
function isWhole(status: number, headers: readonly string[]): boolean {
  return status === 204 || headers.includes('content-length')
}

/** `vary` is appended to the value of hooks, as on every mount. Other headers of the gateway replace those of the host. */
function setHeaders(reply: FastifyReplyShape, headers: readonly string[]): void {
  const values = new Map<string, string | string[]>()
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index]!
    const value = headers[index + 1]!
    const before = values.get(name)
    values.set(name, before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value])
  }
  const vary = values.get('vary')
  const hostVary = reply.getHeaders()['vary'] ?? reply.raw.getHeader('vary')
  if (vary !== undefined && hostVary !== undefined) values.set('vary', [hostVary, vary].flat().join(', '))
  for (const [name, value] of values) reply.header(name, value)
}

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
class FastifyPayload extends Readable {
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
