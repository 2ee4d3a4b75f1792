import type { MaybePromise } from '../core/maybe-promise.ts'

/** How long an Idempotency-Key is kept, in milliseconds: 24 hours. */
export const IDEMPOTENCY_RETENTION_MS = 24 * 60 * 60 * 1000

/** A caller's request to have an effect only once. Keys are scoped to the account. */
export interface IdempotencyClaim {
  /** Whose key it is: accounts share none. */
  readonly accountId: string
  /** The caller's Idempotency-Key. */
  readonly key: string
  /** Digest of the method, path and body. */
  readonly fingerprint: string
  /** Unix milliseconds at which the key expires. */
  readonly expiresAtMs: number
  /**
   * Unix milliseconds at which the key is free again unless it has an answer by then: its request may have died. `expiresAtMs` when absent.
   * Reservations have none: their key is freed with their hold.
   */
  readonly pendingUntilMs?: number
  /**
   * Id of the request that claims, in a reservation that of its hold, so that it changes no claim of another one that has taken the key over.
   * Absent: not known.
   */
  readonly claimedBy?: string
}

/** An answer kept for replay. */
export interface StoredAnswer {
  /** HTTP status. */
  readonly status: number
  /** Flat list: name, value, name, value. */
  readonly headers: readonly string[]
  /** The bytes that the caller got. */
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
 * Idempotency keys. With billing on, the ledger claims and completes them inside its own transactions. A driver that processes share
 * measures the time by a clock that they share, whatever `nowMs` says.
 */
export interface IdempotencyStore {
  /**
   * Atomic: of many equal claims at once, exactly one is `claimed`. A key whose time is over counts as unknown. A key that is in flight is
   * `claimed` again by the same `claimedBy`, and is pending until the later of both times.
   */
  claim(claim: IdempotencyClaim, nowMs: number): MaybePromise<ClaimResult>
  /**
   * Keeps the answer for replay until `expiresAtMs`; the first answer stays. False: the key was freed, or another request has it by now, and
   * the answer is not kept.
   */
  complete(claim: IdempotencyClaim, answer: StoredAnswer, nowMs: number): MaybePromise<boolean>
  /** Frees the key: the request had no effect. Harmless when the key is unknown, completed, or another request's by now. */
  release(claim: IdempotencyClaim): MaybePromise<void>
}
