import { memberNames } from '../core/known-members.ts'
import type { HeaderMap } from '../wire/headers.ts'

/** Certificates of connections over TLS, each as PEM text or bytes. */
export interface TlsMaterial {
  /** Trusted authorities instead of those of Node: one, or several. */
  readonly ca?: string | Uint8Array | readonly (string | Uint8Array)[] | undefined
  /** Client certificate with its chain. */
  readonly cert?: string | Uint8Array | undefined
  /** Private key of `cert`. */
  readonly key?: string | Uint8Array | undefined
  /** Passphrase of an encrypted `key`. */
  readonly passphrase?: string | undefined
  /** Name that the server's certificate must match. Defaults to the host of the URL. */
  readonly servername?: string | undefined
}

export const TLS_MEMBERS = memberNames<TlsMaterial>()('ca cert key passphrase servername')

/** Settings of connections to an origin. Calls with the same object share connections. */
export interface EgressRoute {
  /** Certificates. Default: the authorities that Node trusts. */
  readonly tls?: TlsMaterial | undefined
  /** HTTP proxy that tunnels by CONNECT. */
  readonly proxy?: EgressProxy | undefined
}

/** HTTP proxy. */
export interface EgressProxy {
  /** URL such as `http://proxy.example:3128`; http or https. Without credentials. */
  readonly url: string
  /** Value of `proxy-authorization`, such as `Basic dXNlcjpwYXNz`. */
  readonly authorization?: string | undefined
}

/** Body that is read while it is sent, so that it is never completely in memory. The call fails if it has another length. */
export interface StreamedBody {
  readonly byteLength: number
  readonly content: AsyncIterable<Uint8Array>
}

/** HTTP call to a vendor. */
export interface TransportRequest {
  /** Scheme, host and port: `https://api.example`. */
  readonly origin: string
  /** Path and query, beginning with `/`. */
  readonly path: string
  /** HTTP method. */
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Flat list: name, value, name, value. */
  readonly headers: readonly string[]
  /**
   * Body, optionally in chunks, so that a caller's files need not be joined and copied. Chunks are sent in order with a
   * `content-length` of their sum; the call fails unsent if the headers have a different one.
   */
  readonly body: Uint8Array | string | readonly Uint8Array[] | StreamedBody | null
  /** Maximum silence between sending the request and the response headers, in milliseconds. May last a second longer, never shorter. */
  readonly firstByteTimeoutMs: number
  /** Maximum silence between two chunks of the body, in milliseconds. May last a second longer, never shorter. */
  readonly idleTimeoutMs: number
  /** Route of the connection. Defaults to a direct connection with the authorities that Node trusts. */
  readonly egress?: EgressRoute | undefined
}

/** Failure of a call before its answer, or during it. */
export interface TransportFailure {
  /** `connect`: no byte was sent, so a retry is safe. `sent`: bytes were sent. `body`: response headers arrived. */
  readonly phase: 'connect' | 'sent' | 'body'
  /**
   * Cause of the failure. `refused`: no connection could be opened. `reset`: the connection broke. `proxy`: the proxy rejected
   * the call. `aborted`: by `abort()`. `protocol`: anything else, such as an answer that is not HTTP.
   */
  readonly kind: 'timeout' | 'refused' | 'reset' | 'tls' | 'proxy' | 'aborted' | 'protocol'
  /** Cause for the log. Its text may name hosts. */
  readonly error: Error
}

/** Control of a call in progress. */
export interface TransportControl {
  /** Whether the memory of the request's body is no longer read. `undefined` if it is not known. */
  readonly isBodySent?: boolean
  /** Ends the call and its connection; `onFailure` follows with kind `aborted`. Without effect after the end. */
  abort(): void
  /** Stops reading from the vendor until `resume`. */
  pause(): void
  /** Continues reading after `pause`. Without effect after the end. */
  resume(): void
}

/** Receives one answer. No method is called after `onEnd` or `onFailure`. */
export interface TransportHandler {
  /** Called once with status and headers, before any `onData`. */
  onHead(status: number, headers: HeaderMap): void
  /** Called with a chunk of the body as it arrived. Not called while paused. */
  onData(chunk: Uint8Array): void
  /** Called when the whole answer has arrived. */
  onEnd(): void
  /** Called if there is no answer, or if the rest of it will not arrive. */
  onFailure(failure: TransportFailure): void
}

/** Whether a body is read while it is sent. */
export function isStreamedBody(body: TransportRequest['body']): body is StreamedBody {
  return body !== null && typeof body === 'object' && 'content' in body
}

/** Sends HTTP calls. Redirects are never followed; bodies are never decompressed. */
export interface Transport {
  /** Whether handlers own the bytes that they receive and may free their memory. Default false. */
  readonly givesBytesAway?: boolean
  /** Starts a call. Never throws: every fault is reported by `onFailure`, after this method has returned. */
  send(request: TransportRequest, handler: TransportHandler): TransportControl
  /** Closes idle connections and waits for open ones. */
  close(): Promise<void>
}
