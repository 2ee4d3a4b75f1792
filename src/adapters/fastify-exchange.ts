import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { sendAtEndOfTurn } from '../core/end-of-turn.ts'
import { asBuffer } from '../wire/join-chunks.ts'
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
 * One request and its answer over Fastify's reply. An answer that comes as a whole is sent by the reply, so that Fastify runs
 * its `onSend` hooks. Everything else is written to the response itself, as {@link NodeExchange} does it.
 */
export class FastifyExchange extends NodeExchange {
  readonly #reply: FastifyReplyShape
  /** Of an answer whose length is known, until its body comes. */
  #held: Head | undefined
  #isHijacked = false
  /** The whole answer, while it waits for the end of the turn. */
  #payload: Buffer | undefined
  #isReady = false

  constructor(request: IncomingMessage, reply: FastifyReplyShape, path: string, hostRequest: unknown, body?: Readable) {
    super(request, reply.raw, path, hostRequest, body)
    this.#reply = reply
  }

  override head(status: number, headers: readonly string[]): void {
    if (isWhole(status, headers) && !this.hasRefusedBody && !this.closed && !this.#reply.raw.headersSent)
      this.#held = { status, headers }
    else this.#writeHead({ status, headers })
  }

  override write(bytes: Uint8Array | string, mayFree?: boolean): boolean {
    this.#release()
    return super.write(bytes, mayFree)
  }

  override end(given?: Uint8Array | string, mayFree?: boolean): void {
    const held = this.#held
    this.#held = undefined
    if (held === undefined || this.closed) {
      super.end(given, mayFree)
      return
    }
    const bytes = this.isBodiless ? undefined : given
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
    this.#hijack()
    super.destroy()
  }

  #release(): void {
    const held = this.#held
    this.#held = undefined
    if (held !== undefined) this.#writeHead(held)
  }

  #writeHead({ status, headers }: Head): void {
    this.#hijack()
    super.head(status, headers)
  }

  #hijack(): void {
    if (this.#isHijacked) return
    this.#isHijacked = true
    this.#reply.hijack()
    keepHeaders(this.#reply)
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

/** Copies the headers that hooks set on the reply to the response: a hijacked reply loses them. */
function keepHeaders(reply: FastifyReplyShape): void {
  if (reply.raw.headersSent) return
  const headers = reply.getHeaders()
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined) reply.raw.setHeader(name, value)
  }
}
