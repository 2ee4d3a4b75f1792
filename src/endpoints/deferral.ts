import type { StoredResponse } from '../stores/response-store.ts'
import type { TaskRecord, TaskState } from '../stores/task-store.ts'

/** How a deferred answer ended without content. */
export interface UnmadeAnswer {
  readonly state: 'failed' | 'cancelled'
  readonly nowMs: number
}

/**
 * How an endpoint runs requests in the background, for callers who request it. Storing, running, settling, webhooks and
 * cancelling are the same for all endpoints. The endpoint stores its answers.
 */
export interface Deferral<Request = { readonly model: string }> {
  /** Whether the request asks to be run in the background. */
  applies(request: Request): boolean
  /** Address that gets a webhook at the end, if any. */
  webhookUrl(request: Request): string | undefined
  /** Returns the request that runs later, without the members that only concern the deferral. */
  runnable(request: Request): object
  /** Request fields without effect on deferred answers, as listed in `x-signalbox-dropped`. */
  dropped?(request: Request): readonly string[]
  /** Returns the answer before it is generated, as plain data. */
  begun(request: Request, facts: { readonly id: string; readonly model: string; readonly nowMs: number }): object
  /** Returns the answer of an open task as its owner reads it. */
  record(task: TaskRecord): object
  /** Returns a whole answer as its owner reads it, whichever vendor generated it. */
  made(answer: Readonly<Record<string, unknown>>, task: TaskRecord): Record<string, unknown>
  /** Returns an answer that failed or was cancelled, and its input. */
  unmade(task: TaskRecord, end: UnmadeAnswer): Pick<StoredResponse, 'previousId' | 'input' | 'response'>
  /** Type of the webhook for the end of a task. */
  eventType(state: Extract<TaskState, 'completed' | 'failed' | 'cancelled'>, task: TaskRecord): string
  eventData(task: TaskRecord): object
  /** Returns the first events after number `startingAfter` of a waiting stream, and the last event's number. */
  firstEvents(record: object, startingAfter: number): { readonly text: string; readonly lastNumber: number }
  /** Keeps a silent stream open after the event with this number. */
  keepAlive(lastNumber: number): string
}
