import type { MaybePromise } from '../core/maybe-promise.ts'
import type { NewestFirstQuery } from './newest-first.ts'

/** A message to be delivered. */
export interface NewDelivery {
  /** The same for all attempts, so that receivers can detect repetitions: `msg_…`. */
  readonly id: string
  /** Whose secret signs it. */
  readonly accountId: string
  /** The task that it is about. */
  readonly taskId: string
  /** Where it is posted. */
  readonly url: string
  /** The exact JSON text that is signed and sent. */
  readonly body: string
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Unix milliseconds of the first attempt. */
  readonly nextAttemptAtMs: number
}

/** One attempt to deliver. */
export interface DeliveryAttempt {
  /** Unix milliseconds. */
  readonly atMs: number
  /** The receiver's HTTP status; undefined when there was no answer. */
  readonly status?: number
  /** Why it failed, for people. */
  readonly error?: string
  /** From its beginning to the end of the answer, or to the failure. */
  readonly durationMs: number
}

/**
 * `disabled`: the receiver answered that it is permanently gone (410). `failed`: the last attempt of the schedule failed.
 */
export type DeliveryState = 'pending' | 'delivered' | 'failed' | 'disabled'

/** Attempts that a store keeps of each message. */
export const MAX_ATTEMPTS_KEPT = 50

/** A message and what became of it. */
export interface WebhookDelivery extends NewDelivery {
  /** `pending` while attempts are left. */
  readonly state: DeliveryState
  /** Oldest first; the newest 50 are kept. */
  readonly attempts: readonly DeliveryAttempt[]
  /** Unix milliseconds of the last resend, which restarts the schedule; undefined: never resent. */
  readonly resentAtMs: number | undefined
}

/** A secret that messages are signed with: `whsec_` and base64. */
export interface WebhookSecret {
  /** In plain text, because signing needs it: `whsec_…`. */
  readonly secret: string
  /** Unix milliseconds after which it no longer signs; undefined: until it is replaced. */
  readonly expiresAtMs: number | undefined
}

/** Messages that wait for delivery, and the secrets that sign them. Every method is atomic. */
export interface WebhookStore {
  /** Leases due pending messages, longest overdue first; others do not lease them before `leaseUntilMs`. */
  leaseDue(query: {
    readonly nowMs: number
    readonly leaseUntilMs: number
    readonly limit: number
  }): MaybePromise<readonly WebhookDelivery[]>
  /**
   * Notes an attempt and what follows from it; the lease ends. A failure that began before the last resend changes nothing else: the
   * message stays due.
   */
  record(
    id: string,
    outcome: { readonly attempt: DeliveryAttempt; readonly state: DeliveryState; readonly nextAttemptAtMs: number },
  ): MaybePromise<void>
  /** Ends the leases on messages that were not sent, so that others need not wait for their end. Absent: they wait. */
  release?(ids: readonly string[]): MaybePromise<void>
  /** An account's own messages about a task, oldest first. */
  list(accountId: string, taskId: string): MaybePromise<readonly WebhookDelivery[]>
  /** Messages of all accounts, for operators. */
  listAll(query: NewestFirstQuery<DeliveryState>): MaybePromise<readonly WebhookDelivery[]>
  /** Makes an account's own message pending again, due at `nowMs`, which is noted; false when there is none of that id. */
  resend(accountId: string, id: string, nowMs: number): MaybePromise<boolean>
  /** Secrets of an account that sign at `nowMs`, newest first; empty if it has none of its own. */
  secrets(accountId: string, nowMs: number): MaybePromise<readonly WebhookSecret[]>
  /**
   * Gives an account this secret if it has none without an end.
   * @returns the newest secret without an end: the same one to all who ask at the same time, in any process.
   */
  ensureSecret(accountId: string, secret: string): MaybePromise<string>
  /** Gives an account a new secret; those it had sign until `overlapUntilMs`. Deletes its secrets that have expired at `nowMs`. */
  replaceSecret(accountId: string, secret: string, overlapUntilMs: number, nowMs: number): MaybePromise<void>
}
