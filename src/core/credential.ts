import type { MaybePromise } from './maybe-promise.ts'

/** What a call proves itself with at a vendor. Never logged, and in no event. */
export interface Credential {
  /** The secret: visible ASCII characters without spaces. */
  readonly token: string
  /** Unix milliseconds at which the vendor stops taking it; absent: asked for again after an hour. */
  readonly expiresAtMs?: number | undefined
  /** Header that carries the token as it is, such as `api-key`. Absent: `authorization: Bearer <token>`. */
  readonly header?: string | undefined
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
