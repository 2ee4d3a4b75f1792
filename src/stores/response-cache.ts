import type { MaybePromise } from '../core/maybe-promise.ts'

/** Maximum retention of an entry, in milliseconds: 24 hours fresh, and the same time again in case no vendor answers. */
export const MAX_CACHE_KEEP_MS = 48 * 60 * 60 * 1000

/**
 * Stores answers for a limited time. It may drop any of them at any time, so a driver that fails or is too slow should return
 * nothing instead of throwing: a request then calls its vendor.
 */
export interface ResponseCache {
  /** Returns the entry as it was set, or `undefined` if there is none or it has expired. The bytes must not be changed. */
  get(key: string, nowMs: number): MaybePromise<Uint8Array | undefined>
  /**
   * Replaces the entry of a key.
   * @param keepMs Retention; at most {@link MAX_CACHE_KEEP_MS}.
   */
  set(key: string, entry: Uint8Array, keepMs: number, nowMs: number): MaybePromise<void>
  /**
   * Returns how often a scope was cleared, at most a second old; 0 if never. The number is part of the keys of its entries, so
   * that clearing needs no search. `undefined` if it is unknown, so that nothing may be read or written.
   */
  generation(scope: string, nowMs: number): MaybePromise<number | undefined>
  /**
   * Makes the entries of a scope unreachable by raising its generation, with immediate effect in this process.
   * @throws Error if it cannot.
   */
  clear(scope: string, nowMs: number): MaybePromise<void>
}

/** Answer that its owner may continue: its owner, and the vendor that stores its history. */
export interface InteractionRecord {
  /** Id of the answer for its owner: `v1_…` for an interaction, `msg_…` for a message of a thread. */
  readonly id: string
  readonly accountId: string
  /** Id of the vendor. */
  readonly vendor: string
  /** Credential id of the key that created it: only that key's project has the history. Never the key itself. */
  readonly credentialId: string
  /** The vendor's own id. */
  readonly upstreamId: string
  /** Public id of the model that answered. */
  readonly model: string
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Unix milliseconds after which it counts as unknown and may be purged. */
  readonly expiresAtMs: number
}

/** Owners of conversations. */
export interface InteractionStore {
  /** Stores a record, replacing one of the same id and account. */
  save(record: InteractionRecord): MaybePromise<void>
  /** Returns an account's own record; undefined for an unknown, foreign or expired id. */
  find(accountId: string, id: string, nowMs: number): MaybePromise<InteractionRecord | undefined>
}
