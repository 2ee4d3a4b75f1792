import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { systemClock } from '../core/clock.ts'
import type { BodyFailure, BodyListener } from '../core/exchange.ts'
import { mediaType } from '../wire/headers.ts'

const READER = Symbol('signalbox.requestBodyReader')

type ReadStream = Readable & { [READER]?: RequestBodyReader }

/** Node's request, with the stream of HTTP/2. */
type StreamedRequest = IncomingMessage & { readonly stream?: { readonly endAfterHeaders?: boolean } }

/**
 * Returns whether a request has a body: by its headers (RFC 9112, section 6.3), or over HTTP/2 because its stream continues after
 * them (RFC 9113, section 8.1).
 */
export function announcesBody(request: StreamedRequest): boolean {
  if (request.httpVersionMajor >= 2) return request.stream?.endAfterHeaders !== true
  const contentLength = request.headers['content-length']
  return request.headers['transfer-encoding'] !== undefined || (contentLength !== undefined && contentLength !== '0')
}

/**
 * Collects a body from its stream, up to `limitBytes`. Reads nothing if the declared length is larger, and stops reading at the
 * limit. The connection stays open, so that the rejection can be sent. Fails with `aborted` if the caller disconnects before the
 * end.
 */
export class RequestBodyReader {
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
export function bytesOf({ readableEncoding }: Readable, chunk: Uint8Array | string): Uint8Array {
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
