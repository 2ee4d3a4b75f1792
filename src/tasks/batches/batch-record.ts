import type { Usage } from '../../core/usage.ts'
import type { InlineBatchCounts, InlineBatchState } from '../../endpoints/batches.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import type { Admitted } from '../../pipeline/call-record.ts'
import type { BatchSettings, PipelineContext } from '../../pipeline/pipeline-context.ts'
import type { PricedRequest } from '../../pipeline/pricing.ts'
import {
  FREE_MONEY_DIVISOR,
  MIN_CHOSEN_TOKENS,
  outputFit,
  SHARE_DIVISOR,
  type UnboundedRequest,
} from '../../pipeline/reserve.ts'
import type { BatchOutcome, BatchStore, BatchTally } from '../../stores/file-store.ts'
import { OPEN_TASK_STATES, type TaskFacts, type TaskRecord } from '../../stores/task-store.ts'
import type { TaskKind } from '../webhook-payload.ts'

/** Credential id of batches, which the gateway runs itself. No credential id of a vendor starts this way. */
export const BATCH_CREDENTIAL_ID = '-batches'

/** How long an expired batch stays open if no process runs it: the next process that does charges its answers. */
export const MAX_WAIT_MS = 365 * 24 * 60 * 60_000

/** How a batch ends after at least one request was sent. */
export type BatchEnd = 'completed' | 'expired' | 'cancelled'

/** Why no more requests of a batch are started. */
export type StopReason = 'expired' | 'cancelled' | 'put-back'

/** Batch that this process holds. */
export interface BatchJob {
  readonly context: PipelineContext
  readonly settings: BatchSettings
  readonly task: TaskRecord
  readonly endpoint: Endpoint
}

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

/** Number of outcomes with and without text per page. */
const PAGE = 100
const LINES_PAGE = 5_000

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

/**
 * Output limit of batch requests that set none: each model's longest answer, or a number of tokens from 0, the shortest useful
 * answer, to 1,000,000, the usual limit.
 */
export type BatchBound = 'longest' | number

const USUAL = 1_000_000

/** Cost of requests at three output limits, in nano-dollars. Requests with their own limit cost the same at each. */
export interface BoundCosts {
  readonly shortest: bigint
  readonly usual: bigint
  readonly longest: bigint
}

export const NO_COSTS: BoundCosts = { shortest: 0n, usual: 0n, longest: 0n }

/** Returns the costs of one request. */
export function boundCosts({ amount }: PricedRequest, unbounded: UnboundedRequest | undefined): BoundCosts {
  if (unbounded === undefined) return { shortest: amount, usual: amount, longest: amount }
  const { usual, longest = usual } = unbounded
  const shortest = unbounded.bounded(shortestOf(unbounded))
  return { shortest: shortest.priced.amount, usual: usual.priced.amount, longest: longest.priced.amount }
}

/** Costs in the form that the plan of a batch stores: one string if all are equal. */
export function writtenCosts({ shortest, usual, longest }: BoundCosts): readonly string[] {
  return shortest === longest ? [`${usual}`] : [`${shortest}`, `${usual}`, `${longest}`]
}

export function readCosts([shortest = '0', usual = shortest, longest = usual]: readonly string[]): BoundCosts {
  return { shortest: BigInt(shortest), usual: BigInt(usual), longest: BigInt(longest) }
}

export function addCosts(one: BoundCosts, other: BoundCosts): BoundCosts {
  return {
    shortest: one.shortest + other.shortest,
    usual: one.usual + other.usual,
    longest: one.longest + other.longest,
  }
}

/**
 * Chooses one output limit for a batch by the rules of a single call: the longest answers if they cost at most 2 % of the free
 * money, else the usual limit if it costs at most half of that money, else what half of it pays for. The shortest answers
 * may cost more than the free money; then the hold is rejected.
 */
export function chooseBatchBound(costs: BoundCosts, freeMoney: bigint | undefined): BatchBound {
  const { shortest, usual, longest } = costs
  if (freeMoney === undefined || longest * FREE_MONEY_DIVISOR <= freeMoney) return 'longest'
  const budget = freeMoney / SHARE_DIVISOR
  if (usual <= budget) return USUAL
  return shortest >= budget ? 0 : Number(((budget - shortest) * BigInt(USUAL)) / (usual - shortest))
}

/** Cost at a limit. The price of an answer grows linearly with its tokens, so this is the maximum cost of a limit in between. */
export function costAtBound({ shortest, usual, longest }: BoundCosts, bound: BatchBound): bigint {
  if (bound === 'longest') return longest
  return shortest + ((usual - shortest) * BigInt(bound) + BigInt(USUAL) - 1n) / BigInt(USUAL)
}

/** Limits the answer of a batch request. Returns the price of the request with that limit. */
export function applyBatchBound(admitted: Admitted, unbounded: UnboundedRequest, bound: BatchBound): PricedRequest {
  const { usual, longest = usual } = unbounded
  const shortest = shortestOf(unbounded)
  const bounded =
    bound === 'longest'
      ? longest
      : unbounded.bounded(shortest + Math.floor(((usual.tokens - shortest) * bound) / USUAL))
  admitted.fitted(outputFit(admitted, bounded))
  return bounded.priced
}

function shortestOf({ usual }: UnboundedRequest): number {
  return Math.min(MIN_CHOSEN_TOKENS, usual.tokens)
}

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

/** Lifetime of outcomes if their deletion at the end of the batch fails. */
const OUTCOMES_KEPT_MS = MAX_WAIT_MS + 30 * 24 * 60 * 60_000

/** Unix milliseconds from which the outcomes of a batch may be purged. */
export function outcomesExpireAtMs(task: TaskRecord): number {
  return factsOf(task).expiresAtMs + OUTCOMES_KEPT_MS
}

/** Stores the outcome of a request. Returns `false` if it has one. */
export async function keepOutcome({ settings, task }: BatchJob, outcome: BatchOutcome): Promise<boolean> {
  return await settings.outcomes.add(task.id, outcome, outcomesExpireAtMs(task))
}

/** Returns the lines of the requests that have an outcome. */
export async function endedLines({ outcomes }: BatchSettings, batchId: string): Promise<Set<number>> {
  const ended = new Set<number>()
  for (let after = -1; ; ) {
    const lines = await outcomes.lines(batchId, after, LINES_PAGE)
    for (const line of lines) ended.add(line)
    if (lines.length < LINES_PAGE) return ended
    after = lines.at(-1)!
  }
}

/** Yields all outcomes in order. */
export async function* outcomesOf(outcomes: BatchStore, batchId: string): AsyncIterable<BatchOutcome> {
  for (let after = -1; ; ) {
    const page = await outcomes.page(batchId, after, PAGE)
    yield* page
    if (page.length < PAGE) return
    after = page.at(-1)!.line
  }
}

/** Batches as tasks. Their webhooks are OpenAI's (`batch.completed` and related types). */
export const batchTasks: TaskKind = {
  receiptStatus: 200,
  receipt({ endpoints, clock }, task) {
    const dialect = isInline(task) ? endpoints.at(factsOf(task).endpoint)?.inlineBatches : undefined
    return dialect?.record(inlineState(task, clock.now())) ?? batchObject(task, NO_OUTCOMES)
  },
  message: () => ({
    eventType: (state, task) => `batch.${factsOf(task).end ?? state}`,
    eventData: ({ id }) => ({ id }),
  }),
  async costOfParts({ store }, { id }) {
    let amount = 0n
    if (store.batches !== undefined) for await (const outcome of outcomesOf(store.batches, id)) amount += outcome.amount
    return amount
  },
}
