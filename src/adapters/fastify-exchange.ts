import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { sendAtEndOfTurn } from '../core/end-of-turn.ts'
import { asBuffer } from '../wire/join-chunks.ts'
import { FastifyPayload } from './fastify-payload.ts'
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
