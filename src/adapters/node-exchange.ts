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

/** A smaller unread rest of an answer is not worth a timer. */
const UNTIMED_REST_BYTES = 64 * 1024

/**
 * A caller that reads nothing of the rest of an answer for this long is disconnected. Long, because the kernel reports reads
 * in steps of a third of its buffer, which is a megabyte or more. Odd on purpose: identifies our own timeout on the socket.
 */
const UNREAD_TIMEOUT_MS = 600_001

const EXCHANGE = Symbol('signalbox.nodeExchange')

type ExchangeResponse = ServerResponse & { [EXCHANGE]?: NodeExchange }

/** A Node request; `body` is what a body parser left on it, `originalUrl` what routers have not shortened. */
export type ParsedIncomingMessage = IncomingMessage & { readonly body?: unknown; readonly originalUrl?: string }

/** One request and its answer over Node's request and response. A single object, to allocate little per request. */
export class NodeExchange implements GatewayRequest, ByteSink, Sender {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly hostRequest: unknown
  readonly #request: ParsedIncomingMessage
  readonly #response: ServerResponse
  /** Stream of the body: the request, or what the host has put in its place. */
  readonly #body: Readable
  #closeListener: (() => void) | undefined
  #drainListener: (() => void) | undefined
  #ended = false
  #left = false
  #bodyReader: RequestBodyReader | undefined
  /** Is a streamed body not read to its end? */
  #isUnread = false
  #watched = false
  #isHeadFlat = false
  /** The socket, while what was written to it waits for the end of the turn. */
  #corked: Socket | undefined
  /** The rest of the answer, while that waits. */
  #heldEnd: string | undefined

  /**
   * `path` is already below the mount; the query is read from the request. `hostRequest` is the framework's own, where that is
   * another object, and `body` the stream that the host has put in place of the request's.
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
    // Nobody else may listen, and the host's process would end.
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
    // Node keeps the first of two and drops the others. Requests that a host has made up may have no raw headers.
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
      // Not destroyed where reading stops: the answer goes over the same connection.
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
    // What the socket did not accept stays in memory until the caller reads it.
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
    // Connections of HTTP/2 have many requests, and end by other means. A head that is sent has told the caller that the connection stays
    // open: to end it then would meet its next request, whose answer can end it instead.
    if (this.#request.httpVersionMajor < 2) this.#response.shouldKeepAlive = false
  }

  /** Sends what waits for the end of the turn. */
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

  /** The connection has closed. Calls the close listener, unless the answer has ended. */
  callerLeft(): void {
    if (this.#ended) return
    this.#left = true
    this.#unwatch()
    const listener = this.#closeListener
    this.#closeListener = undefined
    listener?.()
    // A stream in place of the request's may not notice.
    if (this.#body !== this.#request) this.#bodyReader?.abort()
  }

  /** Writing has failed: closes the connection, unless the answer has ended. */
  fail(): void {
    if (this.#ended) return
    this.callerLeft()
    this.#response.destroy()
  }

  /** True for HEAD, whose answer has the headers of a body and no bytes. A server may be set up to throw where some are written. */
  protected get isBodiless(): boolean {
    return this.method === 'HEAD'
  }

  /** True when the body was too large and its rest must be discarded before the answer ends. */
  protected get hasRefusedBody(): boolean {
    return this.#isUnread || this.#bodyReader?.refused === true
  }

  /** The framework sends the rest of the answer, `byteLength` bytes. */
  protected endedElsewhere(byteLength: number): void {
    this.#ended = true
    this.#unwatch()
    this.#discardReplaced()
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

  /** Keeps what is written in this turn for its end. */
  #cork(): void {
    const { socket } = this.#response
    if (socket === null || !isPlain(this.#response) || socket.writableCorked > 0) return
    socket.cork()
    this.#corked = socket
    sendAtEndOfTurn(this)
  }

  /** Keeps the end of the answer for the end of the turn; as latin1, in which each byte is one character and stays it. */
  #holdEnd(bytes: Uint8Array): void {
    this.#heldEnd = asBuffer(bytes).toString('latin1')
    if (this.#corked === undefined) sendAtEndOfTurn(this)
  }

  /** More may be written. Calls the drain listener, unless the answer has ended. */
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

  /** True for headers about the bytes on the wire once a body parser has replaced those bytes. */
  #isReplaced(name: string): boolean {
    if (name !== 'content-encoding' && name !== 'content-length' && name !== 'transfer-encoding') return false
    if (this.#body !== this.#request) return true
    return this.#bodyReader === undefined && this.#request.body !== undefined && isSpent(this.#request)
  }

  /** Calls `done` once the rest of a refused body is discarded; immediately if there is none. */
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

  /** Node reads the rest of a request itself, but not if the host pipes it into another stream: the next one would wait indefinitely. */
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

/** Returns whether the body cannot be read from the request: its stream was read already, or it is a host's object without one. */
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
