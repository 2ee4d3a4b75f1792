import type { MaybePromise } from './maybe-promise.ts'

/** What a call proves itself with at a vendor. Never logged, and in no event. */
export interface Credential {
  /** The secret: visible ASCII characters without spaces. */
  readonly token: string
  /** Unix milliseconds at which the vendor stops taking it; absent: asked for again after an hour. */
  readonly expiresAtMs?: number | undefined
  /** Header that carries the token as it is, such as `api-key`. Absent: `authorization: Bearer <token>`. */
  readonly header?: string | undefined
  /**
   * Makes the headers that prove a call, in place of one with the token; for services that want each request signed. Pure. `token`
   * then is a secret that no text may repeat, such as that of the session.
   */
  readonly sign?: ((request: SignableRequest) => readonly string[]) | undefined
  /** Set by the gateway where the vendor's clock is so far ahead of this machine's; milliseconds that are added to `nowMs`. */
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
  /** Unix milliseconds by the vendor's clock, as far as that is known. */
  readonly nowMs: number
}

/** What a provider is told with each request for a credential. */
export interface CredentialRequest {
  /** Aborts after 10 seconds: the answer is of no use then. */
  readonly signal: AbortSignal
  /** Unix milliseconds by the gateway's clock. */
  readonly nowMs: number
}

/**
 * Gives a credential, at once or later. The gateway keeps what it gave and asks again ahead of its end, once at a time, so a
 * provider needs no cache of its own. What it throws or rejects with is told to the operator with its message, which must
 * hold no secret and should name what to set.
 */
export interface CredentialProvider {
  (request: CredentialRequest): MaybePromise<Credential>
  /**
   * Tells this credential from the vendor's others in events, reports and the records of tasks: the same after a restart, and
   * no secret. Absent: the place in the list of keys.
   */
  readonly slot?: string
  /** How long before its end a credential is renewed, in milliseconds. Default 300,000; at most a fifth of its lifetime. */
  readonly refreshAheadMs?: number
}
