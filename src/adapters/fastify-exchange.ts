import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { sendAtEndOfTurn } from '../core/end-of-turn.ts'
import { asBuffer } from '../wire/join-chunks.ts'
import { FastifyPayload } from './fastify-payload.ts'
import { NodeExchange } from './node-exchange.ts'

/** What of a Fastify reply is used. */
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
 * One request and its answer over Fastify's reply, so that Fastify runs its `onSend` hooks: once with a whole answer, or once with
 * the stream of one that comes in pieces. Unless a hook replaces the stream, its pieces are written to the response itself, as
 * {@link NodeExchange} does it.
 */
export class FastifyExchange extends NodeExchange {
  readonly #reply: FastifyReplyShape
  /** Of an answer whose length is known, until its body comes. */
  #held: Head | undefined
  /** Payload of an answer that comes in pieces, once its head has come. */
  #streamed: FastifyPayload | undefined
  /** The whole answer, while it waits for the end of the turn. */
  #payload: Buffer | undefined
  #isReady = false

  constructor(request: IncomingMessage, reply: FastifyReplyShape, path: string, hostRequest: unknown, body?: Readable) {
    super(request, reply.raw, path, hostRequest, body)
    this.#reply = reply
  }

  override head(status: number, headers: readonly string[]): void {
    // The inherited method refuses both.
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
    // Fastify adds a charset to the content type of a text.
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
      // Nothing else of the turn may wait for it, and no other answer may follow.
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

  /** Fastify pipes the payload to the response: from here on the pieces are written directly. */
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

/** Streams have no length, and answers without a body none either. */
function isWhole(status: number, headers: readonly string[]): boolean {
  return status === 204 || headers.includes('content-length')
}

/** A `vary` that hooks have set is added to, as on every mount; other headers of the gateway replace those of the host. */
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
