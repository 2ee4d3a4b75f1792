/**
 * The framework-neutral HTTP pair. Adapters translate a framework's request into a {@link GatewayRequest} and its
 * response into a {@link ByteSink}; nothing behind them knows which framework it runs in.
 */

import { GatewayError } from './errors.ts'
import type { MaybePromise } from './maybe-promise.ts'

/** Why a body could not be read. */
export type BodyFailure = 'too_large' | 'aborted' | 'consumed' | 'unreadable'

/** What the caller reads of it. */
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
  'The request body was read before the gateway saw it, and nothing of it was kept. Mount the gateway before body parsers, ' +
  'or use one that leaves the parsed body on the request.'

const LONGEST_ENCODING_SHOWN = 40

/** The fault of a body whose bytes say nothing: where the caller has compressed it, that is what is wrong. */
export function unreadableBody(request: GatewayRequest, fault: unknown): unknown {
  const encoding = request.header('content-encoding')?.trim() ?? ''
  if (encoding === '' || encoding.toLowerCase() === 'identity') return fault
  const shown = JSON.stringify(encoding.slice(0, LONGEST_ENCODING_SHOWN))
  const message = `The request body has the Content-Encoding ${shown}, which is not supported. Send it without one.`
  return new GatewayError('unsupported_media_type', { message, cause: fault })
}

/** Receives a body, or the reason why there is none. Called exactly once. */
export type BodyListener = (failure: BodyFailure | undefined, chunks: readonly Uint8Array[]) => void

/** One HTTP request as the gateway reads it. */
export interface GatewayRequest {
  /** Upper-case method. */
  readonly method: string
  /** Path below the mount point, beginning with `/`, without the query; percent-encoding untouched. */
  readonly path: string
  /** Query string without the question mark; empty when there is none. */
  readonly query: string
  /** Path as it arrived, with everything above the mount point; absent where the adapter does not know it. */
  readonly originalPath?: string | undefined
  /**
   * Scheme and host by which the server was reached, `https://api.example.com`, without regard to proxies in front; absent where
   * the adapter does not know them.
   */
  readonly origin?: string | undefined
  /** Address of the other end of the connection, which may be a proxy; absent where the adapter does not know it. */
  readonly remoteAddress?: string | undefined
  /** The framework's own request, for the host's code; absent where the adapter has none. */
  readonly hostRequest?: unknown
  /** A header's value by lower-case name; repeated headers joined with `, `. */
  header(name: string): string | undefined
  /**
   * Reads the whole body, at most `limitBytes`. Reading starts with this call, so a refused request costs no memory. Fails
   * with `consumed` if the framework has read the body and discarded it, and with `unreadable` if the host's own decoding fails.
   */
  readBody(limitBytes: number, listener: BodyListener): void
  /**
   * Reads the body piece by piece, at most `limitBytes`, for what is never whole in memory; in place of `readBody`. Absent: only
   * `readBody` can read it.
   * @throws GatewayError `body_too_large`, `client_closed_request`, `body_consumed` or `invalid_request`.
   */
  streamBody?(limitBytes: number): AsyncIterable<Uint8Array>
  /**
   * True once a body was read whose chunks nobody else has, so that their memory may be freed. Absent: they may be others' too.
   */
  readonly ownsBody?: boolean
}

/**
 * A body piece by piece; as a whole where the adapter cannot stream it.
 * @throws GatewayError as {@link bodyError} says.
 */
export async function* bodyPieces(request: GatewayRequest, limitBytes: number): AsyncIterable<Uint8Array> {
  if (request.streamBody === undefined) yield* await wholeBody(request, limitBytes)
  else yield* request.streamBody(limitBytes)
}

/**
 * The pieces of a whole body.
 * @throws GatewayError as {@link bodyError} says.
 */
export function wholeBody(request: GatewayRequest, limitBytes: number): Promise<readonly Uint8Array[]> {
  return new Promise((resolve, reject) => {
    request.readBody(limitBytes, (failure, chunks) => {
      if (failure === undefined) resolve(chunks)
      else reject(bodyError(failure, limitBytes))
    })
  })
}

/** Where the answer goes: the caller's side of the connection. */
export interface ByteSink {
  /** True once the caller has disconnected; writes are then ignored. */
  readonly closed: boolean
  /** Sends the status and headers (a flat list: name, value, name, value). Called at most once, before any bytes. */
  head(status: number, headers: readonly string[]): void
  /**
   * Sends bytes. False means: stop until `onDrain`.
   * @param mayFree Nobody reads the bytes again: a sink that knows when they are sent may free their memory then.
   */
  write(bytes: Uint8Array | string, mayFree?: boolean): boolean
  /** Ends the answer cleanly, after all bytes written so far. `mayFree` as of {@link write}. */
  end(bytes?: Uint8Array | string, mayFree?: boolean): void
  /** Closes the connection, so that the caller cannot mistake a partial answer for a complete one. */
  destroy(): void
  /**
   * Closes the connection with this answer, because the process is about to end: the caller's next request then goes to another one.
   * Without effect if the head is sent. If omitted, the adapter does not know the connection.
   */
  endConnection?(): void
  /** Calls back when writing may go on after `write` returned false. One listener. */
  onDrain(listener: () => void): void
  /**
   * Calls back once if the caller disconnects before the answer has ended. One listener; called at once if it already has.
   */
  onClose(listener: () => void): void
}

/** A complete answer, built before it is sent. */
export interface GatewayReply {
  readonly status: number
  /** Flat list: name, value, name, value; names in lower case. */
  readonly headers: readonly string[]
  readonly body: string | Uint8Array | readonly Uint8Array[]
}

/**
 * Refuses what is no gateway, where it is mounted: otherwise the first request would end the host's process.
 * @param owner what was called, for the message: `expressHandler`.
 * @throws TypeError
 */
export function checkGateway(value: unknown, owner: string): void {
  if (typeof (value as Partial<ExchangeHandler> | null | undefined)?.handle === 'function') return
  throw new TypeError(`${owner}: gateway must be what createGateway returned`)
}

/** Anything that answers requests: the gateway, or a stand-in in a test. */
export interface ExchangeHandler {
  /**
   * Handles one request. Never throws and never rejects; the answer goes to the sink. A returned promise resolves when the request is
   * settled.
   */
  handle(request: GatewayRequest, sink: ByteSink): MaybePromise<void>
  /**
   * Resolves when this process has finished the work that requests leave behind, at the latest after 5 minutes. If omitted, requests
   * leave none behind. Never rejects.
   */
  workEnded?(): Promise<void>
  /**
   * True: it answers at the path of its mount too, such as `/metrics`, and not only below it. Routers that tell both apart send it
   * both. Default false.
   */
  readonly answersAtMount?: boolean
}
