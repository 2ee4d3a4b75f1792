import type { InlineBatchCounts, InlineBatchState } from '../../endpoints/inline-batches.ts'
import type { PipelineContext } from '../../pipeline/pipeline-context.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../../stores/task-store.ts'
import { batchObject, factsOf, isInline, NO_OUTCOMES } from './batch-record.ts'

const NONE: InlineBatchCounts = { answered: 0, failed: 0, cancelled: 0, expired: 0 }

/** Location of the results of a batch. */
export interface InlineResults {
  readonly url: string
  /** Time of their deletion, in Unix milliseconds. */
  readonly untilMs: number
}

/** State of a batch in its dialect. Without `results`, the batch has not ended. */
export function inlineState(task: TaskRecord, nowMs: number, results?: InlineResults): InlineBatchState {
  const facts = factsOf(task)
  const isOver = !OPEN_TASK_STATES.includes(task.state)
  const isGone = results !== undefined && nowMs >= results.untilMs
  return {
    id: task.id,
    createdAtMs: task.createdAtMs,
    expiresAtMs: facts.expiresAtMs,
    cancellingAtMs: facts.cancellingAtMs,
    endedAtMs: isOver ? (facts.endedAtMs ?? task.updatedAtMs) : null,
    archivedAtMs: isGone ? results.untilMs : null,
    resultsUrl: results === undefined || isGone ? null : results.url,
    total: facts.total,
    ended: isOver ? countsOf(task) : NONE,
    cost: task.details.cost,
  }
}

function countsOf(task: TaskRecord): InlineBatchCounts {
  const { end, total, answered, failed, notMade } = factsOf(task)
  // A submission that failed has executed no request.
  if (end === null) return { ...NONE, failed: total }
  const left = notMade ?? 0
  return {
    answered: answered ?? 0,
    failed: (failed ?? 0) - left,
    cancelled: end === 'cancelled' ? left : 0,
    expired: end === 'cancelled' ? 0 : left,
  }
}

/** Batch in its own dialect after its acceptance. */
export function acceptedBatch({ endpoints, clock }: PipelineContext, task: TaskRecord): object {
  const dialect = isInline(task) ? endpoints.at(factsOf(task).endpoint)?.inlineBatches : undefined
  return dialect?.record(inlineState(task, clock.now())) ?? batchObject(task, NO_OUTCOMES)
}
