import type { MemberNames } from '../core/known-members.ts'
import type { HeaderMap } from '../wire/headers.ts'

/** Certificates of connections over TLS, each as PEM text or bytes. */
export interface TlsMaterial {
  /** Authorities that are trusted instead of those that Node knows: one, or several. */
  readonly ca?: string | Uint8Array | readonly (string | Uint8Array)[] | undefined
  /** The certificate that this side shows, with its chain. */
  readonly cert?: string | Uint8Array | undefined
  /** The private key of `cert`. */
  readonly key?: string | Uint8Array | undefined
  /** Of an encrypted `key`. */
  readonly passphrase?: string | undefined
  /** Name that the server's certificate must be for; the host of the URL by default. */
  readonly servername?: string | undefined
}

export const TLS_MEMBERS = {
  ca: true,
  cert: true,
  key: true,
  passphrase: true,
  servername: true,
} satisfies MemberNames<TlsMaterial>

/** How connections to an origin are made. Calls with the same object share connections. */
export interface EgressRoute {
  /** Certificates; absent: the authorities that Node trusts. */
  readonly tls?: TlsMaterial | undefined
  /** An HTTP proxy that tunnels by CONNECT. */
  readonly proxy?: EgressProxy | undefined
}

/** An HTTP proxy. */
export interface EgressProxy {
  /** `http://proxy.example:3128`; http or https. Without credentials. */
  readonly url: string
  /** Value of `proxy-authorization`, such as `Basic dXNlcjpwYXNz`. */
  readonly authorization?: string | undefined
}

/** A body that is read while it is sent, so that it never is whole in memory. The call fails if it has another length. */
export interface StreamedBody {
  readonly byteLength: number
  readonly content: AsyncIterable<Uint8Array>
}

/** One HTTP call to a vendor. */
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
   * In chunks, so that a caller's files need not be joined and copied. They are sent in order with a `content-length` of
   * their sum; the call fails unsent if the headers have a different one.
   */
  readonly body: Uint8Array | string | readonly Uint8Array[] | StreamedBody | null
  /** Longest silence before the response headers, counted from when the request was sent. Never cut short; may last a second longer. */
  readonly firstByteTimeoutMs: number
  /** Longest silence between two pieces of the body. Never cut short; may last a second longer. */
  readonly idleTimeoutMs: number
  /** Absent: a connection straight to the origin, with the authorities that Node trusts. */
  readonly egress?: EgressRoute | undefined
}

/** A call that failed without, or in the middle of, an answer. */
export interface TransportFailure {
  /** `connect`: no byte was sent, so a retry is safe. `sent`: bytes were sent. `body`: response headers arrived. */
  readonly phase: 'connect' | 'sent' | 'body'
  /**
   * What happened. `refused`: no connection could be made. `reset`: it broke. `proxy`: the proxy refused. `aborted`: by
   * `abort()`. `protocol`: anything else, such as an answer that is no HTTP.
   */
  readonly kind: 'timeout' | 'refused' | 'reset' | 'tls' | 'proxy' | 'aborted' | 'protocol'
  /** The cause, for the log: its text may name hosts. */
  readonly error: Error
}

/** Controls a call in progress. */
export interface TransportControl {
  /** True while no memory of the request's body is read any more by what sends it. Absent: not known. */
  readonly isBodySent?: boolean
  /** Ends the call and its connection; `onFailure` follows with kind `aborted`. No effect after the end. */
  abort(): void
  /** Stops reading from the vendor until `resume`. */
  pause(): void
  /** Reads on after `pause`. No effect after the end. */
  resume(): void
}

/** Receives one answer. After `onEnd` or `onFailure` nothing more is called. */
export interface TransportHandler {
  /** Status and headers have arrived; called once, before any `onData`. */
  onHead(status: number, headers: HeaderMap): void
  /** A piece of the body, as it arrived. Not called while paused. */
  onData(chunk: Uint8Array): void
  /** The whole answer has arrived. */
  onEnd(): void
  /** There is no answer, or the rest of it will not come. */
  onFailure(failure: TransportFailure): void
}

/** Is a body read while it is sent? */
export function isStreamedBody(body: TransportRequest['body']): body is StreamedBody {
  return body !== null && typeof body === 'object' && 'content' in body
}

/** Sends HTTP calls. Redirects are never followed; bodies are never decompressed. */
export interface Transport {
  /** True where nobody else has the bytes that handlers are given, so that their memory may be freed. Absent: others may have them. */
  readonly givesBytesAway?: boolean
  /** Begins a call. Never throws: every fault is reported by `onFailure`, after this method has returned. */
  send(request: TransportRequest, handler: TransportHandler): TransportControl
  /** Closes idle connections and waits for open ones. */
  close(): Promise<void>
}
