import type { IncomingMessage, ServerResponse } from 'node:http'

import type { BodyListener, ByteSink, GatewayRequest } from '../core/exchange.ts'
import { discardRequest } from './discard-request.ts'
import { isPlaceholder, parsedBodyBytes } from './parsed-body.ts'
import { announcesBody, RequestBodyReader } from './request-body-reader.ts'
import { writeResponseHead } from './response-head.ts'
import { unwatchSocket, watchSocket } from './socket-watch.ts'

/** Answers of which no more is left to be read need no watch: so much is soon with the caller, or costs little. */
const READ_SOON_BYTES = 64 * 1024

/**
 * A caller that reads nothing of the rest of an answer for so long has left. Long, because a kernel tells of what was read
 * in steps of a third of its buffer, which is a megabyte and more. No round number: by it is known who has set it.
 */
const UNREAD_TIMEOUT_MS = 600_001

const EXCHANGE = Symbol('signalbox.nodeExchange')

type ExchangeResponse = ServerResponse & { [EXCHANGE]?: NodeExchange }

/** A Node request on which a body parser may have left its result. */
export type ParsedIncomingMessage = IncomingMessage & { readonly body?: unknown }

/** One request and its answer over Node's own pair; a single object, so that the hot path allocates little. */
export class NodeExchange implements GatewayRequest, ByteSink {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly #request: ParsedIncomingMessage
  readonly #response: ServerResponse
  #closeListener: (() => void) | undefined
  #drainListener: (() => void) | undefined
  #ended = false
  #left = false
  #bodyReader: RequestBodyReader | undefined
  #watched = false

  /** `path` and `query` as {@link GatewayRequest} has them: the path is already below the mount. */
  constructor(request: ParsedIncomingMessage, response: ServerResponse, path: string, query: string) {
    this.method = request.method ?? 'GET'
    this.path = path
    this.query = query
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

  header(name: string): string | undefined {
    if (this.#isReplaced(name)) return undefined
    const value: unknown = this.#request.headers[name]
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

  get closed(): boolean {
    // The last case is a middleware, such as a timeout, that has answered in the gateway's place.
    return this.#left || this.#request.socket.destroyed || (this.#response.writableEnded && !this.#ended)
  }

  head(status: number, headers: readonly string[]): void {
    if (this.closed) return
    if (this.#response.headersSent) {
      // Somebody else has begun to answer; two answers in one would look whole.
      this.destroy()
      return
    }
    if (this.#bodyReader?.refused) this.#response.shouldKeepAlive = false
    writeResponseHead(this.#response, status, headers)
  }

  write(bytes: Uint8Array | string): boolean {
    return this.#ended || this.closed ? true : this.#response.write(bytes)
  }

  end(bytes?: Uint8Array | string): void {
    if (this.#ended || this.closed) return
    this.#ended = true
    this.#unwatch()
    if (this.#bodyReader?.refused && !this.#request.complete) this.#endAfterDiscarding(bytes)
    else this.#response.end(bytes)
    // What the socket did not take at once is kept in memory until the caller reads it.
    if (this.#response.writableLength > READ_SOON_BYTES) this.#watchReading()
  }

  destroy(): void {
    if (this.#left) return
    this.#ended = true
    this.#left = true
    this.#unwatch()
    this.#response.destroy()
  }

  onDrain(listener: () => void): void {
    // A closure: compressing middleware listens on a stream of its own, which is then `this`.
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

  /** The connection is gone. Tells the listener, unless the answer had already been handed over whole. */
  callerLeft(): void {
    if (this.#ended) return
    this.#left = true
    this.#unwatch()
    const listener = this.#closeListener
    this.#closeListener = undefined
    listener?.()
  }

  /** The answer cannot go on. An answer already handed over whole is left to its own end. */
  fail(): void {
    if (this.#ended) return
    this.callerLeft()
    this.#response.destroy()
  }

  /** Node itself ends a timeout only where it keeps idle connections for a time; the next request must not inherit it. */
  #watchReading(): void {
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

  /** These describe the bytes on the wire; a body parser has decoded them, and a rebuilt body has its own length. */
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
    if (this.#watched) unwatchSocket(this.#request.socket, this)
    this.#watched = false
  }
}

/** True when somebody has already read from the request's stream. */
function isSpent(request: IncomingMessage): boolean {
  return request.readableEnded || request.readableDidRead
}

function onClose(this: ExchangeResponse): void {
  this[EXCHANGE]?.callerLeft()
}

// An `error` event without a listener would end the host's process.
function onError(this: ExchangeResponse): void {
  this[EXCHANGE]?.fail()
}
