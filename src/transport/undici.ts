import type { LookupFunction } from 'node:net'
import { type Dispatcher, Pool } from 'undici'
import { RawHeaders } from './raw-headers.ts'
import type { Transport, TransportControl, TransportFailure, TransportHandler, TransportRequest } from './transport.ts'

/** Options of {@link undiciTransport}. */
export interface UndiciTransportOptions {
  /** Longest time to open a connection, TLS included. Default 5,000. */
  readonly connectTimeoutMs?: number
  /** How long an idle connection is kept. Must be below the vendors' own limit. Default 30,000. */
  readonly keepAliveTimeoutMs?: number
  /** Replaces the DNS look-up of connections; used to keep caller-chosen URLs away from private addresses. */
  readonly lookup?: LookupFunction
}

/**
 * Most origins whose connections are kept. Vendors are few, but callers choose origins too (webhooks, pictures). The oldest
 * pools without calls are closed first.
 */
const MAX_POOLS = 256

/**
 * HTTP over undici: one pool of keep-alive connections per origin, one request at a time on each. The number of connections
 * is not bounded here, because callers would queue behind open streams; the gateway's concurrency limits bound it, and
 * answer 429.
 */
export function undiciTransport(options: UndiciTransportOptions = {}): Transport {
  const pools = new Map<string, Pool>()
  const poolOf = (origin: string): Pool => {
    let pool = pools.get(origin)
    if (pool === undefined) {
      pool = new Pool(origin, {
        connections: null,
        pipelining: 1,
        connect: {
          timeout: options.connectTimeoutMs ?? 5_000,
          ...(options.lookup === undefined ? {} : { lookup: options.lookup }),
        },
        keepAliveTimeout: options.keepAliveTimeoutMs ?? 30_000,
        allowH2: false,
      })
      pools.set(origin, pool)
      if (pools.size > MAX_POOLS) dropUnused(pools)
    }
    return pool
  }
  return {
    send(request, handler) {
      const call = new UndiciCall(handler)
      call.begin(poolOf(request.origin), request)
      return call
    },
    async close() {
      const open = [...pools.values()]
      pools.clear()
      await Promise.all(open.map((pool) => pool.close()))
    },
  }
}

function dropUnused(pools: Map<string, Pool>): void {
  for (const [origin, pool] of pools) {
    const { running, pending, queued, size } = pool.stats
    if (running + pending + queued + size > 0) continue
    pools.delete(origin)
    void pool.close()
    if (pools.size <= MAX_POOLS) return
  }
}

type Phase = TransportFailure['phase']

/**
 * One call. undici hands raw headers only to the older of its two kinds of handlers; the newer has all headers of every answer
 * decoded for it, and two objects made around it. undici 8 may drop the older kind, so nothing outside of this file knows it.
 */
class UndiciCall implements TransportControl, Dispatcher.DispatchHandler {
  readonly #handler: TransportHandler
  #abort: ((reason: Error) => void) | undefined
  #resume: (() => void) | undefined
  #phase: Phase = 'connect'
  #ended = false
  #begun = false
  #isPaused = false

  constructor(handler: TransportHandler) {
    this.#handler = handler
  }

  begin(pool: Pool, request: TransportRequest): void {
    try {
      pool.dispatch(
        {
          path: request.path,
          method: request.method,
          ...payloadOf(request),
          headersTimeout: padTimeout(request.firstByteTimeoutMs),
          bodyTimeout: padTimeout(request.idleTimeoutMs),
        },
        this,
      )
    } catch (error) {
      this.#fail(error as Error)
    }
    this.#begun = true
  }

  abort(): void {
    if (this.#ended) return
    const error = new AbortedCallError('the call was aborted')
    if (this.#abort === undefined) queueMicrotask(() => this.#fail(error))
    else this.#abort(error)
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    if (!this.#ended) this.#resume?.()
  }

  onConnect(abort: (reason?: Error) => void): void {
    if (this.#ended) {
      // Aborted while it waited for a connection; without this the pool would lose the connection.
      abort(new AbortedCallError('the call was aborted'))
      return
    }
    this.#abort = abort
    this.#phase = 'sent'
  }

  onHeaders(status: number, headers: Buffer[], resume: () => void): boolean {
    if (this.#ended || status < 200) return true
    this.#phase = 'body'
    this.#resume = resume
    this.#handler.onHead(status, new RawHeaders(headers))
    return !this.#isPaused
  }

  onData(chunk: Buffer): boolean {
    if (!this.#ended) this.#handler.onData(chunk)
    return !this.#isPaused
  }

  onComplete(): void {
    if (this.#ended) return
    this.#end()
    this.#handler.onEnd()
  }

  onError(error: Error): void {
    this.#fail(error)
  }

  /** Releases undici's functions, which hold its request and connection. */
  #end(): void {
    this.#ended = true
    this.#abort = undefined
    this.#resume = undefined
  }

  #fail(error: Error): void {
    if (this.#ended) return
    if (!this.#begun) {
      // `send` must return before a failure is reported.
      queueMicrotask(() => this.#fail(error))
      return
    }
    this.#end()
    this.#handler.onFailure({ phase: this.#phase, kind: kindOf(error), error })
  }
}

/** Interval at which undici checks its timers (`lib/util/timers.js`). */
const TICK_MS = 499

/** undici counts from the tick before a timer was set, so a timer may fire up to one tick early. */
function padTimeout(timeoutMs: number): number {
  return timeoutMs + TICK_MS
}

/** Bodies in pieces are joined up to this size: undici sends each piece in a separate write and turn, which costs more. */
const JOINED_BYTES = 16 * 1024

/** Headers and body as undici takes them. Throws when the pieces of a body do not add up to its `content-length`. */
function payloadOf({ headers, body }: TransportRequest): Pick<Dispatcher.DispatchOptions, 'headers' | 'body'> {
  if (body === null || typeof body === 'string' || body instanceof Uint8Array) {
    return { headers: headers as string[], body }
  }
  const byteLength = body.reduce((sum, piece) => sum + piece.byteLength, 0)
  const given = headerIn(headers, 'content-length')
  if (given !== undefined && given !== String(byteLength)) {
    throw new Error(`the content-length is ${given}, but the body has ${byteLength} bytes`)
  }
  if (byteLength <= JOINED_BYTES) {
    return { headers: headers as string[], body: byteLength === 0 ? null : Buffer.concat(body, byteLength) }
  }
  return {
    headers: given === undefined ? [...headers, 'content-length', String(byteLength)] : (headers as string[]),
    // undici takes iterables, as its documentation of `dispatch` says; its types leave them out.
    body: body as Iterable<Uint8Array> as Uint8Array,
  }
}

function headerIn(headers: readonly string[], name: string): string | undefined {
  for (let position = 0; position + 1 < headers.length; position += 2) {
    if (headers[position]?.toLowerCase() === name) return headers[position + 1]
  }
  return undefined
}

class AbortedCallError extends Error {
  override readonly name = 'AbortedCallError'
}

const KINDS: Readonly<Record<string, TransportFailure['kind']>> = {
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  ETIMEDOUT: 'timeout',
  UND_ERR_ABORTED: 'aborted',
  ECONNREFUSED: 'refused',
  ENOTFOUND: 'refused',
  EAI_AGAIN: 'refused',
  EHOSTUNREACH: 'refused',
  ENETUNREACH: 'refused',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  UND_ERR_SOCKET: 'reset',
  UND_ERR_CLOSED: 'reset',
  UND_ERR_DESTROYED: 'reset',
}

function kindOf(error: Error): TransportFailure['kind'] {
  if (error instanceof AbortedCallError) return 'aborted'
  const code = (error as { code?: unknown }).code
  if (typeof code !== 'string') return 'protocol'
  const known = KINDS[code]
  if (known !== undefined) return known
  return /CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO/.test(code) ? 'tls' : 'protocol'
}
