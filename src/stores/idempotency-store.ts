// See docs/decisions/0009-idempotency.md.

import type { MaybePromise } from '../core/maybe-promise.ts'

/** Retention of an Idempotency-Key, in milliseconds: 24 hours. */
export const IDEMPOTENCY_RETENTION_MS = 24 * 60 * 60 * 1000

/** Claim of an Idempotency-Key, so that a request has an effect only once. Keys are scoped to the account. */
export interface IdempotencyClaim {
  /** Account of the key. Accounts share no keys. */
  readonly accountId: string
  /** The caller's Idempotency-Key. */
  readonly key: string
  /** Digest of the method, path and body. */
  readonly fingerprint: string
  /** Unix milliseconds at which the key expires. */
  readonly expiresAtMs: number
  /**
   * Unix milliseconds at which a key without an answer becomes free, because its request may have died. Defaults to
   * `expiresAtMs`. Reservations do not set it: their key is freed with their hold.
   */
  readonly pendingUntilMs?: number
  /**
   * Id of the claiming request, or of the hold in a reservation, so that it never changes the claim of a request that has taken
   * over the key. Omitted if not known.
   */
  readonly claimedBy?: string
}

/** Stored answer for replay. */
export interface StoredAnswer {
  /** HTTP status. */
  readonly status: number
  /** Flat list: name, value, name, value. */
  readonly headers: readonly string[]
  /** Bytes that the caller received. */
  readonly body: Uint8Array
}

/**
 * Outcome of a claim. `in_flight`: the first request is not answered yet. `mismatch`: the key was used with another body.
 */
export type ClaimResult =
  | { readonly status: 'claimed' }
  | { readonly status: 'in_flight' }
  | { readonly status: 'mismatch' }
  | { readonly status: 'replay'; readonly answer: StoredAnswer }

/**
 * Idempotency keys. If billing is on, the ledger claims and completes them inside its own transactions. A driver shared by
 * several processes uses a common clock instead of `nowMs`.
 */
export interface IdempotencyStore {
  /**
   * Claims a key atomically: of many concurrent equal claims, exactly one is `claimed`. An expired key counts as unknown. A key
   * in flight is `claimed` again by the same `claimedBy`, and is pending until the later of both times.
   */
  claim(claim: IdempotencyClaim, nowMs: number): MaybePromise<ClaimResult>
  /**
   * Stores the answer for replay until `expiresAtMs`; the first answer stays. Returns false, without storing it, if the key was
   * freed or belongs to another request by now.
   */
  complete(claim: IdempotencyClaim, answer: StoredAnswer, nowMs: number): MaybePromise<boolean>
  /** Frees the key, because the request had no effect. Harmless if the key is unknown, completed, or belongs to another request. */
  release(claim: IdempotencyClaim): MaybePromise<void>
}
