import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { type Sender, sendAtEndOfTurn } from '../core/end-of-turn.ts'
import { GatewayError } from '../core/errors.ts'
import { type BodyListener, type ByteSink, bodyError, type GatewayRequest, wholeBody } from '../core/exchange.ts'
import { freeMemory, isFreeable } from '../core/free-memory.ts'
import { asBuffer } from '../wire/join-chunks.ts'
import {
  announcesBody,
  bytesOf,
  discardRequest,
  isPlaceholder,
  parsedBodyBytes,
  RequestBodyReader,
} from './node-request-body.ts'
import { endResponse, flattenHead, HELD_BYTES, isHeldBack, isPlain, writeResponseHead } from './node-response.ts'
import { unwatchSocket, watchSocket } from './pipelined-requests.ts'
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
    // HTTP/2 connections carry many requests and end by other means. A sent head has told the caller to keep the connection open:
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
