import type { HeaderMap } from '../wire/headers.ts'

/** One HTTP call to a vendor. */
export interface TransportRequest {
  /** Scheme, host and port: `https://api.example`. */
  readonly origin: string
  /** Path and query, beginning with `/`. */
  readonly path: string
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Flat list: name, value, name, value. */
  readonly headers: readonly string[]
  /**
   * In chunks, so that a caller's files need not be joined and copied. They are sent in order with a `content-length` of
   * their sum; the call fails unsent if the headers have a different one.
   */
  readonly body: Uint8Array | string | readonly Uint8Array[] | null
  /** Longest silence before the response headers, counted from when the request was sent. Never cut short; may last a second longer. */
  readonly firstByteTimeoutMs: number
  /** Longest silence between two pieces of the body. Never cut short; may last a second longer. */
  readonly idleTimeoutMs: number
}

/** A call that failed without, or in the middle of, an answer. */
export interface TransportFailure {
  /** `connect`: no byte was sent, so a retry is safe. `sent`: bytes were sent. `body`: response headers arrived. */
  readonly phase: 'connect' | 'sent' | 'body'
  readonly kind: 'timeout' | 'refused' | 'reset' | 'tls' | 'aborted' | 'protocol'
  /** For the log. */
  readonly error: Error
}

/** Controls a call in progress. */
export interface TransportControl {
  /** Ends the call and its connection; `onFailure` follows with kind `aborted`. No effect after the end. */
  abort(): void
  /** Stops reading from the vendor until `resume`. */
  pause(): void
  resume(): void
}

/** Receives one answer. After `onEnd` or `onFailure` nothing more is called. */
export interface TransportHandler {
  onHead(status: number, headers: HeaderMap): void
  onData(chunk: Uint8Array): void
  onEnd(): void
  onFailure(failure: TransportFailure): void
}

/** Sends HTTP calls. Redirects are never followed; bodies are never decompressed. */
export interface Transport {
  /** Begins a call. Never throws: every fault is reported by `onFailure`, after this method has returned. */
  send(request: TransportRequest, handler: TransportHandler): TransportControl
  /** Closes idle connections and waits for open ones. */
  close(): Promise<void>
}
