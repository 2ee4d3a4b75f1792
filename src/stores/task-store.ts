import type { MeterPrice } from '../catalog/prices/rate.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import type { UsageDraft } from '../usage/usage-record.ts'
import type { IdempotencyClaim, StoredAnswer } from './idempotency-store.ts'
import type { ChargeDetails } from './journal.ts'
import type { NewestFirstQuery } from './newest-first.ts'
import type { Principal } from './principal.ts'
import type { Resolution } from './resolution.ts'
import type { StoredResponse } from './response-store.ts'
import type { SpendingThresholds } from './spending.ts'
import type { NewDelivery } from './webhook-store.ts'

/**
 * State of a task. `submitting`: stored, and the vendor is being called. `unknown`: the vendor was called but did not
 * answer, so it may be working. `completed`, `failed` and `cancelled` are final.
 */
export type TaskState = 'submitting' | 'unknown' | 'queued' | 'in_progress' | 'completed' | 'failed' | 'cancelled'

/** States that are not final. */
export const OPEN_TASK_STATES: readonly TaskState[] = ['submitting', 'unknown', 'queued', 'in_progress']

/** A long job at a vendor. */
export interface TaskRecord {
  /** Ours: `task_…`. */
  readonly id: string
  /** The account that pays, and may read it. */
  readonly accountId: string
  /** The key that it was submitted with. */
  readonly keyId: string
  /** Where it is; changed by `change` only. */
  readonly state: TaskState
  /** The vendor's own id; undefined until it gave one. */
  readonly upstreamId: string | undefined
  /**
   * Credential id of the vendor key that polls the task: the vendor's id and a fingerprint of the operator's key. Never the
   * key itself.
   */
  readonly credentialId: string
  /** Undefined: billing is off. */
  readonly holdId: string | undefined
  /** Unix milliseconds. */
  readonly createdAtMs: number
  /** Unix milliseconds of the last change that a caller can see. */
  readonly updatedAtMs: number
  /** Unix milliseconds of the next poll. */
  readonly nextPollAtMs: number
  /** Unix milliseconds at which waiting ends: of an answer to the submission, of an unknown one's fate, of the whole task. */
  readonly deadlineAtMs: number
  /** What no query uses. */
  readonly details: TaskDetails
}

/** Plain data that an endpoint keeps with a task. */
export type TaskFacts = Readonly<Record<string, string | number | boolean | null>>

/** A request that the gateway answers by itself after its caller has left. Plain data that survives JSON unchanged. */
export interface DeferredRequest {
  /** JSON text of the request that is run. */
  readonly body: string
  /** The answer before it is made. */
  readonly begun: object
  /** Unix milliseconds at which waiting for it ends; absent: after the longest time for a task. */
  readonly deadlineAtMs?: number | undefined
  /** Of the caller, for the limits of the run. */
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
  /** Prices at submission by variant, `''` for any other; absent: billing is off. */
  readonly prices?: Readonly<Record<string, readonly MeterPrice[]>> | undefined
  /** What money was held for. */
  readonly heldUsage: Usage
  /** The price variant that money was held for; of a video its resolution: `720p`. */
  readonly variant: string
  /** What the endpoint keeps for its record: of the request, and of the vendor's reports. */
  readonly facts: TaskFacts
  /** Where the end of the task is told; absent: nowhere. */
  readonly webhookUrl?: string | undefined
  /** The caller's Idempotency-Key, absent without one. If the submitting process dies, another one can complete the key. */
  readonly claim?: IdempotencyClaim | undefined
  /** Whom it serves and its tags, for records of usage; absent: neither was told. */
  readonly attribution?: { readonly endUser: string | undefined; readonly tags: readonly string[] } | undefined
  /** Number of polls. */
  readonly polls: number
  /** Number of consecutive polls that the vendor did not answer; absent: none. */
  readonly unansweredPolls?: number | undefined
  /** Number of consecutive polls to which the vendor did not know the task. */
  readonly unknownReports: number
  /** What is to be run here; absent: the vendor runs the task, or it has ended. */
  readonly deferred?: DeferredRequest | undefined
  /** The vendor's latest `output` and `usage` of its task record. */
  readonly output?: unknown
  /** The vendor's own report, as `output`. */
  readonly usage?: unknown
  /** Where the content is, once there is any. */
  readonly contentUrl?: string
  /** Why it failed, as its caller reads it; absent: it has not. */
  readonly error?: { readonly code: string; readonly message: string }
  /** Charged, decimal dollars, once it is final. */
  readonly cost?: string
}

/** One change of a task, made only if it still is in one of the states `from`. */
export interface TaskChange {
  /** Ours: `task_…`. */
  readonly id: string
  /** Nothing is changed in any other state. */
  readonly from: readonly TaskState[]
  /** New values; absent members stay. A lease on the task ends with the change. */
  readonly set: Partial<
    Pick<
      TaskRecord,
      'state' | 'upstreamId' | 'credentialId' | 'updatedAtMs' | 'nextPollAtMs' | 'deadlineAtMs' | 'details'
    >
  >
  /** Ends the task's hold in the same transaction: with a charge, or without. Absent: the hold stays. */
  readonly resolve?:
    | {
        readonly kind: 'settle'
        readonly amount: bigint
        readonly description: string
        readonly details?: ChargeDetails | undefined
        /** As {@link Settlement.record}. */
        readonly record?: UsageDraft | undefined
        /** As {@link Settlement.thresholds}. */
        readonly thresholds?: SpendingThresholds | undefined
      }
    | { readonly kind: 'void' }
    | undefined
  /** Completes the caller's Idempotency-Key with the answer of the submission, in the same transaction. */
  readonly answered?: { readonly claim: IdempotencyClaim; readonly answer: StoredAnswer } | undefined
  /** An answer that is kept in the same transaction, as `ResponseStore.save` does. */
  readonly keeps?: StoredResponse | undefined
  /** Queues a webhook in the same transaction. */
  readonly delivery?: NewDelivery | undefined
}

/** A change that was made. */
export interface TaskChangeResult {
  /** How the charge of the change ended the hold; absent: it has no charge, or the task no hold. */
  readonly charge?: Resolution | undefined
}

/** Which tasks to lease, and for how long. */
export interface DueQuery {
  /** Only tasks that this vendor key polls. */
  readonly credentialId: string
  /** Unix milliseconds: what is due by then. */
  readonly nowMs: number
  /** Others do not lease the same task before this moment, unless it was changed. Unix milliseconds. */
  readonly leaseUntilMs: number
  /** Most tasks. */
  readonly limit: number
  /** At most so many tasks with one credential id are leased in one window of time, by all processes together. */
  readonly budget: { readonly takes: number; readonly windowMs: number }
  /** Only this task, due or not. */
  readonly id?: string | undefined
  /** No tasks of these accounts; absent: those of all. */
  readonly exceptAccounts?: readonly string[] | undefined
}

/** A page of an account's tasks, newest first. */
export interface TaskPage {
  /** Newest first, by creation, then id. */
  readonly tasks: readonly TaskRecord[]
  /** Are there tasks behind the last one? */
  readonly hasMore: boolean
}

/** Long jobs. Every method is atomic; with the ledger of the same driver, changes and settlements share a transaction. */
export interface TaskStore {
  /** Writes a task down where billing is off; with billing on, `Ledger.reserve` does it together with the hold. */
  insert(task: TaskRecord): MaybePromise<void>
  /** An account's own task by our id or the vendor's; undefined for unknown and foreign ids alike. */
  find(accountId: string, id: string): MaybePromise<TaskRecord | undefined>
  /**
   * An account's own tasks, newest first (by creation, then id). `after` and `before` are our ids: the page starts after
   * `after`, or ends before `before`. An unknown id gives an empty page.
   */
  list(
    accountId: string,
    page: { readonly limit: number; readonly after?: string | undefined; readonly before?: string | undefined },
  ): MaybePromise<TaskPage>
  /** Tasks of all accounts, for operators. */
  listAll(query: NewestFirstQuery<TaskState>): MaybePromise<readonly TaskRecord[]>
  /** Compare and set. Undefined: the task is unknown or was in none of the states, and nothing was changed. */
  change(change: TaskChange, nowMs: number): MaybePromise<TaskChangeResult | undefined>
  /** Removes a task in state `submitting` that the vendor refused, voids its hold and frees the Idempotency-Key. */
  discard(id: string, claim: IdempotencyClaim | undefined, nowMs: number): MaybePromise<boolean>
  /** Leases tasks in state `queued` or `in_progress` that are due for polling, longest overdue first. */
  leaseDue(query: DueQuery): MaybePromise<readonly TaskRecord[]>
  /** Credential ids of the tasks in state `queued` or `in_progress`, each once. */
  credentialIds(): MaybePromise<readonly string[]>
  /** Leases open tasks of any credential id whose deadline has passed. */
  leaseExpired(query: {
    readonly nowMs: number
    readonly leaseUntilMs: number
    readonly limit: number
  }): MaybePromise<readonly TaskRecord[]>
  /**
   * Deletes tasks that have ended and were last changed at or before `changedUntilMs`, and the messages about them: at most
   * `limit`, the oldest first. An open task stays, and so does one with a message that waits for delivery.
   * @returns how many tasks were deleted.
   */
  purge(query: { readonly changedUntilMs: number; readonly limit: number }): MaybePromise<number>
}
