import type { IncomingMessage } from 'node:http'

import type { BodyFailure, BodyListener } from '../core/exchange.ts'

const READER = Symbol('signalbox.requestBodyReader')

type ReadRequest = IncomingMessage & { [READER]?: RequestBodyReader }

/** True when the head of the request announces a body (RFC 9112, section 6.3). */
export function announcesBody(request: IncomingMessage): boolean {
  const contentLength = request.headers['content-length']
  return request.headers['transfer-encoding'] !== undefined || (contentLength !== undefined && contentLength !== '0')
}

/**
 * Collects the body of a Node request, at most `limitBytes`. It reads nothing when the announced length is already too
 * large, and stops reading at the limit; the connection is left as it is, so that the refusal can still be answered.
 * Answers `aborted` when the caller leaves in the middle.
 */
export class RequestBodyReader {
  readonly #limitBytes: number
  #listener: BodyListener | undefined
  #chunks: Uint8Array[] = []
  #sizeBytes = 0
  #refused = false

  constructor(limitBytes: number, listener: BodyListener) {
    this.#limitBytes = limitBytes
    this.#listener = listener
  }

  /** True when the body was too large; the rest of it may still be on its way. */
  get refused(): boolean {
    return this.#refused
  }

  /** Begins to read. The listener is called exactly once, possibly before this returns. */
  start(request: IncomingMessage): void {
    if (Number(request.headers['content-length']) > this.#limitBytes) {
      this.#settle('too_large')
      return
    }
    if (request.destroyed) {
      this.#settle('aborted')
      return
    }
    const read: ReadRequest = request
    read[READER] = this
    request.on('data', onData)
    request.on('end', onEnd)
    request.on('error', onAborted)
    request.on('close', onAborted)
    // A middleware may have paused the request, and then a data listener alone does not set it going.
    request.resume()
  }

  /** Takes one piece of the body. */
  add(request: IncomingMessage, chunk: Uint8Array | string): void {
    if (this.#listener === undefined) return
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, request.readableEncoding ?? 'utf8') : chunk
    this.#sizeBytes += bytes.byteLength
    if (this.#sizeBytes <= this.#limitBytes) {
      this.#chunks.push(bytes)
      return
    }
    request.off('data', onData)
    request.pause()
    this.#settle('too_large')
  }

  /** The body is whole. */
  finish(): void {
    this.#settle(undefined)
  }

  /** The caller left; nothing happens when the body was already whole or refused. */
  abort(): void {
    this.#settle('aborted')
  }

  #settle(failure: BodyFailure | undefined): void {
    const listener = this.#listener
    if (listener === undefined) return
    const chunks = failure === undefined ? this.#chunks : []
    this.#refused = failure === 'too_large'
    // The reader lives as long as the answer, which may be a long stream: it keeps neither the body nor who has it.
    this.#listener = undefined
    this.#chunks = []
    listener(failure, chunks)
  }
}

// One function each for all requests: a closure per request and event would cost more than the reading itself.
function onData(this: ReadRequest, chunk: Uint8Array | string): void {
  this[READER]?.add(this, chunk)
}

function onEnd(this: ReadRequest): void {
  this[READER]?.finish()
}

function onAborted(this: ReadRequest): void {
  this[READER]?.abort()
}
