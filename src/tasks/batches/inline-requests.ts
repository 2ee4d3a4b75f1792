import { GatewayError } from '../../core/errors.ts'
import { publicUrl } from '../../core/public-url.ts'
import { pageSizeOf } from '../../endpoints/file-dialect.ts'
import { checkEndpointScope } from '../../pipeline/caller-rights.ts'
import type { PipelineContext } from '../../pipeline/pipeline-context.ts'
import { respondJson } from '../../pipeline/respond.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../../stores/task-store.ts'
import { isTaskId, pageOf } from '../task-requests.ts'
import { factsOf, isInline } from './batch-record.ts'
import { type BatchService, respondSubmitted } from './batch-requests.ts'
import { cancelBatch } from './cancel-batch.ts'
import { checkCaller, findFile, sendPieces } from './file-requests.ts'
import { inlineState } from './inline-record.ts'
import { inlineResults } from './inline-results.ts'
import { type InlineBatchRequest, submitInline } from './submit-inline.ts'

/**
 * Answers a request about the batches of an endpoint's own API, whose requests come with the submission. In all other respects
 * they work like batches from files. An account sees only its own batches; foreign, unknown, deleted and malformed ids get
 * identical responses.
 * @throws GatewayError `permission_denied` for a key that may not use batches or the endpoint, `batch_not_found`,
 *   `batch_not_ended`, `task_not_cancellable`, `file_not_found` for results that are gone, `rate_limited`, the errors of {@link
 *   submitInline}, and `store_unavailable`.
 */
export async function serveInlineBatchRequest(
  context: PipelineContext,
  service: BatchService,
  asked: InlineBatchRequest,
): Promise<void> {
  const { request, sink, requestId, principal, segments, endpoint, dialect } = asked
  await checkCaller(context, principal)
  checkEndpointScope(principal, endpoint.id)
  try {
    const [id, action] = segments
    if (id === undefined) {
      if (request.method !== 'POST') return respondJson(sink, requestId, await listBatches(context, service, asked))
      return respondSubmitted(service, asked, await submitInline(context, service.settings, asked))
    }
    const task = await findBatch(context, asked, id)
    if (action === 'results') return await sendResults(context, service, asked, task)
    if (request.method === 'DELETE') {
      await deleteBatch(context, service, task)
      return respondJson(sink, requestId, dialect.deleted(task.id))
    }
    const found = action === 'cancel' ? await cancelBatch(context, service.runner, task) : task
    respondJson(sink, requestId, dialect.record(stateOf(context, service, asked, found)))
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? cause : new GatewayError('store_unavailable', { cause })
  }
}

function isOwn({ endpoint }: InlineBatchRequest, task: TaskRecord): boolean {
  if (!isInline(task)) return false
  const { endpoint: path, deletedAtMs } = factsOf(task)
  return path === endpoint.path && deletedAtMs === null
}

async function findBatch({ store }: PipelineContext, asked: InlineBatchRequest, id: string): Promise<TaskRecord> {
  const { principal, dialect } = asked
  const isId = id.startsWith(`${dialect.idPrefix}_`) && isTaskId(id)
  const task = isId ? await store.tasks.find(principal.accountId, id) : undefined
  // Stores also find tasks by the ids of vendors.
  if (task?.id !== id || !isOwn(asked, task)) throw new GatewayError('batch_not_found')
  return task
}

function stateOf(
  { clock }: PipelineContext,
  { settings }: BatchService,
  { request, dialect }: InlineBatchRequest,
  task: TaskRecord,
) {
  const { end, endedAtMs } = factsOf(task)
  if (end === null || endedAtMs === null) return inlineState(task, clock.now())
  const url = publicUrl(request, `${dialect.path}/${task.id}/results`)
  return inlineState(task, clock.now(), { url, untilMs: endedAtMs + settings.retentionMs })
}

async function listBatches(
  context: PipelineContext,
  service: BatchService,
  asked: InlineBatchRequest,
): Promise<object> {
  const { principal, request, dialect } = asked
  const parameters = new URLSearchParams(request.query)
  const page = await pageOf(context, principal.accountId, (task) => isOwn(asked, task), {
    limit: pageSizeOf(parameters, Math.min(20, dialect.maxPage), dialect.maxPage),
    after: parameters.get(dialect.cursors.after) ?? undefined,
    before: parameters.get(dialect.cursors.before) ?? undefined,
  })
  const batches = page.tasks.map((task) => stateOf(context, service, asked, task))
  return dialect.list({ batches, hasMore: page.hasMore })
}

/** Results are deleted first: if the deletion is interrupted, it can be requested again. */
async function deleteBatch(context: PipelineContext, { settings }: BatchService, task: TaskRecord): Promise<void> {
  assertEnded(task)
  for (const id of fileIdsOf(task)) {
    await settings.files.delete(task.accountId, id)
    await settings.blobs.delete(id)
  }
  const nowMs = context.clock.now()
  const details = { ...task.details, facts: { ...factsOf(task), deletedAtMs: nowMs } }
  await context.store.tasks.change({ id: task.id, from: [task.state], set: { details } }, nowMs)
}

async function sendResults(
  context: PipelineContext,
  { settings }: BatchService,
  { sink, requestId, principal, dialect }: InlineBatchRequest,
  task: TaskRecord,
): Promise<void> {
  assertEnded(task)
  const fileIds = fileIdsOf(task)
  if (fileIds.length === 0) throw new GatewayError('file_not_found')
  for (const id of fileIds) await findFile(context, settings, principal.accountId, id)
  const headers = ['content-type', dialect.resultsType, 'x-request-id', requestId]
  // The text comes from callers and vendors, so no browser should treat it as a page.
  headers.push('x-content-type-options', 'nosniff', 'content-disposition', 'attachment')
  await sendPieces(sink, headers, inlineResults(settings, dialect, fileIds))
}

function fileIdsOf(task: TaskRecord): readonly string[] {
  const { outputFileId, errorFileId } = factsOf(task)
  return [outputFileId, errorFileId].filter((id) => id !== null)
}

function assertEnded({ state }: TaskRecord): void {
  if (OPEN_TASK_STATES.includes(state)) throw new GatewayError('batch_not_ended')
}
