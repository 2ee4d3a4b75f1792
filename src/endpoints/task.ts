import type { CatalogModel } from '../catalog/model.ts'
import type { BillingFields } from '../catalog/prices/prices.ts'
import type { Usage } from '../core/usage.ts'
import type { TaskFacts, TaskRecord, TaskState } from '../stores/task-store.ts'
import type { WireAnswer } from './operation.ts'

/** A call about a task that exists: `GET` to read it, `POST` to cancel it. */
export interface TaskCall {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers: readonly string[]
}

/** What a vendor says of a task. */
export interface TaskReport {
  /** `unknown`: the vendor does not know it, or not any more. */
  readonly status: 'queued' | 'in_progress' | 'completed' | 'failed' | 'cancelled' | 'unknown'
  /** The vendor's own members, for the task's record. */
  readonly output: unknown
  readonly usage: unknown
  /** What it bills; undefined when it does not say. */
  readonly billed: Usage | undefined
  /** The price variant that it made, as callers write it (a video: `720p`); undefined when it does not say. */
  readonly variant: string | undefined
  readonly contentUrl: string | undefined
  /** Facts for the task's record, added to those of the request; undefined: none. */
  readonly facts: TaskFacts | undefined
  /** Of a failed task: the vendor's code, and its text, redacted. */
  readonly error: { readonly code: string; readonly message: string } | undefined
}

/** How a vendor is asked about its tasks. All functions are pure. */
export interface TaskOperation {
  read(upstreamId: string, apiKey: string): TaskCall
  /** Reads a 2xx answer about a task. Undefined when it is not what the vendor promises. */
  report(answer: WireAnswer): TaskReport | undefined
  cancel(upstreamId: string, apiKey: string): TaskCall
  /** How long to wait before a task is asked about again. */
  readonly pollIntervalMs: number
  /** Most questions about tasks in a window of time for one credential at the vendor, over all processes. */
  readonly pollBudget: { readonly takes: number; readonly windowMs: number }
}

/** What a request says about its task. */
export interface TaskSettings {
  /** The value of one billing field on which the price depends and which the vendor may change: `720p`. */
  readonly variant: string
  /** Where the end is told; undefined: nowhere. */
  readonly webhookUrl: string | undefined
  /** Plain data for the task's record. */
  readonly facts: TaskFacts
}

/**
 * What an endpoint whose answers end later adds: how its tasks are followed, priced and shown. Storing, polling, settling,
 * webhooks, cancelling and content are the same for all of them.
 */
export interface TaskBehaviour<Request = { readonly model: string }, Offers = object> {
  settings(request: Request): TaskSettings
  /** Undefined: the vendor makes no such tasks. */
  operation(vendor: Offers): TaskOperation | undefined
  /**
   * The variants that a model may turn out to have made, and the billing fields of each: all are priced at submission, so
   * that a later price list changes nothing.
   */
  variants(model: CatalogModel, fields: BillingFields): readonly (readonly [variant: string, fields: BillingFields])[]
  /** What of a vendor's report is charged; undefined: it cannot be believed, and what was held for is charged. */
  billedUsage(billed: Usage, model: CatalogModel | undefined): Usage | undefined
  /** The answer to a submission: 202 with this JSON. */
  receipt(task: TaskRecord): object
  /** The task as its owner reads it. */
  record(task: TaskRecord): object
  /** Type of the webhook that tells of its end. */
  eventType(state: Extract<TaskState, 'completed' | 'failed' | 'cancelled'>): string
}
