import { formatDollars } from '../../core/money.ts'
import type { Usage } from '../../core/usage.ts'
import type { BatchTally } from '../../stores/batch-store.ts'
import type { TaskFacts, TaskRecord } from '../../stores/task-store.ts'
import type { TaskMessage } from '../webhook-payload.ts'
import type { BatchBound } from './batch-bounds.ts'

/** Credential id of batches, which the gateway runs itself. No credential id of a vendor starts this way. */
export const BATCH_CREDENTIAL_ID = '-batches'

/** How long an expired batch stays open if no process runs it: the next process that does charges its answers. */
export const LONGEST_WAIT_MS = 365 * 24 * 60 * 60_000

/** How a batch ends after at least one request was sent. */
export type BatchEnd = 'completed' | 'expired' | 'cancelled'

/** Flat facts in the task of a batch. Times are in Unix milliseconds, or `null` if the event has not happened. */
export interface BatchFacts extends TaskFacts {
  /** Path of the requests: `/v1/chat/completions`. */
  readonly endpoint: string
  /** Id of the input file, or `null` if the requests came with the submission. */
  readonly inputFileId: string | null
  readonly total: number
  readonly expiresAtMs: number
  /** JSON text of the caller's metadata. */
  readonly metadata: string | null
  readonly cancellingAtMs: number | null
  readonly endedAtMs: number | null
  /** How the batch ended, in the caller's terms: `completed`, `failed`, `expired` or `cancelled`. */
  readonly end: string | null
  readonly outputFileId: string | null
  readonly errorFileId: string | null
  readonly answered: number | null
  readonly failed: number | null
  /** How many of `failed` were never executed. */
  readonly notMade: number | null
  /** Time at which the owner deleted the batch and its results. */
  readonly deletedAtMs: number | null
  /** Lifetime of the batch's files, if the caller requested less than the gateway's default. */
  readonly outputLifetimeMs?: number
  /** Output limit of requests that set none. `null` for a batch that has failed. */
  readonly outputBound: BatchBound | null
  /** JSON text of the faults of its lines, or `null` if there are none. */
  readonly faults: string | null
}

export const NO_OUTCOMES: BatchTally = { answered: 0, failed: 0 }

export function isBatch({ credentialId }: TaskRecord): boolean {
  return credentialId === BATCH_CREDENTIAL_ID
}

export function factsOf({ details }: TaskRecord): BatchFacts {
  return details.facts as BatchFacts
}

/** Whether the requests came with the submission. Such a batch belongs to its endpoint's own API and is visible only there. */
export function isInline(task: TaskRecord): boolean {
  return isBatch(task) && factsOf(task).inputFileId === null
}

/** Whether the batch will end without its remaining requests. */
export function isCancelling(task: TaskRecord): boolean {
  return factsOf(task).cancellingAtMs !== null
}

/** Batch in the format that callers read (OpenAI API reference, "The batch object"), with `cost` in dollars if it was charged. */
export function batchObject(task: TaskRecord, tally: BatchTally): Record<string, unknown> {
  const facts = factsOf(task)
  const status = statusOf(task)
  const endedAt = (end: string): number | null => (facts.end === end ? seconds(facts.endedAtMs) : null)
  const answered = facts.answered ?? tally.answered
  const failed = facts.failed ?? tally.failed
  return {
    id: task.id,
    object: 'batch',
    endpoint: facts.endpoint,
    model: task.details.model === '' ? null : task.details.model,
    errors: facts.faults === null ? null : { object: 'list', data: JSON.parse(facts.faults) as unknown },
    input_file_id: facts.inputFileId,
    completion_window: '24h',
    status,
    output_file_id: facts.outputFileId,
    error_file_id: facts.errorFileId,
    created_at: seconds(task.createdAtMs),
    in_progress_at: facts.end === 'failed' ? null : seconds(task.createdAtMs),
    expires_at: seconds(facts.expiresAtMs),
    finalizing_at: facts.end === null || facts.end === 'failed' ? null : seconds(facts.endedAtMs),
    completed_at: endedAt('completed'),
    failed_at: endedAt('failed'),
    expired_at: endedAt('expired'),
    cancelling_at: seconds(facts.cancellingAtMs),
    cancelled_at: endedAt('cancelled'),
    request_counts: { total: facts.total, completed: answered, failed },
    usage: usageObject(task.details.usage as Usage | undefined),
    metadata: facts.metadata === null ? null : (JSON.parse(facts.metadata) as unknown),
    ...(task.details.cost === undefined ? {} : { cost: task.details.cost }),
  }
}

function statusOf(task: TaskRecord): string {
  const { end } = factsOf(task)
  if (end !== null) return end
  switch (task.state) {
    case 'submitting':
    case 'unknown':
      return 'validating'
    case 'queued':
    case 'in_progress':
      return isCancelling(task) ? 'cancelling' : 'in_progress'
    default:
      return task.state
  }
}

function usageObject(usage: Usage | undefined): object | null {
  if (usage === undefined) return null
  const { inputTokens = 0, outputTokens = 0, cachedInputTokens = 0, reasoningTokens = 0 } = usage
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedInputTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
  }
}

function seconds(timeMs: number | null): number | null {
  return timeMs === null ? null : Math.floor(timeMs / 1_000)
}

/** Webhook message about the end of a batch (OpenAI webhooks, `batch.completed` and related types). */
export const BATCH_MESSAGE: TaskMessage = {
  eventType: (state, task) => `batch.${factsOf(task).end ?? state}`,
  eventData: ({ id }) => ({ id }),
}

/** Formats a charge for records. */
export function costOf(amount: bigint | undefined): { readonly cost?: string } {
  return amount === undefined ? {} : { cost: formatDollars(amount) }
}
