import type { MaybePromise } from './maybe-promise.ts'

/** Secret that authenticates a call at a vendor. Never logged and never part of an event. */
export interface Credential {
  /** The secret: visible ASCII characters without spaces. */
  readonly token: string
  /** Time of expiry in Unix milliseconds. If omitted, the gateway requests another credential after an hour. */
  readonly expiresAtMs?: number | undefined
  /** Header that carries the token without a scheme, such as `api-key`. Defaults to `authorization: Bearer <token>`. */
  readonly header?: string | undefined
  /**
   * Returns the headers that authenticate a call, for services that require signed requests. Replaces the header with the token.
   * Must be pure. `token` then is a secret that must not appear in any text, such as the session token.
   */
  readonly sign?: ((request: SignableRequest) => readonly string[]) | undefined
  /** Difference between the vendor's clock and this machine's, in milliseconds. The gateway sets it and adds it to `nowMs`. */
  readonly clockOffsetMs?: number | undefined
}

/** A request as it is sent, for credentials that sign it. */
export interface SignableRequest {
  readonly method: string
  /** Scheme, host and port. */
  readonly origin: string
  /** Path and query as they are sent. */
  readonly path: string
  /** Flat list: name, value, name, value. */
  readonly headers: readonly string[]
  readonly body: Uint8Array | string | readonly Uint8Array[] | null
  /** Unix milliseconds by the vendor's clock, or by the local clock if the difference is not known. */
  readonly nowMs: number
}

/** Arguments of each call to a credential provider. */
export interface CredentialRequest {
  /** Aborts after 10 seconds; a later result is ignored. */
  readonly signal: AbortSignal
  /** Unix milliseconds by the gateway's clock. */
  readonly nowMs: number
}

/**
 * Returns a credential, directly or as a promise. The gateway caches it and requests the next one before it expires, with one
 * call at a time, so a provider needs no cache. If the provider throws or rejects, the operator sees the message of the error; it
 * must contain no secret and should name the setting to fix.
 */
export interface CredentialProvider {
  (request: CredentialRequest): MaybePromise<Credential>
  /**
   * Name that identifies this credential in events, reports and task records. It must not change after a restart and must not be
   * secret. Defaults to the position in the list of keys.
   */
  readonly slot?: string
  /** Time before expiry at which a credential is renewed, in milliseconds. Default 300,000; at most a fifth of its lifetime. */
  readonly refreshAheadMs?: number
}
