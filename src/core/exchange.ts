import { BlockList, isIP } from 'node:net'
import { GatewayError } from './errors.ts'
import type { MaybePromise } from './maybe-promise.ts'

/**
 * The framework-neutral HTTP pair. Adapters translate a framework's request into a {@link GatewayRequest} and its response into a
 * {@link ByteSink}; all other code is independent of the framework.
 */

/** Reason why a body could not be read. */
export type BodyFailure = 'too_large' | 'aborted' | 'consumed' | 'unreadable'

/** Returns the error that the caller gets for a body that could not be read. */
export function bodyError(failure: BodyFailure, limitBytes: number): GatewayError {
  if (failure === 'too_large')
    return new GatewayError('body_too_large', { message: `The request body is larger than ${limitBytes} bytes.` })
  if (failure === 'unreadable')
    return new GatewayError('invalid_request', { message: 'The request body could not be decoded.' })
  return failure === 'consumed'
    ? new GatewayError('body_consumed', { message: CONSUMED })
    : new GatewayError('client_closed_request')
}

const CONSUMED =
  'The request body was read before the gateway saw it, and its content is lost. Mount the gateway before body parsers, ' +
  'or use one that leaves the parsed body on the request.'

const MAX_ENCODING_SHOWN = 40

/** Returns the error of an unparseable body. If the caller has compressed it, the error names the compression. */
export function unreadableBody(request: GatewayRequest, fault: unknown): unknown {
  const encoding = request.header('content-encoding')?.trim() ?? ''
  if (encoding === '' || encoding.toLowerCase() === 'identity') return fault
  const shown = JSON.stringify(encoding.slice(0, MAX_ENCODING_SHOWN))
  const message = `The request body has the Content-Encoding ${shown}, which is not supported. Send it without one.`
  return new GatewayError('unsupported_media_type', { message, cause: fault })
}

/** Receives a body, or the reason for its absence. Called exactly once. */
export type BodyListener = (failure: BodyFailure | undefined, chunks: readonly Uint8Array[]) => void

/** One HTTP request as the gateway reads it. */
export interface GatewayRequest {
  /** Upper-case method. */
  readonly method: string
  /** Path below the mount point, beginning with `/`, without the query; percent-encoding untouched. */
  readonly path: string
  /** Query string without the question mark; empty if there is none. */
  readonly query: string
  /** Path as it arrived, with everything above the mount point. Omitted if the adapter does not know it. */
  readonly originalPath?: string | undefined
  /**
   * Scheme and host by which the server was reached, such as `https://api.example.com`. Proxies are not considered. Omitted if
   * the adapter does not know them.
   */
  readonly origin?: string | undefined
  /** Address of the other end of the connection, which may be a proxy. Omitted if the adapter does not know it. */
  readonly remoteAddress?: string | undefined
  /** Request object of the framework, for code of the host. Omitted if the adapter has none. */
  readonly hostRequest?: unknown
  /** Returns the value of a header, given its lower-case name. Repeated headers are joined with `, `. */
  header(name: string): string | undefined
  /**
   * Reads the whole body, up to `limitBytes`. Reading starts with this call, so a rejected request costs no memory. Fails with
   * `consumed` if the framework has read and discarded the body, and with `unreadable` if the host's own decoding fails.
   */
  readBody(limitBytes: number, listener: BodyListener): void
  /**
   * Reads the body in chunks, up to `limitBytes`, if it need not be in memory as a whole. Replaces `readBody`. If omitted, only
   * `readBody` can read the body.
   * @throws GatewayError `body_too_large`, `client_closed_request`, `body_consumed` or `invalid_request`.
   */
  streamBody?(limitBytes: number): AsyncIterable<Uint8Array>
  /**
   * Whether the gateway alone owns the chunks of the body after it was read, so that their memory may be freed. Default false.
   */
  readonly ownsBody?: boolean
}

/**
 * Reads a body in chunks, or as a whole if the adapter cannot stream it.
 * @throws GatewayError; see {@link bodyError}.
 */
export async function* bodyPieces(request: GatewayRequest, limitBytes: number): AsyncIterable<Uint8Array> {
  if (request.streamBody === undefined) yield* await wholeBody(request, limitBytes)
  else yield* request.streamBody(limitBytes)
}

/**
 * Reads the chunks of a whole body.
 * @throws GatewayError; see {@link bodyError}.
 */
export function wholeBody(request: GatewayRequest, limitBytes: number): Promise<readonly Uint8Array[]> {
  return new Promise((resolve, reject) => {
    request.readBody(limitBytes, (failure, chunks) => {
      if (failure === undefined) resolve(chunks)
      else reject(bodyError(failure, limitBytes))
    })
  })
}

/** Destination of an answer: the caller's side of the connection. */
export interface ByteSink {
  /** Whether the caller has disconnected. Writes are then ignored. */
  readonly closed: boolean
  /** Sends the status and headers (a flat list: name, value, name, value). Called at most once, before any bytes. */
  head(status: number, headers: readonly string[]): void
  /**
   * Sends bytes. Returns false if the writer must wait for `onDrain`.
   * @param mayFree Whether nobody reads the bytes again, so that the sink may free their memory after sending them.
   */
  write(bytes: Uint8Array | string, mayFree?: boolean): boolean
  /** Ends the answer cleanly, after all bytes written so far. For `mayFree` see {@link write}. */
  end(bytes?: Uint8Array | string, mayFree?: boolean): void
  /** Closes the connection, so that the caller cannot mistake a partial answer for a complete one. */
  destroy(): void
  /**
   * Closes the connection after this answer because the process is about to end, so that the caller's next request goes to
   * another process. Without effect if the head is sent. If omitted, the adapter has no access to the connection.
   */
  endConnection?(): void
  /** Calls the listener when writing may continue after `write` returned false. One listener. */
  onDrain(listener: () => void): void
  /**
   * Calls the listener once if the caller disconnects before the answer has ended, or immediately if it already has. One listener.
   */
  onClose(listener: () => void): void
}

/**
 * Rejects a value that is not a gateway when it is mounted. Otherwise the first request would end the host's process.
 * @param owner Name of the called function for the message: `expressHandler`.
 * @throws TypeError
 */
export function checkGateway(value: unknown, owner: string): void {
  if (typeof (value as Partial<ExchangeHandler> | null | undefined)?.handle === 'function') return
  throw new TypeError(`${owner}: gateway must be what createGateway returned`)
}

/** Object that answers requests: the gateway, or a stand-in in a test. */
export interface ExchangeHandler {
  /**
   * Handles one request. Never throws and never rejects; the answer goes to the sink. A returned promise resolves when the request is
   * settled.
   */
  handle(request: GatewayRequest, sink: ByteSink): MaybePromise<void>
  /**
   * Resolves when this process has finished background work of requests, after 5 minutes at the latest. If omitted, requests
   * cause no background work. Never rejects.
   */
  workEnded?(): Promise<void>
  /**
   * Whether the handler also answers at the path of its mount, such as `/metrics`, and not only below it. Routers that
   * distinguish the two send it both. Default false.
   */
  readonly answersAtMount?: boolean
}

/** Returns the address of the client of a request, or `undefined` if it is unknown. */
export type ClientAddress = (
  request: Pick<GatewayRequest, 'method' | 'path' | 'header' | 'remoteAddress'>,
) => string | undefined

/**
 * Creates a `clientAddress` for servers behind proxies. Proxies append to `X-Forwarded-For` the address that called them, so the client
 * is the last address in it that is not a trusted proxy. The header of any other sender is ignored.
 * @param proxies Addresses and CIDR blocks of the trusted proxies: `['10.0.0.0/8', '::1']`.
 * @throws TypeError if an entry is neither an address nor a block.
 */
export function forwardedAddress(proxies: readonly string[]): ClientAddress {
  const trusted = new BlockList()
  for (const entry of proxies) {
    const [address = '', bits, ...rest] = entry.split('/')
    const family = isIP(address)
    const longest = family === 4 ? 32 : 128
    const prefix = bits === undefined ? longest : Number(bits)
    if (family === 0 || rest.length > 0 || !/^\d*$/.test(bits ?? '') || bits === '' || prefix > longest)
      throw new TypeError(`proxies: ${JSON.stringify(entry)} is neither an IP address nor a block such as 10.0.0.0/8`)
    trusted.addSubnet(address, prefix, family === 4 ? 'ipv4' : 'ipv6')
  }
  return (request) => {
    let client = request.remoteAddress
    const hops = (request.header('x-forwarded-for') ?? '').split(',')
    while (client !== undefined && trusted.check(client, isIP(client) === 4 ? 'ipv4' : 'ipv6')) {
      const hop = withoutPort(hops.pop()?.trim() ?? '')
      if (isIP(hop) === 0) break
      client = hop
    }
    return client
  }
}

/** Some proxies append the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  return /^\[(.*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop
}
