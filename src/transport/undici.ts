// See docs/decisions/0029-speed.md.

import type { LookupFunction, Socket } from 'node:net'
import type { SecureContextOptions } from 'node:tls'
import type { Dispatcher } from 'undici'
import connect from 'undici/lib/api/api-connect.js'
import buildConnector from 'undici/lib/core/connect.js'
import Client from 'undici/lib/dispatcher/client.js'
import { checkMembers, memberNames } from '../core/known-members.ts'
import type { HeaderReader } from '../wire/headers.ts'
import {
  type EgressProxy,
  type EgressRoute,
  isStreamedBody,
  type TlsMaterial,
  type Transport,
  type TransportControl,
  type TransportFailure,
  type TransportHandler,
  type TransportRequest,
} from './transport.ts'

/** Options of {@link undiciTransport}. */
export interface UndiciTransportOptions {
  /** Maximum time to open a connection, including TLS, in milliseconds. Default 5,000. */
  readonly connectTimeoutMs?: number
  /** Lifetime of an idle connection, in milliseconds. Must be below the vendors' own limit. Default 30,000. */
  readonly keepAliveTimeoutMs?: number
  /** Replaces the DNS lookup of connections. Used to keep URLs of callers away from private addresses. */
  readonly lookup?: LookupFunction
}

const UNDICI_TRANSPORT_OPTIONS = memberNames<UndiciTransportOptions>()('connectTimeoutMs keepAliveTimeoutMs lookup')

/**
 * Maximum number of origins with open connections. Vendors are few, but callers choose origins too (webhooks, images). The oldest
 * origins without calls are closed first.
 */
const MAX_ORIGINS = 256

/**
 * HTTP over undici: keep-alive connections per origin, one request at a time on each. The number of connections is not limited
 * here, because callers would queue behind open streams; the gateway's concurrency limits apply instead, and answer 429.
 */
export function undiciTransport(options: UndiciTransportOptions = {}): Transport {
  checkMembers(options, UNDICI_TRANSPORT_OPTIONS, 'undiciTransport')
  const direct = new Map<string, Connections>()
  // The routes belong to vendors, which live as long as the gateway.
  const routed = new Map<EgressRoute, Map<string, Connections>>()
  const originsOf = (egress: EgressRoute): Map<string, Connections> => {
    const origins = routed.get(egress) ?? new Map<string, Connections>()
    return routed.set(egress, origins).get(egress)!
  }
  const connectionsOf = (origin: string, egress: EgressRoute | undefined): Connections => {
    const origins = egress === undefined ? direct : originsOf(egress)
    let connections = origins.get(origin)
    if (connections === undefined) {
      const clientOptions = clientOptionsOf(options, egress)
      // Parsed once for all connections. An invalid origin is rejected by the call that needs it.
      const url = URL.canParse(origin) ? new URL(origin) : origin
      connections = new ConnectionList((list) => new ClientConnection(url, clientOptions, list))
      origins.set(origin, connections)
      if (origins.size > MAX_ORIGINS) dropUnused(origins)
    }
    return connections
  }
  return {
    givesBytesAway: true,
    send(request, handler) {
      const call = new UndiciCall(handler)
      call.begin(connectionsOf(request.origin, request.egress), request)
      return call
    },
    async close() {
      const open = [direct, ...routed.values()].flatMap((origins) => [...origins.values()])
      direct.clear()
      routed.clear()
      await Promise.all(open.map((connections) => connections.close()))
    },
  }
}

type ClientOptions = Client.Options & { readonly connect: Connector }

/** One connector for all connections to an origin: it keeps the TLS sessions, which make later handshakes faster. */
function clientOptionsOf(
  { connectTimeoutMs = 5_000, keepAliveTimeoutMs, lookup }: UndiciTransportOptions,
  { tls, proxy }: EgressRoute = {},
): ClientOptions {
  const connector = buildConnector({
    allowH2: false,
    timeout: connectTimeoutMs,
    ...(lookup === undefined ? {} : { lookup }),
    ...(tls === undefined ? {} : tlsOptions(tls)),
  })
  return {
    pipelining: 1,
    connect: proxy === undefined ? connector : tunnel(proxy, tls, connector, connectTimeoutMs),
    keepAliveTimeout: keepAliveTimeoutMs ?? 30_000,
    allowH2: false,
  }
}

function tlsOptions({ ca, cert, key, passphrase, servername }: TlsMaterial): SecureContextOptions {
  const given = {
    ca: ca === undefined ? undefined : [ca].flat().map(pem),
    cert: cert && pem(cert),
    key: key && pem(key),
    passphrase,
    servername,
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

function pem(material: string | Uint8Array): string | Buffer {
  return typeof material === 'string' ? material : Buffer.from(material)
}

type Connector = ReturnType<typeof buildConnector>

/** Connects through a proxy with one CONNECT per connection, and TLS to the origin inside the tunnel. */
function tunnel(proxy: EgressProxy, tls: TlsMaterial | undefined, connector: Connector, timeoutMs: number): Connector {
  const { url, authorization } = proxy
  const headers = authorization === undefined ? {} : { 'proxy-authorization': authorization }
  const proxyTls = tls?.ca === undefined ? {} : tlsOptions({ ca: tls.ca })
  return (options, callback) => {
    const { protocol, hostname, port } = options
    const target = `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`
    // Each tunnel owns its connection to the proxy, so there is nothing to share.
    const client = new Client(url, {
      connect: buildConnector({ allowH2: false, timeout: timeoutMs, ...proxyTls }),
      headersTimeout: timeoutMs,
    })
    connect.call(client, { path: target, headers: { ...headers, host: target } }).then(
      ({ socket, statusCode }) => {
        void client.close()
        if (statusCode < 200 || statusCode >= 300) {
          socket.on('error', () => undefined).destroy()
          callback(new ProxyError(refusalText(url, target, statusCode)), null)
        } else if (protocol === 'https:') {
          const servername = tls?.servername ?? options.servername
          connector({ ...options, ...(servername ? { servername } : {}), httpSocket: socket as Socket }, callback)
        } else callback(null, socket as Socket)
      },
      (cause: Error) => {
        void client.destroy()
        const text = `the proxy ${url} cannot be reached (${cause.message || kindOf(cause)}): set proxy of the vendor, or HTTPS_PROXY`
        callback(new ProxyError(text, cause), null)
      },
    )
  }
}

function refusalText(url: string, target: string, status: number): string {
  const remedy =
    status === 407
      ? 'set user and password in the URL of proxy, or of HTTPS_PROXY'
      : 'allow it there, or set proxy of the vendor (HTTPS_PROXY, NO_PROXY) so that it is not used'
  return `the proxy ${url} refuses CONNECT ${target} with ${status}: ${remedy}`
}

/** A proxy rejected the tunnel or could not be reached. Its code differs from undici's codes, which would make undici retry by itself. */
class ProxyError extends Error {
  override readonly name = 'ProxyError'
  readonly code = 'PROXY'

  constructor(message: string, cause?: unknown) {
    super(message, { cause })
  }
}

function dropUnused(origins: Map<string, Connections>): void {
  for (const [origin, connections] of origins) {
    if (!connections.isUnused) continue
    origins.delete(origin)
    void connections.close()
    if (origins.size <= MAX_ORIGINS) return
  }
}

type Connections = ConnectionList<ClientConnection>

/** undici's `Client` is one connection; its `Pool` searches all of them for a free one with each call. */
class ClientConnection implements Connection {
  readonly client: Client
  isOpen = false
  #socket: Socket | undefined

  constructor(origin: URL | string, options: ClientOptions, list: Connections) {
    const connect: Connector = (target, callback) =>
      options.connect(target, (error, socket) => {
        this.#socket = socket ?? undefined
        if (error === null) callback(null, socket as Socket)
        else callback(error, null)
      })
    this.client = new Client(origin, { ...options, connect })
    this.client.on('connect', () => {
      this.isOpen = true
    })
    this.client.on('disconnect', () => {
      this.isOpen = false
      list.lost(this)
    })
  }

  /** Whether the system has accepted all bytes written to the connection, as far as it has confirmed them. */
  get isIdle(): boolean {
    const socket = this.#socket
    return socket !== undefined && (socket.destroyed || socket.writableLength === 0)
  }

  close(): Promise<void> {
    return this.client.close()
  }

  destroy(): void {
    void this.client.destroy()
  }
}

type Phase = TransportFailure['phase']

/**
 * One call. undici passes raw headers only to the older of its two kinds of handlers; the newer decodes all headers of every
 * answer and creates two wrapper objects. undici 8 may drop the older kind, so only this file depends on it.
 */
class UndiciCall implements TransportControl, Dispatcher.DispatchHandler {
  readonly #handler: TransportHandler
  #abort: ((reason: Error) => void) | undefined
  #resume: (() => void) | undefined
  #phase: Phase = 'connect'
  #ended = false
  #begun = false
  #isPaused = false
  #connections: Connections | undefined
  #connection: ClientConnection | undefined

  constructor(handler: TransportHandler) {
    this.#handler = handler
  }

  begin(connections: Connections, request: TransportRequest): void {
    try {
      const payload = payloadOf(request)
      const connection = connections.take()
      this.#connections = connections
      this.#connection = connection
      connection.client.dispatch(
        {
          path: request.path,
          method: request.method,
          headers: payload.headers,
          body: payload.body,
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

  get isBodySent(): boolean {
    return this.#connection?.isIdle === true
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
      // Aborted while it waited for a connection. Without this check it would still be sent.
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
    // A resumed parser sends an empty chunk. A handler that pauses with each chunk and resumes immediately would never continue.
    if (!this.#ended && chunk.length > 0) this.#handler.onData(chunk)
    return !this.#isPaused
  }

  onComplete(): void {
    try {
      if (this.#ended) return
      this.#end()
      this.#handler.onEnd()
    } finally {
      // Only now, because undici needs the connection until this returns, and the handler may send another call.
      this.#returnConnection(true)
    }
  }

  onError(error: Error): void {
    // undici rejected the call before it was sent, or the connection is unusable.
    this.#returnConnection(!this.#begun)
    this.#fail(error)
  }

  /** Runs once per call, and only when undici has released the call: an aborted call may still wait for its connection. */
  #returnConnection(isReusable: boolean): void {
    const connection = this.#connection
    if (connection === undefined) return
    if (isReusable) this.#connections?.giveBack(connection)
    else this.#connections?.giveUp(connection)
    this.#connection = undefined
    this.#connections = undefined
  }

  /** Releases undici's functions, which reference its request and connection. */
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
  if (error instanceof ProxyError) return 'proxy'
  const code = (error as { code?: unknown }).code
  if (typeof code !== 'string') return 'protocol'
  const known = KINDS[code]
  if (known !== undefined) return known
  return /CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO/.test(code) ? 'tls' : 'protocol'
}

/** Connection that carries one call at a time. */
export interface Connection {
  /** Whether the connection is established and not lost. */
  readonly isOpen: boolean
  /** Closes the connection after its call. */
  close(): Promise<void>
  /** Closes the connection and fails its call. */
  destroy(): void
}

/**
 * Maximum number of idle connections per origin. Matters only right after a burst, because idle connections end when their
 * keep-alive time expires.
 */
export const MAX_IDLE_CONNECTIONS = 1_024

/**
 * Connections to one origin, of which any number may be busy. The connection used last is reused first, so that the others stay
 * idle until they end.
 */
export class ConnectionList<Kind extends Connection> {
  readonly #make: (list: ConnectionList<Kind>) => Kind
  /** All connections, including busy ones. */
  readonly #all = new Set<Kind>()
  readonly #free: Kind[] = []

  constructor(make: (list: ConnectionList<Kind>) => Kind) {
    this.#make = make
  }

  get size(): number {
    return this.#all.size
  }

  /** Whether no connection has a call. */
  get isUnused(): boolean {
    return this.#free.length === this.#all.size
  }

  /** Returns a connection for one call. It must be given back. */
  take(): Kind {
    const free = this.#free.pop()
    if (free !== undefined) return free
    const made = this.#make(this)
    this.#all.add(made)
    return made
  }

  /** Returns a connection to the list after a successful call. */
  giveBack(connection: Kind): void {
    if (connection.isOpen && this.#free.length < MAX_IDLE_CONNECTIONS) this.#free.push(connection)
    else {
      this.#all.delete(connection)
      void connection.close()
    }
  }

  /** Removes a connection on which nothing more can be sent. */
  giveUp(connection: Kind): void {
    this.#all.delete(connection)
    connection.destroy()
  }

  /** Removes an idle connection that has ended. A busy connection is removed when its call ends. */
  lost(connection: Kind): void {
    const index = this.#free.lastIndexOf(connection)
    if (index === -1) return
    this.#free.splice(index, 1)
    this.giveUp(connection)
  }

  /** Closes the idle connections, and waits for the calls of the others. */
  async close(): Promise<void> {
    await Promise.all([...this.#all].map((connection) => connection.close()))
  }
}

/**
 * Response headers as the bytes that arrived: names and values in turn. Most answers need one header or none, so each header is
 * decoded on demand. References the memory of the network read, so do not use it in objects that outlive the answer.
 */
export class RawHeaders implements HeaderReader {
  readonly #list: readonly Buffer[]

  constructor(list: readonly Buffer[]) {
    this.#list = list
  }

  get(name: string): string | undefined {
    const list = this.#list
    for (let index = 0; index + 1 < list.length; index += 2) {
      if (isNamed(list[index]!, name)) return list[index + 1]!.toString('latin1')
    }
    return undefined
  }
}

function isNamed(bytes: Buffer, name: string): boolean {
  if (bytes.length !== name.length) return false
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]!
    const isUpperCase = byte >= 0x41 && byte <= 0x5a
    if ((isUpperCase ? byte + 0x20 : byte) !== name.charCodeAt(index)) return false
  }
  return true
}

/** Bodies in chunks are joined up to this size, because undici sends each chunk in a separate write and turn, which costs more. */
const JOINED_BYTES = 16 * 1024

interface RequestPayload {
  readonly headers: string[]
  readonly body: Uint8Array | string | null
}

/**
 * Headers and body for undici, which also accepts iterables (see `dispatch`). Throws if the chunks do not match the
 * `content-length`.
 */
function payloadOf({ headers, body }: TransportRequest): RequestPayload {
  if (body === null || typeof body === 'string' || body instanceof Uint8Array) {
    return { headers: headers as string[], body }
  }
  if (isStreamedBody(body)) {
    const { byteLength, content } = body
    const withLength = [...headers, 'content-length', String(byteLength)]
    return { headers: withLength, body: content as unknown as Uint8Array }
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
    body: body as Iterable<Uint8Array> as Uint8Array,
  }
}

function headerIn(headers: readonly string[], name: string): string | undefined {
  for (let position = 0; position + 1 < headers.length; position += 2) {
    if (headers[position]?.toLowerCase() === name) return headers[position + 1]
  }
  return undefined
}
