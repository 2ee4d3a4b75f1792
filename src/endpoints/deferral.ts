import type { StoredResponse } from '../stores/response-store.ts'
import type { TaskRecord, TaskState } from '../stores/task-store.ts'

/** How a deferred answer ended without content. */
export interface UnmadeAnswer {
  readonly state: 'failed' | 'cancelled'
  readonly nowMs: number
}

/**
 * How answers of an endpoint are made after their request has ended, for callers who ask for it. Storing, running, settling,
 * webhooks and cancelling are the same for all endpoints. The endpoint keeps its answers.
 */
export interface Deferral<Request = { readonly model: string }> {
  /** Does the request ask for it? */
  applies(request: Request): boolean
  /** Address that is told of the end; undefined: none. */
  webhookUrl(request: Request): string | undefined
  /** The request that is run later: without what concerns the deferral only. */
  runnable(request: Request): object
  /** Fields of the request that have no effect on a deferred answer, as `x-signalbox-dropped` lists them. If omitted, there are none. */
  dropped?(request: Request): readonly string[]
  /** The answer before it is made, as plain data. */
  begun(request: Request, facts: { readonly id: string; readonly model: string; readonly nowMs: number }): object
  /** The answer of an open task as its owner reads it. */
  record(task: TaskRecord): object
  /** A whole answer as its owner reads it, whichever vendor made it. */
  made(answer: Readonly<Record<string, unknown>>, task: TaskRecord): Record<string, unknown>
  /** An answer that failed or was cancelled, and what it was asked with. */
  unmade(task: TaskRecord, end: UnmadeAnswer): Pick<StoredResponse, 'previousId' | 'input' | 'response'>
  /** Type of the webhook for its end, and its data. */
  eventType(state: Extract<TaskState, 'completed' | 'failed' | 'cancelled'>, task: TaskRecord): string
  eventData(task: TaskRecord): object
  /** The first events of a stream that waits for the answer, above the number `startingAfter`, and the last one's number. */
  firstEvents(record: object, startingAfter: number): { readonly text: string; readonly lastNumber: number }
  /** Keeps a silent stream open after the event with this number. */
  keepAlive(lastNumber: number): string
}
