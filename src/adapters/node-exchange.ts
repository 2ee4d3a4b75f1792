import { type IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { type Sender, sendAtEndOfTurn } from '../core/calls-in-flight.ts'
import { systemClock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import {
  type BodyFailure,
  type BodyListener,
  type ByteSink,
  bodyError,
  type GatewayRequest,
  wholeBody,
} from '../core/exchange.ts'
import { freeMemory, isFreeable } from '../core/memory-use.ts'
import { asBuffer } from '../wire/chunks.ts'
import { mediaType } from '../wire/headers.ts'
import { pathOfTarget, queryOfTarget } from './route-path.ts'

/** Maximum unread rest of an answer that is not worth a timer. */
const UNTIMED_REST_BYTES = 64 * 1024

/**
 * Time after which a caller that reads nothing of the rest of an answer is disconnected. Long, because the kernel reports reads
 * in steps of a third of its buffer, which is a megabyte or more. Odd, to identify the gateway's own timeout on the socket.
 */
const UNREAD_TIMEOUT_MS = 600_001

const EXCHANGE = Symbol('signalbox.nodeExchange')

type ExchangeResponse = ServerResponse & { [EXCHANGE]?: NodeExchange }

/** Node request. `body` is the result of a body parser, and `originalUrl` the URL before routers shortened it. */
export type ParsedIncomingMessage = IncomingMessage & { readonly body?: unknown; readonly originalUrl?: string }

/** Request and answer over Node's request and response. A single object, to allocate little per request. */
export class NodeExchange implements GatewayRequest, ByteSink, Sender {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly hostRequest: unknown
  readonly #request: ParsedIncomingMessage
  readonly #response: ServerResponse
  /** Stream of the body: the request, or its replacement by the host. */
  readonly #body: Readable
  #closeListener: (() => void) | undefined
  #drainListener: (() => void) | undefined
  #ended = false
  #left = false
  #bodyReader: RequestBodyReader | undefined
  /** Whether a streamed body was not read to its end. */
  #isUnread = false
  #watched = false
  #isHeadFlat = false
  /** Socket whose written data waits for the end of the turn. */
  #corked: Socket | undefined
  /** Rest of the answer, while the socket is corked. */
  #heldEnd: string | undefined

  /**
   * `path` is below the mount; the query is read from the request. `hostRequest` is the framework's own request, if it is another
   * object, and `body` the stream with which the host replaced the request's.
   */
  constructor(
    request: ParsedIncomingMessage,
    response: ServerResponse,
    path: string,
    hostRequest: unknown = request,
    body: Readable = request,
  ) {
    this.hostRequest = hostRequest
    this.method = request.method ?? 'GET'
    this.path = path
    this.query = queryOfTarget(request.url ?? '')
    this.#request = request
    this.#response = response
    this.#body = body
    // Without a listener, an error would end the host's process.
    if (body !== request) body.on('error', noAction)
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
    // Node keeps the first of two headers and drops the others. Requests created by a host may have no raw headers.
    if (name === 'authorization' && value !== undefined)
      return repeatedAuthorization(this.#request.rawHeaders ?? [], value)
    if (typeof value === 'string') return value
    return Array.isArray(value) ? value.join(', ') : undefined
  }

  readBody(limitBytes: number, listener: BodyListener): void {
    const request = this.#request
    if (!announcesBody(request)) listener(undefined, [])
    else if (isSpent(this.#body)) this.#readParsedBody(limitBytes, listener)
    else {
      this.#bodyReader = new RequestBodyReader(limitBytes, listener)
      this.#bodyReader.start(request, this.#body)
    }
  }

  get ownsBody(): boolean {
    return this.#bodyReader?.wasAlone === true
  }

  async *streamBody(limitBytes: number): AsyncIterable<Uint8Array> {
    const request = this.#request
    const body = this.#body
    if (!announcesBody(request)) return
    if (isSpent(body)) return yield* await wholeBody(this, limitBytes)
    if (body === request && Number(request.headers['content-length']) > limitBytes) throw this.#refused(limitBytes)
    let sizeBytes = 0
    this.#isUnread = true
    try {
      // Not destroyed when reading stops, because the answer uses the same connection.
      for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array | string>) {
        const bytes = bytesOf(body, chunk)
        sizeBytes += bytes.byteLength
        if (sizeBytes > limitBytes) throw this.#refused(limitBytes)
        yield bytes
      }
    } catch (error) {
      if (GatewayError.isInstance(error)) throw error
      throw bodyError(body === request || this.closed ? 'aborted' : 'unreadable', limitBytes)
    }
    this.#isUnread = false
  }

  #refused(limitBytes: number): GatewayError {
    this.#isUnread = true
    return bodyError('too_large', limitBytes)
  }

  get closed(): boolean {
    // Last case: a middleware, such as a timeout, answered instead of the gateway.
    return this.#left || this.#request.socket.destroyed || (this.#response.writableEnded && !this.#ended)
  }

  head(status: number, headers: readonly string[]): void {
    if (this.closed) return
    if (this.#response.headersSent) {
      // A middleware has begun to answer. A mixture of both answers could pass for a complete one.
      this.destroy()
      return
    }
    if (this.hasRefusedBody) this.#response.shouldKeepAlive = false
    writeResponseHead(this.#response, status, headers)
  }

  write(bytes: Uint8Array | string, mayFree = false): boolean {
    if (this.#ended || this.closed || this.isBodiless) return true
    if (bytes.length <= HELD_BYTES) this.#cork()
    const isAccepted =
      mayFree && isFreeable(bytes) && isPlain(this.#response)
        ? this.#response.write(bytes, () => freeMemory(bytes))
        : this.#response.write(bytes)
    if (!this.#isHeadFlat) {
      this.#isHeadFlat = true
      flattenHead(this.#response)
    }
    // Some hosts return nothing at all, and then never emit `drain`.
    return isAccepted !== false
  }

  end(given?: Uint8Array | string, mayFree = false): void {
    if (this.#ended || this.closed) return
    const bytes = this.isBodiless ? undefined : given
    this.#ended = true
    this.#unwatch()
    this.#discardReplaced()
    if (this.hasRefusedBody && !this.#request.complete) this.#endAfterDiscarding(bytes)
    else if (isHeldBack(this.#response, bytes)) this.#holdEnd(bytes)
    else if (mayFree && isFreeable(bytes) && isPlain(this.#response)) this.#response.end(bytes, () => freeMemory(bytes))
    else this.#response.end(bytes)
    // The rest that the socket did not accept stays in memory until the caller reads it.
    if (this.#response.writableLength > UNTIMED_REST_BYTES) this.#limitReading()
  }

  destroy(): void {
    if (this.#left) return
    this.sendHeld()
    this.#ended = true
    this.#left = true
    this.#unwatch()
    this.#response.destroy()
  }

  endConnection(): void {
    // HTTP/2 connections carry many requests and end by other means. A sent head has announced that the connection stays open:
    // ending it now would hit the caller's next request, whose answer can end it instead.
    if (this.#request.httpVersionMajor < 2) this.#response.shouldKeepAlive = false
  }

  /** Sends the data that waits for the end of the turn. */
  sendHeld(): void {
    const text = this.#heldEnd
    const socket = this.#corked
    this.#heldEnd = undefined
    this.#corked = undefined
    if (text === undefined) socket?.uncork()
    // Ending a response uncorks its socket.
    else if (!this.#response.destroyed) endResponse(this.#response, text)
  }

  onDrain(listener: () => void): void {
    // A closure, because compressing middleware calls listeners with its own stream as `this`.
    if (this.#drainListener === undefined) this.#response.on('drain', () => this.drained())
    this.#drainListener = listener
  }

  onClose(listener: () => void): void {
    if (this.#ended) return
    if (this.closed) {
      this.#left = true
      listener()
    } else this.#closeListener = listener
  }

  /** Handles a closed connection. Calls the close listener, unless the answer has ended. */
  callerLeft(): void {
    if (this.#ended) return
    this.#left = true
    this.#unwatch()
    const listener = this.#closeListener
    this.#closeListener = undefined
    listener?.()
    // A replacement stream may not notice.
    if (this.#body !== this.#request) this.#bodyReader?.abort()
  }

  /** Handles a failed write: closes the connection, unless the answer has ended. */
  fail(): void {
    if (this.#ended) return
    this.callerLeft()
    this.#response.destroy()
  }

  /** Whether the request is HEAD, whose answer has the headers of a body and no bytes. Some servers throw if bytes are written. */
  protected get isBodiless(): boolean {
    return this.method === 'HEAD'
  }

  /** Whether the body was too large, so that its rest must be discarded before the answer ends. */
  protected get hasRefusedBody(): boolean {
    return this.#isUnread || this.#bodyReader?.refused === true
  }

  /** Notes that the framework sends the rest of the answer, `byteLength` bytes. */
  protected endedElsewhere(byteLength: number): void {
    this.#ended = true
    this.#unwatch()
    this.#discardReplaced()
    if (byteLength > UNTIMED_REST_BYTES) this.#limitReading()
  }

  /**
   * Limits the time for reading. Restores the socket's timeout afterwards: Node may not, and the next request must not inherit
   * it.
   */
  #limitReading(): void {
    const response = this.#response
    const { socket } = this.#request
    const beforeMs = socket.timeout ?? 0
    response.setTimeout(UNREAD_TIMEOUT_MS, () => response.destroy())
    response.once('finish', () => {
      if (socket.timeout === UNREAD_TIMEOUT_MS) socket.setTimeout(beforeMs)
    })
  }

  /** Buffers the data written in this turn until its end. */
  #cork(): void {
    const { socket } = this.#response
    if (socket === null || !isPlain(this.#response) || socket.writableCorked > 0) return
    socket.cork()
    this.#corked = socket
    sendAtEndOfTurn(this)
  }

  /** Buffers the end of the answer until the end of the turn, as latin1, which maps each byte to one character. */
  #holdEnd(bytes: Uint8Array): void {
    this.#heldEnd = asBuffer(bytes).toString('latin1')
    if (this.#corked === undefined) sendAtEndOfTurn(this)
  }

  /** Calls the drain listener, unless the answer has ended. */
  drained(): void {
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

  /** Returns whether a header describes bytes on the wire that a body parser has replaced. */
  #isReplaced(name: string): boolean {
    if (name !== 'content-encoding' && name !== 'content-length' && name !== 'transfer-encoding') return false
    if (this.#body !== this.#request) return true
    return this.#bodyReader === undefined && this.#request.body !== undefined && isSpent(this.#request)
  }

  /** Calls `done` after the rest of a rejected body is discarded; immediately if there is none. */
  protected afterDiscarding(done: () => void): void {
    if (this.hasRefusedBody && !this.#request.complete) discardRequest(this.#body, done)
    else done()
  }

  #endAfterDiscarding(bytes: Uint8Array | string | undefined): void {
    const response = this.#response
    if (bytes !== undefined && bytes.length > 0) response.write(bytes)
    else response.flushHeaders()
    this.afterDiscarding(() => {
      if (!response.destroyed) response.end()
    })
  }

  /** Node reads the rest of a request itself, unless the host pipes it into another stream: the next request would wait indefinitely. */
  #discardReplaced(): void {
    const request = this.#request
    if (this.#body === request || this.#body.readableEnded || this.hasRefusedBody) return
    discardRequest(this.#body, () => {
      if (!request.complete) request.destroy()
    })
  }

  #unwatch(): void {
    if (this.#watched) unwatchSocket(this.#request.socket, this)
    this.#watched = false
  }
}

/** Joins the different values of a repeated header like other headers. Returns `first` if there is one value. */
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

/** Returns whether the body cannot be read from the request: its stream was read already, or the host's request object has none. */
function isSpent(body: Readable): boolean {
  return typeof body.resume !== 'function' || body.readableEnded || body.readableDidRead
}

const noAction = (): void => undefined

function onClose(this: ExchangeResponse): void {
  this[EXCHANGE]?.callerLeft()
}

// Without a listener an `error` event would end the host's process.
function onError(this: ExchangeResponse): void {
  this[EXCHANGE]?.fail()
}

const READER = Symbol('signalbox.requestBodyReader')

type ReadStream = Readable & { [READER]?: RequestBodyReader }

/** Node's request, with the stream of HTTP/2. */
type StreamedRequest = IncomingMessage & { readonly stream?: { readonly endAfterHeaders?: boolean } }

/**
 * Returns whether a request has a body: by its headers (RFC 9112, section 6.3), or over HTTP/2 because its stream continues after
 * them (RFC 9113, section 8.1).
 */
function announcesBody(request: StreamedRequest): boolean {
  if (request.httpVersionMajor >= 2) return request.stream?.endAfterHeaders !== true
  const contentLength = request.headers['content-length']
  return request.headers['transfer-encoding'] !== undefined || (contentLength !== undefined && contentLength !== '0')
}

/**
 * Collects a body from its stream, up to `limitBytes`. Reads nothing if the declared length is larger, and stops reading at the
 * limit. The connection stays open, so that the rejection can be sent. Fails with `aborted` if the caller disconnects before the
 * end.
 */
class RequestBodyReader {
  readonly #limitBytes: number
  #listener: BodyListener | undefined
  #chunks: Uint8Array[] = []
  #sizeBytes = 0
  #refused = false
  #wasAlone = false

  constructor(limitBytes: number, listener: BodyListener) {
    this.#limitBytes = limitBytes
    this.#listener = listener
  }

  /** Whether the body was too large. The rest may still arrive. */
  get refused(): boolean {
    return this.#refused
  }

  /** Whether the whole body was read without another listener. */
  get wasAlone(): boolean {
    return this.#wasAlone
  }

  /**
   * Starts reading. Calls the listener exactly once, possibly before this returns.
   * @param body The request, or the stream with which the host replaced it.
   */
  start(request: IncomingMessage, body: Readable): void {
    if (body === request && Number(request.headers['content-length']) > this.#limitBytes) {
      this.#settle('too_large')
      return
    }
    if (body.destroyed) {
      this.#settle(body === request || body.errored === null ? 'aborted' : 'unreadable')
      return
    }
    const read: ReadStream = body
    read[READER] = this
    body.on('data', onData)
    body.on('end', onEnd)
    body.on('error', body === request ? onAborted : onUnreadable)
    body.on('close', onAborted)
    this.#wasAlone = body === request && isOnlyListener(body)
    // A middleware may have paused the stream; a data listener alone would not resume it.
    body.resume()
  }

  /** Adds one chunk of the body. */
  add(body: Readable, chunk: Uint8Array | string): void {
    if (this.#listener === undefined) return
    const bytes = bytesOf(body, chunk)
    this.#sizeBytes += bytes.byteLength
    if (this.#sizeBytes <= this.#limitBytes) {
      this.#chunks.push(bytes)
      return
    }
    body.off('data', onData)
    body.pause()
    this.#settle('too_large')
  }

  /** Completes the body. */
  finish(body: Readable): void {
    this.#wasAlone &&= isOnlyListener(body)
    this.#settle(undefined)
  }

  /** Notes that the body will not be complete. Without effect if it was already complete or rejected. */
  abort(failure: 'aborted' | 'unreadable' = 'aborted'): void {
    this.#settle(failure)
  }

  #settle(failure: BodyFailure | undefined): void {
    const listener = this.#listener
    if (listener === undefined) return
    const chunks = failure === undefined ? this.#chunks : []
    this.#refused = failure === 'too_large'
    // The reader lives as long as the answer, possibly a long stream, so it releases the body and the listener.
    this.#listener = undefined
    this.#chunks = []
    listener(failure, chunks)
  }
}

/** Returns the bytes of a chunk, which is a string if a middleware has requested strings. */
function bytesOf({ readableEncoding }: Readable, chunk: Uint8Array | string): Uint8Array {
  return typeof chunk === 'string' ? Buffer.from(chunk, readableEncoding ?? 'utf8') : chunk
}

/** Another listener may keep the chunks that it receives. */
function isOnlyListener(body: Readable): boolean {
  return body.listenerCount('data') === 1 && body.listenerCount('readable') === 0
}

// Shared by all requests: a closure per request and event costs more than the reading itself.
function onData(this: ReadStream, chunk: Uint8Array | string): void {
  this[READER]?.add(this, chunk)
}

function onEnd(this: ReadStream): void {
  this[READER]?.finish(this)
}

function onAborted(this: ReadStream): void {
  this[READER]?.abort()
}

function onUnreadable(this: ReadStream): void {
  this[READER]?.abort('unreadable')
}

const encoder = new TextEncoder()

/**
 * Whether a body is the empty object that some body parsers (body-parser 1, in Express 4) set on every request they do not parse.
 * It is the caller's own `{}` only if the declared length is two bytes.
 */
export function isPlaceholder(body: unknown, contentLength: string | undefined): boolean {
  if (typeof body !== 'object' || body === null || contentLength === '2') return false
  return Object.getPrototypeOf(body) === Object.prototype && Object.keys(body).length === 0
}

/**
 * Returns the bytes of a body that a body parser has read from the stream and stored on the request. Undefined if they cannot be
 * restored: nothing was kept, or the body was a form with files or nested fields. JSON is serialized again, so the caller's white
 * space and repeated members are lost.
 */
export function parsedBodyBytes(body: unknown, contentType: string | undefined): Uint8Array | undefined {
  if (body === undefined) return undefined
  if (body instanceof Uint8Array) return body
  if (typeof body === 'string') return encoder.encode(body)
  const type = mediaType(contentType)
  if (type.startsWith('multipart/')) return undefined
  if (type === 'application/x-www-form-urlencoded') return formBytes(body)
  const text = JSON.stringify(body)
  return text === undefined ? undefined : encoder.encode(text)
}

function formBytes(body: unknown): Uint8Array | undefined {
  if (typeof body !== 'object' || body === null) return undefined
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(body)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (typeof item !== 'string') return undefined
      form.append(name, item)
    }
  }
  return encoder.encode(form.toString())
}

/** Maximum number of bytes of a rejected body that are read and discarded. */
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024

/** Maximum time for which a rejected body is read. */
const MAX_DISCARD_MS = 5_000

/**
 * Reads and discards the rest of a request, within limits, then calls `done` once. Closing a socket with unread bytes makes the
 * system reset the connection, and a caller that is still sending would lose the answer.
 */
export function discardRequest(request: Readable, done: () => void): void {
  let discardedBytes = 0
  const finish = (): void => {
    timer.cancel()
    request.off('data', count)
    request.off('end', finish)
    request.off('close', finish)
    done()
  }
  const count = (chunk: Uint8Array | string): void => {
    discardedBytes += chunk.length
    if (discardedBytes > MAX_DISCARDED_BYTES) finish()
  }
  const timer = systemClock.schedule(MAX_DISCARD_MS, finish)
  request.on('data', count)
  request.on('end', finish)
  request.on('close', finish)
  request.resume()
}

// Headers for which the gateway's values are appended to those of the host.
const ADDED = new Set(['vary', 'set-cookie'])

/**
 * Writes status and headers (a flat list). Headers of middleware are kept unless the list names them; `vary` and `set-cookie` are
 * appended.
 */
function writeResponseHead(response: ServerResponse, status: number, headers: readonly string[]): void {
  // Middleware that replaces `writeHead` may support only headers that are set one by one. `writeHead` itself replaces `vary`
  // and, on Node 20, drops repeated headers once any header has been set.
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
 * Node keeps the text of a sent head until the answer ends, as a tree of its pieces: 2 kB of an open stream. Reading a character
 * makes V8 join them.
 */
function flattenHead(response: ServerResponse & { readonly _header?: unknown }): void {
  const { _header: head } = response
  if (typeof head === 'string') head.charCodeAt(0)
}

/**
 * Maximum number of bytes that wait for the end of the turn. A waiting body is joined to its head: Node puts a string into one
 * buffer with the head, and bytes after it.
 */
const HELD_BYTES = 8 * 1024

function isHeldBack(response: ServerResponse, bytes: Uint8Array | string | undefined): bytes is Uint8Array {
  return bytes instanceof Uint8Array && bytes.length <= HELD_BYTES && isPlain(response)
}

/**
 * Returns whether writes go to a socket of the system: no middleware has replaced them, and it is not HTTP/2. Bridges to
 * serverless hosts use a response object that ignores the encoding of a string and may keep the bytes.
 */
function isPlain(response: ServerResponse): boolean {
  const { write, end } = ServerResponse.prototype
  // A pipelined response has no socket yet.
  return response.write === write && response.end === end && (response.socket ?? response.req.socket) instanceof Socket
}

function endResponse(response: ServerResponse, text: string): void {
  try {
    response.end(text, 'latin1')
  } catch (error) {
    // Other work of the turn must continue.
    response.destroy(error instanceof Error ? error : undefined)
  }
}

function namedBefore(headers: readonly string[], index: number): boolean {
  for (let earlier = 0; earlier < index; earlier += 2) if (headers[earlier] === headers[index]) return true
  return false
}

/** Request that waits for the answers to earlier ones of its connection. */
export interface PipelinedRequest {
  /** Called when the connection has closed. */
  callerLeft(): void
}

/** Pipelined requests by their socket, until their own response has a socket. */
const pipelined = new WeakMap<Socket, Set<PipelinedRequest>>()

/**
 * Calls `callerLeft` when the socket closes. For pipelined requests only: their response has no socket until the earlier
 * answers are sent, and Node does not report that the caller disconnected before that.
 */
function watchSocket(socket: Socket, request: PipelinedRequest): void {
  const waiting = pipelined.get(socket) ?? new Set<PipelinedRequest>()
  if (!pipelined.has(socket)) {
    pipelined.set(socket, waiting)
    // One listener per socket: a long pipeline must not cause Node's warning about too many listeners.
    socket.once('close', () => {
      for (const each of waiting) each.callerLeft()
    })
  }
  waiting.add(request)
}

/** Stops watching; see {@link watchSocket}. */
function unwatchSocket(socket: Socket, request: PipelinedRequest): void {
  pipelined.get(socket)?.delete(request)
}
