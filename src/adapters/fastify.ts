import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { sendAtEndOfTurn } from '../core/calls-in-flight.ts'
import { checkGateway, type ExchangeHandler } from '../core/exchange.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import { asBuffer } from '../wire/chunks.ts'
import { withCors } from './cors.ts'
import { NodeExchange } from './node-exchange.ts'
import { type MountOptions, normalizeBasePath, pathOfTarget, routePath } from './route-path.ts'

export type { CorsOptions } from './cors.ts'

/** Options of {@link fastifyGateway}, in addition to Fastify's own `prefix`. */
export interface FastifyGatewayOptions extends MountOptions {
  /** Gateway from `createGateway`. */
  readonly gateway: ExchangeHandler
  /** Prefix at which Fastify mounts the plugin, such as `/ai`. */
  readonly prefix?: string | undefined
}

const FASTIFY_GATEWAY_OPTIONS = memberNames<FastifyGatewayOptions>()('gateway prefix basePath cors')

/** Options of the same object that Fastify itself reads, in addition to `prefix`. */
const FASTIFY_REGISTER_OPTIONS = { logLevel: true, logSerializers: true } as const

/** Part of a Fastify request that is read. */
export interface FastifyRequestShape {
  readonly raw: IncomingMessage
}

/** Part of a Fastify instance that is used. */
export interface FastifyShape {
  readonly prefix: string
  readonly supportedMethods: readonly string[]
  /** Absent in early versions of Fastify 4. */
  hasRoute?(options: { url: string; method: string }): boolean
  removeAllContentTypeParsers(): void
  addContentTypeParser(
    contentType: string,
    parser: (request: FastifyRequestShape, payload: Readable, done: (error: Error | null) => void) => void,
  ): unknown
  route(options: {
    method: string[]
    url: string
    handler: (request: FastifyRequestShape, reply: FastifyReplyShape) => void
  }): unknown
}

/**
 * Serves the gateway as a Fastify plugin: `app.register(fastifyGateway, { gateway, prefix: '/ai' })`. It is encapsulated: its
 * pass-through body parser does not affect the rest of the app. Hooks up to `preHandler` run before the gateway, and the headers
 * they set are kept. A stream that a `preParsing` hook returns replaces the request's body. `onSend` runs once before the first
 * byte: with a Buffer for complete answers (with nothing for HEAD), otherwise with a stream. `onResponse` runs last. `basePath`
 * is needed only if the prefix has parameters.
 * @throws TypeError with the invalid member of `cors`.
 */
export function fastifyGateway(
  instance: FastifyShape,
  options: FastifyGatewayOptions,
  done: (error?: Error) => void,
): void {
  try {
    checkMembers(options, { ...FASTIFY_GATEWAY_OPTIONS, ...FASTIFY_REGISTER_OPTIONS }, 'fastifyGateway')
    checkGateway(options.gateway, 'fastifyGateway')
  } catch (error) {
    // Fastify does not catch exceptions of such a plugin.
    done(error as TypeError)
    return
  }
  const gateway = withCors(options.gateway, options.cors)
  const basePath = normalizeBasePath(options.basePath ?? instance.prefix) ?? ''
  instance.removeAllContentTypeParsers()
  /** Streams with which `preParsing` hooks replaced the request's. */
  const payloads = new WeakMap<FastifyRequestShape, Readable>()
  instance.addContentTypeParser('*', (request, payload, parsed) => {
    if (payload !== request.raw) payloads.set(request, payload)
    parsed(null)
  })
  // At the root, a CORS plugin has its own route for all preflight requests, and Fastify rejects a second one.
  const takesOptions = instance.prefix !== '' || options.cors !== undefined
  const method = instance.supportedMethods.filter((name) => name !== 'OPTIONS' || takesOptions)
  const handler = (request: FastifyRequestShape, reply: FastifyReplyShape): void => {
    const path = routePath(pathOfTarget(request.raw.url ?? '/'), basePath)
    const exchange = new FastifyExchange(request.raw, reply, path, request, payloads.get(request))
    gateway.handle(exchange, exchange)
  }
  instance.route({ method, url: '/*', handler })
  const free = options.gateway.answersAtMount === true ? freeAtMount(instance, method) : []
  if (free.length > 0) instance.route({ method: free, url: '', handler })
  done()
}

/**
 * Returns the methods for which the app has no route of its own at the path of the mount, because Fastify rejects a second one.
 * Empty if Fastify cannot report routes, so that the app still starts.
 */
function freeAtMount(instance: FastifyShape, methods: readonly string[]): string[] {
  const { prefix } = instance
  // With the slash, `/*` also matches the mount itself.
  if (prefix === '' || prefix.endsWith('/')) return []
  return methods.filter((method) => instance.hasRoute?.({ url: prefix, method }) === false)
}

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
