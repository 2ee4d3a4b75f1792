import type { MaybePromise } from '../core/maybe-promise.ts'

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
