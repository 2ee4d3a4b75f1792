import type { MaybePromise } from '../core/maybe-promise.ts'
import type { NewestFirstQuery } from './resolution.ts'

/** Message to deliver. */
export interface NewDelivery {
  /** Id that is the same for all attempts, so that receivers can detect repetitions: `msg_…`. */
  readonly id: string
  /** Account whose secret signs it. */
  readonly accountId: string
  /** Task of the message. */
  readonly taskId: string
  /** URL to which it is posted. */
  readonly url: string
  /** Exact JSON text that is signed and sent. */
  readonly body: string
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Unix milliseconds of the first attempt. */
  readonly nextAttemptAtMs: number
}

/** Attempt to deliver a message. */
export interface DeliveryAttempt {
  /** Unix milliseconds. */
  readonly atMs: number
  /** HTTP status of the receiver; undefined if there was no answer. */
  readonly status?: number
  /** Reason of the failure as readable text. */
  readonly error?: string
  /** Milliseconds from its start to the end of the answer, or to the failure. */
  readonly durationMs: number
}

/** State of a message. `disabled`: the receiver answered that it is permanently gone (410). `failed`: the last attempt failed. */
export type DeliveryState = 'pending' | 'delivered' | 'failed' | 'disabled'

/** Number of attempts that a store keeps of each message. */
export const MAX_ATTEMPTS_KEPT = 50

/** Message and its delivery state. */
export interface WebhookDelivery extends NewDelivery {
  /** State; `pending` while attempts are left. */
  readonly state: DeliveryState
  /** Attempts, oldest first; the newest 50 are kept. */
  readonly attempts: readonly DeliveryAttempt[]
  /** Time of the last resend, which restarts the schedule, in Unix milliseconds; `undefined` if it was never resent. */
  readonly resentAtMs: number | undefined
}

/** Secret that signs messages: `whsec_` and base64. */
export interface WebhookSecret {
  /** Secret in plain text, because signing needs it: `whsec_…`. */
  readonly secret: string
  /** Unix milliseconds after which it no longer signs, or `undefined` until it is replaced. */
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
   * Stores an attempt and its consequences; the lease ends. A failure that began before the last resend changes nothing else: the
   * message stays due.
   */
  record(
    id: string,
    outcome: { readonly attempt: DeliveryAttempt; readonly state: DeliveryState; readonly nextAttemptAtMs: number },
  ): MaybePromise<void>
  /** Ends the leases on messages that were not sent, so that others need not wait for their expiry. May be omitted. */
  release?(ids: readonly string[]): MaybePromise<void>
  /** Returns an account's own messages about a task, oldest first. */
  list(accountId: string, taskId: string): MaybePromise<readonly WebhookDelivery[]>
  /** Returns messages of all accounts, for operators. */
  listAll(query: NewestFirstQuery<DeliveryState>): MaybePromise<readonly WebhookDelivery[]>
  /** Makes an account's own message pending again, due at `nowMs`, which is stored. Returns false if there is no such message. */
  resend(accountId: string, id: string, nowMs: number): MaybePromise<boolean>
  /** Returns the secrets of an account that sign at `nowMs`, newest first; empty if it has none of its own. */
  secrets(accountId: string, nowMs: number): MaybePromise<readonly WebhookSecret[]>
  /**
   * Sets a secret of an account that has none without an expiry.
   * @returns The newest secret without an expiry: the same one for all concurrent callers, in any process.
   */
  ensureSecret(accountId: string, secret: string): MaybePromise<string>
  /** Sets a new secret of an account; its earlier secrets sign until `overlapUntilMs`. Deletes secrets that have expired at `nowMs`. */
  replaceSecret(accountId: string, secret: string, overlapUntilMs: number, nowMs: number): MaybePromise<void>
}
