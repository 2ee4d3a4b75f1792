import type { MeterPrice } from '../catalog/prices/rate.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import type { UsageDraft } from '../usage/usage-record.ts'
import type { IdempotencyClaim, StoredAnswer } from './idempotency-store.ts'
import type { ChargeDetails } from './journal.ts'
import type { Principal } from './principal.ts'
import type { NewestFirstQuery, Resolution } from './resolution.ts'
import type { StoredResponse } from './response-store.ts'
import type { SpendingThresholds } from './spending.ts'
import type { NewDelivery } from './webhook-store.ts'

/**
 * State of a task. `submitting`: stored, and the vendor is being called. `unknown`: the vendor was called but did not answer, so
 * it may be working. `completed`, `failed` and `cancelled` are final.
 */
export type TaskState = 'submitting' | 'unknown' | 'queued' | 'in_progress' | 'completed' | 'failed' | 'cancelled'

/** States that are not final. */
export const OPEN_TASK_STATES: readonly TaskState[] = ['submitting', 'unknown', 'queued', 'in_progress']

/** A long job at a vendor. */
export interface TaskRecord {
  /** The gateway's id: `task_…`. */
  readonly id: string
  /** Account that pays, and may read it. */
  readonly accountId: string
  /** Key that submitted it. */
  readonly keyId: string
  /** State; changed only by `change`. */
  readonly state: TaskState
  /** The vendor's own id; undefined until it returned one. */
  readonly upstreamId: string | undefined
  /**
   * Credential id of the vendor key that polls the task: the vendor's id and a fingerprint of the operator's key. Never the key
   * itself.
   */
  readonly credentialId: string
  /** Id of the hold, or `undefined` if billing is off. */
  readonly holdId: string | undefined
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Unix milliseconds of the last change that a caller can see. */
  readonly updatedAtMs: number
  /** Unix milliseconds of the next poll. */
  readonly nextPollAtMs: number
  /** Time limit in Unix milliseconds: for the answer to the submission, for the result of an unknown one, or for the whole task. */
  readonly deadlineAtMs: number
  /** Data that no query uses. */
  readonly details: TaskDetails
}

/** Plain data that an endpoint stores with a task. */
export type TaskFacts = Readonly<Record<string, string | number | boolean | null>>

/** Request that the gateway answers after its caller has disconnected. Plain data that survives JSON unchanged. */
export interface DeferredRequest {
  /** JSON text of the request that is run. */
  readonly body: string
  /** Answer before its generation. */
  readonly begun: object
  /** Time limit in Unix milliseconds. Defaults to the maximum duration of a task. */
  readonly deadlineAtMs?: number | undefined
  /** Facts of the caller for the limits of the run. */
  readonly principal: Pick<Principal, 'tier' | 'limits' | 'plan' | 'endUser' | 'namesEndUsers' | 'tags'>
}

/** Data of a task that no query uses. Plain data that survives JSON unchanged. */
export interface TaskDetails {
  /** Id of the request that submitted it. */
  readonly requestId: string
  /** Id of the endpoint that it belongs to. */
  readonly endpoint: string
  /** Public id of the model that renders it. */
  readonly model: string
  /** Id of the vendor. */
  readonly vendor: string
  /** Prices at submission by variant, `''` for any other. Omitted if billing is off. */
  readonly prices?: Readonly<Record<string, readonly MeterPrice[]>> | undefined
  /** Usage for which money was reserved. */
  readonly heldUsage: Usage
  /** Price variant for which money was reserved; for a video its resolution: `720p`. */
  readonly variant: string
  /** Data of the request and the vendor's reports that the endpoint stores for its record. */
  readonly facts: TaskFacts
  /** URL to which the end of the task is reported. If omitted, it is not reported. */
  readonly webhookUrl?: string | undefined
  /** The caller's Idempotency-Key, if any. If the submitting process dies, another one can complete the key. */
  readonly claim?: IdempotencyClaim | undefined
  /** End user and tags for usage records. Omitted if neither was specified. */
  readonly attribution?: { readonly endUser: string | undefined; readonly tags: readonly string[] } | undefined
  /** Number of polls. */
  readonly polls: number
  /** Number of consecutive polls that the vendor did not answer. Default 0. */
  readonly unansweredPolls?: number | undefined
  /** Number of consecutive polls for which the vendor did not know the task. */
  readonly unknownReports: number
  /** Request to run in the gateway. Omitted if the vendor runs the task, or if it has ended. */
  readonly deferred?: DeferredRequest | undefined
  /** Latest `output` of the vendor's task record. */
  readonly output?: unknown
  /** Latest `usage` of the vendor's task record. */
  readonly usage?: unknown
  /** URL of the content, when it exists. */
  readonly contentUrl?: string
  /** Reason of the failure for its caller. Omitted if it has not failed. */
  readonly error?: { readonly code: string; readonly message: string }
  /** Charge in decimal dollars, when it is final. */
  readonly cost?: string
}

/** Change of a task, made only if it is still in one of the states `from`. */
export interface TaskChange {
  /** The gateway's id: `task_…`. */
  readonly id: string
  /** States in which the change is allowed. */
  readonly from: readonly TaskState[]
  /** New values. Omitted members stay. The change ends a lease on the task. */
  readonly set: Partial<
    Pick<
      TaskRecord,
      'state' | 'upstreamId' | 'credentialId' | 'updatedAtMs' | 'nextPollAtMs' | 'deadlineAtMs' | 'details'
    >
  >
  /** Ends the task's hold in the same transaction, with or without a charge. If omitted, the hold stays. */
  readonly resolve?:
    | {
        readonly kind: 'settle'
        readonly amount: bigint
        readonly description: string
        readonly details?: ChargeDetails | undefined
        /** Record of the charge; see {@link Settlement.record}. */
        readonly record?: UsageDraft | undefined
        /** Thresholds to report; see {@link Settlement.thresholds}. */
        readonly thresholds?: SpendingThresholds | undefined
      }
    | { readonly kind: 'void' }
    | undefined
  /** Completes the caller's Idempotency-Key with the answer of the submission, in the same transaction. */
  readonly answered?: { readonly claim: IdempotencyClaim; readonly answer: StoredAnswer } | undefined
  /** Answer to store in the same transaction, like `ResponseStore.save`. */
  readonly keeps?: StoredResponse | undefined
  /** Queues a webhook in the same transaction. */
  readonly delivery?: NewDelivery | undefined
}

/** Result of a change. */
export interface TaskChangeResult {
  /** Result of the charge. Omitted if the change has no charge, or the task no hold. */
  readonly charge?: Resolution | undefined
}

/** Tasks to lease, and the duration of the lease. */
export interface DueQuery {
  /** Vendor key of the tasks. */
  readonly credentialId: string
  /** Unix milliseconds at which the tasks must be due. */
  readonly nowMs: number
  /** End of the lease in Unix milliseconds. Until then, others do not lease the task unless it was changed. */
  readonly leaseUntilMs: number
  /** Maximum number of tasks. */
  readonly limit: number
  /** Maximum number of leases per credential id and window of time, for all processes together. */
  readonly budget: { readonly takes: number; readonly windowMs: number }
  /** Id of the only task to lease, due or not. */
  readonly id?: string | undefined
  /** Accounts whose tasks are not leased. Default none. */
  readonly exceptAccounts?: readonly string[] | undefined
}

/** Page of an account's tasks. */
export interface TaskPage {
  /** Tasks, newest first by creation, then id. */
  readonly tasks: readonly TaskRecord[]
  /** Whether more tasks follow. */
  readonly hasMore: boolean
}

/** Long jobs. Every method is atomic; with the ledger of the same driver, changes and settlements share a transaction. */
export interface TaskStore {
  /** Stores a task if billing is off; with billing on, `Ledger.reserve` stores it together with the hold. */
  insert(task: TaskRecord): MaybePromise<void>
  /** Returns an account's own task by the gateway's id or the vendor's; undefined for unknown and foreign ids. */
  find(accountId: string, id: string): MaybePromise<TaskRecord | undefined>
  /**
   * Returns an account's own tasks, newest first (by creation, then id). `after` and `before` are the gateway's ids: the page
   * starts after `after`, or ends before `before`. An unknown id returns an empty page.
   */
  list(
    accountId: string,
    page: { readonly limit: number; readonly after?: string | undefined; readonly before?: string | undefined },
  ): MaybePromise<TaskPage>
  /** Returns tasks of all accounts, for operators. */
  listAll(query: NewestFirstQuery<TaskState>): MaybePromise<readonly TaskRecord[]>
  /** Changes a task by compare-and-set. Returns `undefined`, without any effect, if it is unknown or in another state. */
  change(change: TaskChange, nowMs: number): MaybePromise<TaskChangeResult | undefined>
  /** Removes a task in state `submitting` that the vendor rejected, voids its hold and frees the Idempotency-Key. */
  discard(id: string, claim: IdempotencyClaim | undefined, nowMs: number): MaybePromise<boolean>
  /** Leases tasks in state `queued` or `in_progress` that are due for polling, longest overdue first. */
  leaseDue(query: DueQuery): MaybePromise<readonly TaskRecord[]>
  /** Returns the credential ids of tasks in state `queued` or `in_progress`, each once. */
  credentialIds(): MaybePromise<readonly string[]>
  /** Leases open tasks of any credential id whose deadline has passed. */
  leaseExpired(query: {
    readonly nowMs: number
    readonly leaseUntilMs: number
    readonly limit: number
  }): MaybePromise<readonly TaskRecord[]>
  /**
   * Deletes tasks that have ended and were last changed at or before `changedUntilMs`, and their messages: at most `limit`,
   * oldest first. Open tasks stay, and so do tasks with a message that waits for delivery.
   * @returns The number of deleted tasks.
   */
  purge(query: { readonly changedUntilMs: number; readonly limit: number }): MaybePromise<number>
}
