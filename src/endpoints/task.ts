import type { CatalogModel } from '../catalog/model.ts'
import type { BillingFields } from '../catalog/prices/prices.ts'
import type { Usage } from '../core/usage.ts'
import type { TaskFacts, TaskRecord, TaskState } from '../stores/task-store.ts'
import type { WireAnswer } from './operation.ts'
import type { VendorFailure } from './stream-transform.ts'

/** A call about a task that exists: `GET` to read it, `POST` to cancel it. */
export interface TaskCall {
  /** `POST` cancels. */
  readonly method: 'GET' | 'POST'
  /** Path and query below the vendor's origin. */
  readonly path: string
  /** Flat list: name, value, name, value; credentials included. */
  readonly headers: readonly string[]
}

/** A vendor's report on a task. */
export interface TaskReport {
  /** `unknown`: the vendor does not know it, or no longer does. */
  readonly status: 'queued' | 'in_progress' | 'completed' | 'failed' | 'cancelled' | 'unknown'
  /** The vendor's own members, for the task's record. */
  readonly output: unknown
  /** The vendor's own report of usage, for the task's record. */
  readonly usage: unknown
  /** The billed usage; undefined if not reported. */
  readonly billed: Usage | undefined
  /** The price variant that it made, as callers write it (a video: `720p`); undefined if not reported. */
  readonly variant: string | undefined
  /** Where the content is; undefined while there is none. */
  readonly contentUrl: string | undefined
  /** Facts for the task's record, added to those of the request; undefined: none. */
  readonly facts: TaskFacts | undefined
  /** Of a failed task: the vendor's code, and its text, redacted. Where the operator's account is at fault, the gateway's own. */
  readonly error: { readonly code: string; readonly message: string } | undefined
  /** Of a task that failed because of the operator's account: what the vendor says, which only the operator reads. */
  readonly accountProblem?: VendorFailure | undefined
}

/** How a vendor's tasks are polled. All functions are pure. */
export interface TaskOperation {
  /** The call that asks how a task stands. */
  read(upstreamId: string, apiKey: string): TaskCall
  /** Reads a 2xx answer about a task. Undefined if it is malformed. */
  report(answer: WireAnswer): TaskReport | undefined
  /** The call that cancels a task. */
  cancel(upstreamId: string, apiKey: string): TaskCall
  /** Does a 2xx answer to `cancel` confirm it? Absent: each does. */
  confirmsCancel?(answer: WireAnswer): boolean
  /** The wait before a task is polled again. */
  readonly pollIntervalMs: number
  /** Most questions about tasks in a window of time for one credential at the vendor, over all processes. */
  readonly pollBudget: { readonly takes: number; readonly windowMs: number }
}

/** The task facts in a request. */
export interface TaskSettings {
  /** The value of one billing field on which the price depends and which the vendor may change: `720p`. */
  readonly variant: string
  /** The webhook URL; undefined: none. */
  readonly webhookUrl: string | undefined
  /** Plain data for the task's record. */
  readonly facts: TaskFacts
}

/**
 * What an endpoint with tasks adds: how its tasks are followed, priced and shown. Storing, polling, settling, webhooks,
 * cancelling and content are the same for all of them.
 */
export interface TaskBehaviour<Request = { readonly model: string }, Offers = object> {
  /** What of a request is kept with its task. */
  settings(request: Request): TaskSettings
  /** Undefined: the vendor makes no such tasks. */
  operation(vendor: Offers): TaskOperation | undefined
  /**
   * The variants that a model may make, and the billing fields of each: all are priced at submission, so that a later price
   * list has no effect.
   */
  variants(model: CatalogModel, fields: BillingFields): readonly (readonly [variant: string, fields: BillingFields])[]
  /** What of a vendor's report is charged; undefined: it cannot be believed, and what was held for is charged. */
  billedUsage(billed: Usage, model: CatalogModel | undefined): Usage | undefined
  /** The answer to a submission: 202 with this JSON. */
  receipt(task: TaskRecord): object
  /** The task as its owner reads it. */
  record(task: TaskRecord): object
  /** Type of the webhook for its end. */
  eventType(state: Extract<TaskState, 'completed' | 'failed' | 'cancelled'>): string
}
