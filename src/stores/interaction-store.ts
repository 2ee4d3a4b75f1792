import type { MaybePromise } from '../core/maybe-promise.ts'

/** An answer that its owner may continue: its owner, and where the vendor keeps its history. */
export interface InteractionRecord {
  /** Id of the answer for its owner: `v1_…` for an interaction, `msg_…` for a message of a thread. */
  readonly id: string
  readonly accountId: string
  /** Id of the vendor. */
  readonly vendor: string
  /** Credential id of the operator's key that made it: only that key's project has the history. Never the key itself. */
  readonly credentialId: string
  /** The vendor's own id. */
  readonly upstreamId: string
  /** Public id of the model that answered. */
  readonly model: string
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Unix milliseconds after which it reads as unknown and may be purged. */
  readonly expiresAtMs: number
}

/** Who owns which conversation. */
export interface InteractionStore {
  /** Keeps a record; one of the same id and account is replaced. */
  save(record: InteractionRecord): MaybePromise<void>
  /** An account's own record that has not expired; undefined for an unknown, foreign or expired id alike. */
  find(accountId: string, id: string, nowMs: number): MaybePromise<InteractionRecord | undefined>
}
