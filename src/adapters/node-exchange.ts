import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { GatewayError } from '../core/errors.ts'
import { type BodyListener, type ByteSink, bodyError, type GatewayRequest, wholeBody } from '../core/exchange.ts'
import { asBuffer } from '../wire/join-chunks.ts'
import {
  announcesBody,
  discardRequest,
  isPlaceholder,
  parsedBodyBytes,
  RequestBodyReader,
} from './node-request-body.ts'
import { pathOfTarget, queryOfTarget } from './route-path.ts'

/** A smaller unread rest of an answer is not worth a timer. */
const UNTIMED_REST_BYTES = 64 * 1024

/**
 * A caller that reads nothing of the rest of an answer for this long is disconnected. Long, because the kernel reports reads
 * in steps of a third of its buffer, which is a megabyte or more. Odd on purpose: identifies our own timeout on the socket.
 */
const UNREAD_TIMEOUT_MS = 600_001

// Headers of the host to which the gateway's own are appended instead of replacing them.
const ADDED = new Set(['vary', 'set-cookie'])

const EXCHANGE = Symbol('signalbox.nodeExchange')

type ExchangeResponse = ServerResponse & { [EXCHANGE]?: NodeExchange }

/** A Node request; `body` is what a body parser left on it, `originalUrl` what routers have not shortened. */
export type ParsedIncomingMessage = IncomingMessage & { readonly body?: unknown; readonly originalUrl?: string }

/** One request and its answer over Node's request and response. A single object, to allocate little per request. */
export class NodeExchange implements GatewayRequest, ByteSink {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly hostRequest: unknown
  readonly #request: ParsedIncomingMessage
  readonly #response: ServerResponse
  #closeListener: (() => void) | undefined
  #drainListener: (() => void) | undefined
  #ended = false
  #left = false
  #bodyReader: RequestBodyReader | undefined
  /** Is a streamed body not read to its end? */
  #isUnread = false
  #watched = false
  #isHeadFlat = false

  /**
   * `path` is already below the mount; the query is read from the request. `hostRequest` is the framework's own, where that is
   * another object.
   */
  constructor(request: ParsedIncomingMessage, response: ServerResponse, path: string, hostRequest: unknown = request) {
    this.hostRequest = hostRequest
    this.method = request.method ?? 'GET'
    this.path = path
    this.query = queryOfTarget(request.url ?? '')
    this.#request = request
    this.#response = response
    const watched: ExchangeResponse = response
    watched[EXCHANGE] = this
    response.on('close', onClose)
    response.on('error', onError)
    if (response.socket === null) {
      this.#watched = true
      watchSocket(request.socket, this)
    }
  }

  get originalPath(): string {
    const { originalUrl, url = '/' } = this.#request
    return pathOfTarget(originalUrl ?? url)
  }

  get origin(): string | undefined {
    const { headers, socket } = this.#request
    const isEncrypted = 'encrypted' in socket && socket.encrypted === true
    return headers.host === undefined ? undefined : `${isEncrypted ? 'https' : 'http'}://${headers.host}`
  }

  get remoteAddress(): string | undefined {
    return this.#request.socket.remoteAddress
  }

  header(name: string): string | undefined {
    if (this.#isReplaced(name)) return undefined
    const value: unknown = this.#request.headers[name]
    // Node keeps the first of two and drops the others.
    if (name === 'authorization' && value !== undefined) return repeatedAuthorization(this.#request.rawHeaders, value)
    if (typeof value === 'string') return value
    return Array.isArray(value) ? value.join(', ') : undefined
  }

  readBody(limitBytes: number, listener: BodyListener): void {
    const request = this.#request
    if (!announcesBody(request)) listener(undefined, [])
    else if (isSpent(request)) this.#readParsedBody(limitBytes, listener)
    else {
      this.#bodyReader = new RequestBodyReader(limitBytes, listener)
      this.#bodyReader.start(request)
    }
  }

  async *streamBody(limitBytes: number): AsyncIterable<Uint8Array> {
    const request = this.#request
    if (!announcesBody(request)) return
    if (isSpent(request)) return yield* await wholeBody(this, limitBytes)
    if (Number(request.headers['content-length']) > limitBytes) throw this.#refused(limitBytes)
    let sizeBytes = 0
    this.#isUnread = true
    try {
      // Not destroyed where reading stops: the answer goes over the same connection.
      for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
        sizeBytes += piece.byteLength
        if (sizeBytes > limitBytes) throw this.#refused(limitBytes)
        yield piece
      }
    } catch (error) {
      throw GatewayError.isInstance(error) ? error : bodyError('aborted', limitBytes)
    }
    this.#isUnread = false
  }

  #refused(limitBytes: number): GatewayError {
    this.#isUnread = true
    return bodyError('too_large', limitBytes)
  }

  get closed(): boolean {
    // Last case: a middleware, such as a timeout, answered in place of the gateway.
    return this.#left || this.#request.socket.destroyed || (this.#response.writableEnded && !this.#ended)
  }

  head(status: number, headers: readonly string[]): void {
    if (this.closed) return
    if (this.#response.headersSent) {
      // A middleware has begun to answer; a mixture of both answers could pass for a complete one.
      this.destroy()
      return
    }
    if (this.hasRefusedBody) this.#response.shouldKeepAlive = false
    writeResponseHead(this.#response, status, headers)
  }

  write(bytes: Uint8Array | string): boolean {
    if (this.#ended || this.closed) return true
    const isAccepted = this.#response.write(bytes)
    if (!this.#isHeadFlat) {
      this.#isHeadFlat = true
      flattenHead(this.#response)
    }
    return isAccepted
  }

  end(bytes?: Uint8Array | string): void {
    if (this.#ended || this.closed) return
    this.#ended = true
    this.#unwatch()
    if (this.hasRefusedBody && !this.#request.complete) this.#endAfterDiscarding(bytes)
    else endResponse(this.#response, bytes)
    // What the socket did not accept stays in memory until the caller reads it.
    if (this.#response.writableLength > UNTIMED_REST_BYTES) this.#limitReading()
  }

  destroy(): void {
    if (this.#left) return
    this.#ended = true
    this.#left = true
    this.#unwatch()
    this.#response.destroy()
  }

  onDrain(listener: () => void): void {
    // A closure, because compressing middleware calls listeners with its own stream as `this`.
    if (this.#drainListener === undefined) this.#response.on('drain', () => this.#drained())
    this.#drainListener = listener
  }

  onClose(listener: () => void): void {
    if (this.#ended) return
    if (this.closed) {
      this.#left = true
      listener()
    } else this.#closeListener = listener
  }

  /** The connection has closed. Calls the close listener, unless the answer has ended. */
  callerLeft(): void {
    if (this.#ended) return
    this.#left = true
    this.#unwatch()
    const listener = this.#closeListener
    this.#closeListener = undefined
    listener?.()
  }

  /** Writing has failed: closes the connection, unless the answer has ended. */
  fail(): void {
    if (this.#ended) return
    this.callerLeft()
    this.#response.destroy()
  }

  /** True when the body was too large and its rest must be discarded before the answer ends. */
  protected get hasRefusedBody(): boolean {
    return this.#isUnread || this.#bodyReader?.refused === true
  }

  /** The framework sends the rest of the answer, `byteLength` bytes. */
  protected endedElsewhere(byteLength: number): void {
    this.#ended = true
    this.#unwatch()
    if (byteLength > UNTIMED_REST_BYTES) this.#limitReading()
  }

  /** Restores the socket's timeout afterwards, because Node may not, and the next request must not inherit ours. */
  #limitReading(): void {
    const response = this.#response
    const { socket } = this.#request
    const beforeMs = socket.timeout ?? 0
    response.setTimeout(UNREAD_TIMEOUT_MS, () => response.destroy())
    response.once('finish', () => {
      if (socket.timeout === UNREAD_TIMEOUT_MS) socket.setTimeout(beforeMs)
    })
  }

  #drained(): void {
    if (!this.#ended) this.#drainListener?.()
  }

  #readParsedBody(limitBytes: number, listener: BodyListener): void {
    const { body, headers } = this.#request
    const isKept = !isPlaceholder(body, headers['content-length'])
    const bytes = isKept ? parsedBodyBytes(body, headers['content-type']) : undefined
    if (bytes === undefined) listener('consumed', [])
    else if (bytes.byteLength > limitBytes) listener('too_large', [])
    else listener(undefined, [bytes])
  }

  /** True for headers about the bytes on the wire once a body parser has replaced those bytes. */
  #isReplaced(name: string): boolean {
    if (name !== 'content-encoding' && name !== 'content-length' && name !== 'transfer-encoding') return false
    return this.#request.body !== undefined && isSpent(this.#request)
  }

  #endAfterDiscarding(bytes: Uint8Array | string | undefined): void {
    const response = this.#response
    if (bytes !== undefined && bytes.length > 0) response.write(bytes)
    else response.flushHeaders()
    discardRequest(this.#request, () => {
      if (!response.destroyed) response.end()
    })
  }

  #unwatch(): void {
    if (this.#watched) pipelined.get(this.#request.socket)?.delete(this)
    this.#watched = false
  }
}

/** The header's different values joined, as other repeated headers are; `first` when there is one. */
function repeatedAuthorization(rawHeaders: readonly string[], first: unknown): string | undefined {
  let joined = typeof first === 'string' ? first : undefined
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!
    if (name.length !== AUTHORIZATION.length || name.toLowerCase() !== AUTHORIZATION) continue
    const value = rawHeaders[index + 1]!
    if (joined === undefined) joined = value
    else if (value !== first) joined = `${joined}, ${value}`
  }
  return joined
}

const AUTHORIZATION = 'authorization'

/** True when the request's stream was read before the gateway saw it. */
function isSpent(request: IncomingMessage): boolean {
  return request.readableEnded || request.readableDidRead
}

function onClose(this: ExchangeResponse): void {
  this[EXCHANGE]?.callerLeft()
}

// Without a listener an `error` event would end the host's process.
function onError(this: ExchangeResponse): void {
  this[EXCHANGE]?.fail()
}

/** Pipelined requests by their socket, until their own response has one. */
const pipelined = new WeakMap<Socket, Set<NodeExchange>>()

/**
 * Calls `callerLeft` when the socket closes. For pipelined requests only: their response has no socket until the earlier
 * answers are sent, and Node does not report that the caller left before that.
 */
function watchSocket(socket: Socket, exchange: NodeExchange): void {
  const waiting = pipelined.get(socket) ?? new Set<NodeExchange>()
  if (!pipelined.has(socket)) {
    pipelined.set(socket, waiting)
    // One listener per socket: a long pipeline must not cause Node's warning about too many listeners.
    socket.once('close', () => {
      for (const each of waiting) each.callerLeft()
    })
  }
  waiting.add(exchange)
}

/**
 * Writes status and headers (a flat list). Headers that middleware has set are kept unless the list names them; `vary` and
 * `set-cookie` are appended.
 */
function writeResponseHead(response: ServerResponse, status: number, headers: readonly string[]): void {
  // Middleware that replaces `writeHead` may handle only headers set one by one; `writeHead` itself replaces `vary` and, on
  // Node 20, drops repeated headers once any header has been set.
  if (response.writeHead === ServerResponse.prototype.writeHead && response.getHeaderNames().length === 0) {
    response.writeHead(status, headers as string[])
    return
  }
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index]!
    const value = headers[index + 1]!
    if (ADDED.has(name) || namedBefore(headers, index)) response.appendHeader(name, value)
    else response.setHeader(name, value)
  }
  response.writeHead(status)
}

/**
 * Node keeps the text of a sent head for as long as the answer lasts, as a tree of its pieces: 2 kB of an open stream. Reading a
 * character makes V8 put them together.
 */
function flattenHead(response: ServerResponse & { readonly _header?: unknown }): void {
  const { _header: head } = response
  if (typeof head === 'string') head.charCodeAt(0)
}

/** Up to here a body is joined to its head: Node puts a text into one buffer with it, and other bytes behind it. */
const JOINED_BYTES = 8 * 1024

/** Ends an answer; a small one goes to the socket as one buffer, head included. */
function endResponse(response: ServerResponse, bytes: Uint8Array | string | undefined): void {
  const isJoined =
    bytes instanceof Uint8Array && bytes.length <= JOINED_BYTES && response.end === ServerResponse.prototype.end
  // As latin1, in which each byte is one character and stays it.
  if (isJoined) response.end(asBuffer(bytes).toString('latin1'), 'latin1')
  else response.end(bytes)
}

function namedBefore(headers: readonly string[], index: number): boolean {
  for (let earlier = 0; earlier < index; earlier += 2) if (headers[earlier] === headers[index]) return true
  return false
}
