import { DetailedError } from '../../core/detailed-error.ts'
import { GatewayError } from '../../core/errors.ts'
import { bodyPieces } from '../../core/exchange.ts'
import { isJsonObject, parseCallerJson } from '../../core/json.ts'
import { publicUrl } from '../../core/public-url.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import type { InlineBatches } from '../../endpoints/inline-batches.ts'
import { streamedClaimOf } from '../../pipeline/parse.ts'
import type { PipelineContext } from '../../pipeline/pipeline-context.ts'
import { StoredReplay } from '../../pipeline/reserve.ts'
import { respondJson, respondReplay } from '../../pipeline/respond.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../../stores/task-store.ts'
import { isTaskId, pageOf } from '../task-requests.ts'
import { type LineFault, TOO_LONG, type WrittenRequest } from './batch-lines.ts'
import { factsOf, isInline } from './batch-record.ts'
import { type BatchService, cancelBatch, requireJson, respondAccepted, webhookUrlOf } from './batch-requests.ts'
import { type BatchRequest, checkCaller, findFile, limitOf, sendPieces } from './file-requests.ts'
import { inlineState } from './inline-record.ts'
import { inlineResults } from './inline-results.ts'
import { ListSplitter } from './split-list.ts'
import { type BatchSubmission, submitBatch } from './submit-batch.ts'

/** Room for what a submission has beside its requests. */
const REST_BYTES = 64 * 1024

/** Most faults that stand in a message; its details have all that were found. */
const MOST_TOLD = 20

const INVALID = 'invalid_batch_request'

/** Codes of faults beside the body of a request. */
const OF_THE_REQUEST: ReadonlySet<string> = new Set([INVALID, 'duplicate_custom_id'])

/** The methods of a path below the batches of an endpoint; undefined: there is no such path. */
export function inlineBatchMethods(segments: readonly string[]): readonly string[] | undefined {
  const [id, action] = segments
  if (id === undefined) return ['GET', 'HEAD', 'POST']
  if (id === '' || segments.length > 2) return undefined
  if (action === undefined) return ['GET', 'HEAD', 'DELETE']
  if (action === 'cancel') return ['POST']
  return action === 'results' ? ['GET'] : undefined
}

/** A request about batches of an endpoint. */
export interface InlineBatchRequest extends BatchRequest {
  readonly endpoint: Endpoint
  readonly dialect: InlineBatches
}

/**
 * Answers a request about the batches of an endpoint's own API, whose requests come with the submission. They are those of files
 * in everything else. An account sees its own only; foreign, unknown, deleted and malformed ids get the same bytes.
 * @throws GatewayError `permission_denied` for a key that may not use batches or the endpoint, `batch_not_found`,
 *   `batch_not_ended`, `task_not_cancellable`, `file_not_found` for results that are gone, `rate_limited`, those of {@link submitBatch},
 *   and `store_unavailable`.
 */
export async function serveInlineBatchRequest(
  context: PipelineContext,
  service: BatchService,
  asked: InlineBatchRequest,
): Promise<void> {
  const { request, sink, requestId, principal, segments, endpoint, dialect } = asked
  await checkCaller(context, principal)
  if (principal.scopes?.endpoints?.includes(endpoint.id) === false) throw new GatewayError('permission_denied')
  try {
    const [id, action] = segments
    if (id === undefined) {
      if (request.method !== 'POST') return respondJson(sink, requestId, await listBatches(context, service, asked))
      const answer = await submitted(context, service, asked)
      if (answer instanceof StoredReplay) return respondReplay(sink, answer.answer, requestId)
      service.runner.wake()
      return respondAccepted(sink, requestId, answer)
    }
    const task = await findBatch(context, asked, id)
    if (action === 'results') return await sendResults(context, service, asked, task)
    if (request.method === 'DELETE') {
      await deleteBatch(context, service, task)
      return respondJson(sink, requestId, dialect.deleted(task.id))
    }
    const found = action === 'cancel' ? await cancelBatch(context, service, task) : task
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
  // A store finds tasks by the ids of vendors, too.
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
    limit: limitOf(parameters, Math.min(20, dialect.maxPage), dialect.maxPage),
    after: parameters.get(dialect.cursors.after) ?? undefined,
    before: parameters.get(dialect.cursors.before) ?? undefined,
  })
  const batches = page.tasks.map((task) => stateOf(context, service, asked, task))
  return dialect.list({ batches, hasMore: page.hasMore })
}

/** What a batch made is deleted first: if that is cut short, it can be asked for again. */
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
  // Text of callers and vendors, which no browser should take for a page.
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

async function submitted(
  context: PipelineContext,
  { settings }: BatchService,
  { request, requestId, principal, endpoint, dialect }: InlineBatchRequest,
): ReturnType<typeof submitBatch> {
  requireJson(request, principal)
  const claim = streamedClaimOf(context, request, principal.accountId)
  const maxItemBytes = context.bodyLimitBytes
  const { listMember: member } = dialect
  const splitter = new ListSplitter({ member, maxItemBytes, maxRestBytes: REST_BYTES })
  let webhookUrl: unknown
  async function* requests(): BatchSubmission['requests'] {
    let line = 0
    for await (const piece of bodyPieces(request, settings.maxFileBytes)) {
      claim?.add(piece)
      for (const item of splitter.push(piece)) {
        yield { line, request: readItem(dialect, item, { line, maxBytes: maxItemBytes }) }
        line++
      }
    }
    webhookUrl = readRest(dialect, splitter.rest())
  }
  return await submitBatch(context, settings, {
    endpoint,
    principal,
    requestId,
    idPrefix: dialect.idPrefix,
    inputFileId: null,
    metadata: null,
    requests: requests(),
    rest: async () => ({
      claim: claim?.end(),
      webhookUrl: await webhookUrlOf(context, principal.accountId, webhookUrl),
    }),
    refusal: (faults) => refusalOf(dialect, faults),
  })
}

/** @throws GatewayError `invalid_json`: one item that is none makes the whole text none. */
function readItem(
  dialect: InlineBatches,
  item: Uint8Array | typeof TOO_LONG,
  { line, maxBytes }: { readonly line: number; readonly maxBytes: number },
): WrittenRequest | LineFault {
  const fault = (code: string, param: string | null, message: string): LineFault => ({ code, line, message, param })
  if (item === TOO_LONG) return fault('request_too_large', null, `has more than ${maxBytes} bytes`)
  let value: unknown
  try {
    value = parseCallerJson(item)
  } catch (cause) {
    const error = GatewayError.from(cause)
    if (error.code === 'invalid_json') throw error
    return fault(error.publicCode, null, error.message)
  }
  const read = dialect.readRequest(value)
  return 'customId' in read ? read : fault(INVALID, read.param, read.reason)
}

/**
 * The address that is told of the end.
 * @throws GatewayError `invalid_json`, and `invalid_request` for a text that has no list of requests or an unknown member.
 */
function readRest({ listMember }: InlineBatches, rest: Uint8Array): unknown {
  const body = parseCallerJson(rest)
  if (!isJsonObject(body)) throw new GatewayError('invalid_request', { message: 'The request body: expected object' })
  const { [listMember]: list, webhook_url: webhookUrl, ...others } = body
  if (!Array.isArray(list)) throw invalid(listMember, 'expected a list')
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw invalid(unknown.slice(0, 64), 'is not known here')
  return webhookUrl
}

/** One error for all faults, each by the place of its request, counted from 0. */
function refusalOf({ listMember, bodyMember }: InlineBatches, faults: readonly LineFault[]): GatewayError {
  const errors = faults.map(({ line, code, message, param }) => {
    const own = param === null ? message : message.replace(`${param}: `, '')
    const inside = param === null ? '' : OF_THE_REQUEST.has(code) ? `.${param}` : `.${bodyMember}.${param}`
    const place = line === null ? listMember : `${listMember}.${line}${inside}`
    return { index: line, code, param: place, message: own }
  })
  const told = errors.slice(0, MOST_TOLD).map(({ param, message }) => `${param}: ${message}`)
  if (errors.length > MOST_TOLD) told.push(`and ${errors.length - MOST_TOLD} more`)
  return new DetailedError('invalid_request', { message: told.join('; '), param: errors[0]!.param }, { errors })
}

function invalid(param: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${reason}`, param })
}
