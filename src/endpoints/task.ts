import type { CatalogModel } from '../catalog/model.ts'
import type { BillingFields } from '../catalog/prices/prices.ts'
import type { Usage } from '../core/usage.ts'
import type { TaskFacts, TaskRecord, TaskState } from '../stores/task-store.ts'
import type { WireAnswer } from './operation.ts'
import type { VendorFailure } from './stream-transform.ts'

/** A call about an existing task: `GET` to read it, `POST` to cancel it. */
export interface TaskCall {
  readonly method: 'GET' | 'POST'
  /** Path and query below the vendor's origin. */
  readonly path: string
  /** Flat list of name, value, name, value, including credentials. */
  readonly headers: readonly string[]
}

/** A vendor's report on a task. */
export interface TaskReport {
  /** Status. `unknown` if the vendor does not know the task, or no longer does. */
  readonly status: 'queued' | 'in_progress' | 'completed' | 'failed' | 'cancelled' | 'unknown'
  /** The vendor's own members, for the task's record. */
  readonly output: unknown
  /** The vendor's own report of usage, for the task's record. */
  readonly usage: unknown
  /** Billed usage, if reported. */
  readonly billed: Usage | undefined
  /** Price variant of the result, as callers write it (`720p` for a video), if reported. */
  readonly variant: string | undefined
  /** URL of the content, if any yet. */
  readonly contentUrl: string | undefined
  /** Facts for the task's record, in addition to those of the request, if any. */
  readonly facts: TaskFacts | undefined
  /** Redacted error of a failed task. If the operator's account is at fault, the gateway's own error. */
  readonly error: { readonly code: string; readonly message: string } | undefined
  /** The vendor's failure if the operator's account is at fault. Only the operator sees it. */
  readonly accountProblem?: VendorFailure | undefined
}

/** How a vendor's tasks are polled. All functions are pure. */
export interface TaskOperation {
  /** Creates the call that reads the status of a task. */
  read(upstreamId: string, apiKey: string): TaskCall
  /** Reads a 2xx answer about a task. Returns `undefined` if it is malformed. */
  report(answer: WireAnswer): TaskReport | undefined
  /** Creates the call that cancels a task. */
  cancel(upstreamId: string, apiKey: string): TaskCall
  /** Whether a 2xx answer to `cancel` confirms it. If omitted, each does. */
  confirmsCancel?(answer: WireAnswer): boolean
  /** Delay before a task is polled again, in milliseconds. */
  readonly pollIntervalMs: number
  /** Maximum number of polls per time window for one credential at the vendor, across all processes. */
  readonly pollBudget: { readonly takes: number; readonly windowMs: number }
}

/** Facts about the task in a request. */
export interface TaskSettings {
  /** Value of the billing field that decides the price and that the vendor may change: `720p`. */
  readonly variant: string
  /** The webhook URL, if any. */
  readonly webhookUrl: string | undefined
  /** Plain data for the task's record. */
  readonly facts: TaskFacts
}

/**
 * Members of an endpoint with tasks: how its tasks are polled, priced and shown. Storing, polling, settling, webhooks, cancelling
 * and content are the same for all endpoints.
 */
export interface TaskBehaviour<Request = { readonly model: string }, Offers = object> {
  /** Returns the members of a request that are stored with its task. */
  settings(request: Request): TaskSettings
  /** Returns the task operation of a vendor, or `undefined` if it has no such tasks. */
  operation(vendor: Offers): TaskOperation | undefined
  /**
   * Returns the variants that a model may produce, and the billing fields of each. All are priced at submission, so that a later
   * price list has no effect.
   */
  variants(model: CatalogModel, fields: BillingFields): readonly (readonly [variant: string, fields: BillingFields])[]
  /** Returns the charged part of a vendor's report, or `undefined` if it is implausible, so that the hold is charged. */
  billedUsage(billed: Usage, model: CatalogModel | undefined): Usage | undefined
  /** Returns the answer to a submission: 202 with this JSON. */
  receipt(task: TaskRecord): object
  /** Returns the task as its owner reads it. */
  record(task: TaskRecord): object
  /** Returns the type of the webhook for the end of a task. */
  eventType(state: Extract<TaskState, 'completed' | 'failed' | 'cancelled'>): string
}
