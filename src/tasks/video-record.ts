import type { TaskRecord, TaskState } from '../stores/task-store.ts'

/** A task as its owner reads it: the vendor's own members, and those of the gateway. */
export type VideoRecord = Readonly<Record<string, unknown>>

/** A task whose submission outcome is not known yet reads as queued; nobody has its id before the outcome is. */
function publicStatus(state: TaskState): string {
  return state === 'submitting' ? 'queued' : state
}

/** Unix seconds, as every time of the gateway's own. */
function seconds(milliseconds: number): number {
  return Math.floor(milliseconds / 1000)
}

/** The answer to a submission. `output` is the vendor's; it is undefined, which JSON leaves out, where the vendor did not answer. */
export function submissionReceipt(task: TaskRecord): VideoRecord {
  const { details } = task
  return {
    task_id: task.id,
    id: task.id,
    object: 'video.generation',
    model: details.model,
    status: publicStatus(task.state),
    created_at: seconds(task.createdAtMs),
    request_id: details.requestId,
    output: details.output,
  }
}

/**
 * The record of a task: the vendor's `output` and `usage` as they came, and, once it has ended, `content`, `usage` and
 * `seed`, or `error`.
 */
export function videoRecord(task: TaskRecord): VideoRecord {
  const { details, state } = task
  const record: Record<string, unknown> = { ...submissionReceipt(task), updated_at: seconds(task.updatedAtMs) }
  if (details.usage !== undefined) record['usage'] = details.usage
  if (state === 'completed') {
    record['content'] = { video_url: details.contentUrl ?? null }
    record['usage'] = details.usage ?? null
    record['seed'] = details.seed ?? null
  } else if (state === 'failed' || state === 'cancelled') {
    record['error'] = state === 'cancelled' ? null : (details.error ?? null)
  }
  if (details.cost !== undefined) record['cost'] = details.cost
  return record
}
