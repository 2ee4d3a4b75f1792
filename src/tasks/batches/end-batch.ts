import { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import { addUsage, type Usage } from '../../core/usage.ts'
import type { BatchSettings, PipelineContext } from '../../pipeline/pipeline-context.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../../stores/task-store.ts'
import { chargedEnd, commit, POLLED_STATES, type WakeWebhooks } from '../update-task.ts'
import { type BatchEnd, factsOf, isCancelling, outcomesOf } from './batch-record.ts'
import { journalId, linesId, type PlannedRequest, planId, plannedRequests } from './lines.ts'
import { outcomeId } from './request-run.ts'

/** Error codes of requests that were never executed. */
export const CANCELLED = 'batch_cancelled'
export const EXPIRED = 'batch_expired'

/** Number of outcomes that are deleted at a time. */
const PAGE = 100

/** Totals of the outcomes of a batch. */
interface Sums {
  answered: number
  notMade: number
  usage: Usage
  amount: bigint
}

/**
 * Writes the files of a batch and ends it: exactly the answered requests are charged, once, in the transaction of the end. A
 * process that dies in between leaves files only. The next process that takes the batch replaces them, because their ids are the same.
 */
export async function endBatch(
  context: PipelineContext,
  settings: BatchSettings,
  task: TaskRecord,
  { end, wake, vendor }: { readonly end: BatchEnd; readonly wake: WakeWebhooks; readonly vendor?: string | undefined },
): Promise<void> {
  const sums: Sums = { answered: 0, notMade: 0, usage: {}, amount: 0n }
  const suffix = task.id.slice(task.id.indexOf('_') + 1)
  const outputFileId = await writeFile(context, settings, task, {
    id: `file_${suffix}_output`,
    name: 'output',
    lines: answeredLines(settings, task, sums),
  })
  const errorFileId = await writeFile(context, settings, task, {
    id: `file_${suffix}_errors`,
    name: 'errors',
    lines: failedLines(settings, task, end, sums),
  })
  const { answered, notMade, usage, amount } = sums
  const nowMs = context.clock.now()
  const old = factsOf(task)
  const files = { outputFileId, errorFileId }
  const facts = { ...old, ...files, answered, notMade, failed: old.total - answered, end, endedAtMs: nowMs }
  const { deferred: _done, ...kept } = task.details
  const details = { ...kept, facts, usage, vendor: vendor ?? kept.vendor }
  const state = end === 'cancelled' ? 'cancelled' : 'completed'
  const charge = { usage, amount: task.holdId === undefined ? undefined : amount }
  await commit(context, task, chargedEnd(task, { state, nowMs, details }, charge), wake)
  await cleanUp(settings, task.id)
}

/** Deletes data that a finished batch no longer needs. */
export async function cleanUp({ blobs, outcomes }: BatchSettings, batchId: string): Promise<void> {
  await blobs.delete(planId(batchId))
  await blobs.delete(linesId(batchId))
  for (const id of [batchId, journalId(batchId)]) while ((await outcomes.delete(id, PAGE)) > 0);
}

/** Writes no file if there are no lines. */
async function writeFile(
  { clock }: PipelineContext,
  { blobs, files, retentionMs }: BatchSettings,
  task: TaskRecord,
  file: { readonly id: string; readonly name: string; readonly lines: AsyncIterable<string> },
): Promise<string | null> {
  const { id: batchId, accountId } = task
  const createdAtMs = clock.now()
  const expiresAtMs = createdAtMs + Math.min(factsOf(task).outputLifetimeMs ?? retentionMs, retentionMs)
  const byteLength = await blobs.put({ id: file.id, expiresAtMs }, bytesOf(file.lines))
  if (byteLength === 0) {
    await blobs.delete(file.id)
    return null
  }
  const filename = `${batchId}_${file.name}.jsonl`
  await files.save({ id: file.id, accountId, purpose: 'batch_output', filename, byteLength, createdAtMs, expiresAtMs })
  return file.id
}

async function* bytesOf(lines: AsyncIterable<string>): AsyncIterable<Uint8Array> {
  for await (const line of lines) yield Buffer.from(`${line}\n`)
}

async function* answeredLines(settings: BatchSettings, { id }: TaskRecord, sums: Sums): AsyncIterable<string> {
  for await (const outcome of outcomesOf(settings.outcomes, id)) {
    sums.amount += outcome.amount
    if (outcome.usage !== undefined) sums.usage = addUsage(sums.usage, outcome.usage)
    if (!outcome.isAnswered) continue
    sums.answered++
    yield outcome.text
  }
}

/** Yields errors, and requests that were never executed. */
async function* failedLines(
  settings: BatchSettings,
  { id }: TaskRecord,
  end: BatchEnd,
  sums: Sums,
): AsyncIterable<string> {
  const outcomes = outcomesOf(settings.outcomes, id)[Symbol.asyncIterator]()
  let next = await outcomes.next()
  for await (const { line, planned } of plannedRequests(settings, id)) {
    while (!next.done && next.value.line < line) next = await outcomes.next()
    if (next.done || next.value.line !== line) {
      sums.notMade++
      yield notMadeLine(id, line, planned, end)
    } else if (!next.value.isAnswered) yield next.value.text
  }
}

function notMadeLine(batchId: string, line: number, { id: customId }: PlannedRequest, end: BatchEnd): string {
  const error =
    end === 'cancelled'
      ? { code: CANCELLED, message: 'This request was not executed because the batch was cancelled.' }
      : {
          code: EXPIRED,
          message: 'This request could not be executed before the completion window expired.',
        }
  return JSON.stringify({ id: outcomeId(batchId, line), custom_id: customId, response: null, error })
}

/**
 * Starts no more requests; those in flight end normally and are charged.
 * @throws GatewayError `task_not_cancellable` for a batch that has ended.
 */
export async function cancelBatch(
  context: PipelineContext,
  runner: { cancelled(batchId: string): void },
  task: TaskRecord,
): Promise<TaskRecord> {
  const { clock, store } = context
  if (!OPEN_TASK_STATES.includes(task.state))
    throw new GatewayError('task_not_cancellable', {
      message: `A batch with status ${factsOf(task).end} cannot be cancelled.`,
    })
  if (isCancelling(task)) return task
  const nowMs = clock.now()
  const details = { ...task.details, facts: { ...factsOf(task), cancellingAtMs: nowMs } }
  // A queued batch may be started and put back several times, which keeps its details.
  const from = POLLED_STATES.includes(task.state) ? POLLED_STATES : [task.state]
  const isMade = await store.tasks.change({ id: task.id, from, set: { details, updatedAtMs: nowMs } }, nowMs)
  const now = await store.tasks.find(task.accountId, task.id)
  if (now === undefined) return task
  // The batch was accepted or ended in between.
  if (!isMade) return await cancelBatch(context, runner, now)
  runner.cancelled(task.id)
  return now
}
