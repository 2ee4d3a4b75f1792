import { GatewayError } from '../../core/errors.ts'
import { type GatewayRequest, wholeBody } from '../../core/exchange.ts'
import { isJsonObject, parseCallerJson } from '../../core/json.ts'
import type { Endpoint } from '../../endpoints/endpoint.ts'
import { invalidField } from '../../endpoints/field-errors.ts'
import { pageSizeOf } from '../../endpoints/file-dialect.ts'
import { claimKey, replayOf } from '../../pipeline/idempotent-request.ts'
import { claimOf } from '../../pipeline/parse.ts'
import type { BatchSettings, PipelineContext } from '../../pipeline/pipeline-context.ts'
import { StoredReplay } from '../../pipeline/reserve.ts'
import { respondJson, respondReplay, respondWhole } from '../../pipeline/respond.ts'
import type { IdempotencyClaim } from '../../stores/idempotency-store.ts'
import type { Principal } from '../../stores/principal.ts'
import { OPEN_TASK_STATES, type TaskRecord } from '../../stores/task-store.ts'
import { checkPublicUrl } from '../../transport/egress.ts'
import { joinChunks } from '../../wire/chunks.ts'
import { mediaType } from '../../wire/headers.ts'
import { ensureWebhookSecret } from '../submit-task.ts'
import { listObject, pageOf } from '../task-requests.ts'
import { batchObject, isBatch, isInline, NO_OUTCOMES } from './batch-record.ts'
import { type BatchRunner, cancelBatch } from './batch-runner.ts'
import { askedLifetimeMs, type BatchRequest, checkCaller, findFile } from './files.ts'
import { linesOf, readLine } from './lines.ts'
import { type BatchSubmission, submitBatch } from './submit-batch.ts'

/** Settings and runner that requests about batches need. */
export interface BatchService {
  readonly settings: BatchSettings
  readonly runner: Pick<BatchRunner, 'wake' | 'cancelled'>
}

/**
 * Answers a request about batches. An account sees only its own batches; foreign, unknown and malformed ids get identical responses.
 * @throws GatewayError `permission_denied` for a key that may not use batches, `batch_not_found`, `rate_limited`, the errors of
 *   {@link submitBatch}, and `store_unavailable`.
 */
export async function serveBatchRequest(
  context: PipelineContext,
  service: BatchService,
  asked: BatchRequest,
): Promise<void> {
  const { request, sink, requestId, principal, segments } = asked
  await checkCaller(context, principal)
  try {
    const [id, action] = segments
    if (id === undefined) {
      if (request.method !== 'POST') return respondJson(sink, requestId, await listBatches(context, service, asked))
      return respondSubmitted(service, asked, await submitted(context, service, asked))
    }
    const task = await findBatch(context, principal.accountId, id)
    const found = action === 'cancel' ? await cancelBatch(context, service.runner, task) : task
    respondJson(sink, requestId, await shown(service, found))
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? cause : new GatewayError('store_unavailable', { cause })
  }
}

/** Sends the answer to a submission, and starts the batch. */
export function respondSubmitted(
  { runner }: BatchService,
  { sink, requestId }: BatchRequest,
  answer: Awaited<ReturnType<typeof submitBatch>>,
): void {
  if (answer instanceof StoredReplay) respondReplay(sink, answer.answer, requestId)
  else {
    runner.wake()
    const { status, headers, body } = answer
    const all = [...headers, 'content-length', String(body.byteLength), 'x-request-id', requestId]
    respondWhole(sink, { status, headers: all }, [body])
  }
}

const isOfFiles = (task: TaskRecord): boolean => isBatch(task) && !isInline(task)

const OWN_ID = /^batch_[A-Za-z0-9_-]{1,120}$/

async function findBatch({ store }: PipelineContext, accountId: string, id: string): Promise<TaskRecord> {
  const task = OWN_ID.test(id) ? await store.tasks.find(accountId, id) : undefined
  if (task === undefined || !isOfFiles(task)) throw new GatewayError('batch_not_found')
  return task
}

async function shown({ settings }: BatchService, task: TaskRecord): Promise<object> {
  const tally = OPEN_TASK_STATES.includes(task.state) ? await settings.outcomes.tally(task.id) : NO_OUTCOMES
  return batchObject(task, tally)
}

async function listBatches(context: PipelineContext, service: BatchService, asked: BatchRequest): Promise<object> {
  const parameters = new URLSearchParams(asked.request.query)
  const limit = pageSizeOf(parameters, 20, 100)
  const after = parameters.get('after') ?? undefined
  const page = await pageOf(context, asked.principal.accountId, isOfFiles, { limit, after, before: undefined })
  const data = await Promise.all(page.tasks.map((task) => shown(service, task)))
  return listObject(data, page.hasMore, page.tasks)
}

async function submitted(
  context: PipelineContext,
  service: BatchService,
  asked: BatchRequest,
): ReturnType<typeof submitBatch> {
  const { request, requestId, principal } = asked
  requireJson(request, principal)
  const bytes = joinChunks(await wholeBody(request, context.bodyLimitBytes))
  const claim = claimOf(context, request, { accountId: principal.accountId, requestId }, bytes)
  return (await earlierAnswer(context, claim)) ?? (await submittedFile(context, service, asked, { bytes, claim }))
}

/**
 * Returns the answer to an earlier request with the same Idempotency-Key, whatever happened to its file and to the account's
 * other batches since, or `undefined` if there is none. The key stays free: it is claimed together with the hold.
 * @throws GatewayError `idempotency_in_flight` and `idempotency_mismatch`.
 */
async function earlierAnswer(
  context: PipelineContext,
  claim: IdempotencyClaim | undefined,
): Promise<StoredReplay | undefined> {
  if (claim === undefined) return undefined
  const result = await claimKey(context, claim)
  if (result.status !== 'claimed') return new StoredReplay(replayOf(result))
  await context.store.idempotency.release(claim)
  return undefined
}

async function submittedFile(
  context: PipelineContext,
  { settings }: BatchService,
  { requestId, principal }: BatchRequest,
  { bytes, claim }: { readonly bytes: Uint8Array; readonly claim: IdempotencyClaim | undefined },
): ReturnType<typeof submitBatch> {
  const body = parseCallerJson(bytes)
  if (!isJsonObject(body)) throw invalidField('body', 'expected an object')
  const { input_file_id: inputFileId, endpoint: path, completion_window: window, metadata, webhook_url: url } = body
  const outputLifetimeMs = outputLifetimeOf(body)
  if (typeof inputFileId !== 'string') throw invalidField('input_file_id', 'expected the id of a file')
  if (window !== '24h') throw invalidField('completion_window', 'must be 24h')
  const endpoint = batchEndpoint(context, path)
  const webhookUrl = await webhookUrlOf(context, principal.accountId, url)
  const file = await findFile(context, settings, principal.accountId, inputFileId)
  if (file.purpose !== 'batch') throw invalidField('input_file_id', 'the purpose of the file must be batch')
  const blob = await settings.blobs.get(file.id)
  if (blob === undefined) throw new GatewayError('file_not_found')
  return await submitBatch(context, settings, {
    endpoint,
    principal,
    requestId,
    idPrefix: 'batch',
    inputFileId: file.id,
    metadata: metadataText(metadata),
    outputLifetimeMs,
    rest: () => ({ claim, webhookUrl }),
    requests: numbered(blob.content, endpoint.path, context.bodyLimitBytes),
  })
}

/**
 * Checks that the caller may submit a batch, and that the body is JSON.
 * @throws GatewayError `account_frozen`, `unsupported_media_type`.
 */
export function requireJson(request: GatewayRequest, { isFrozen }: Principal): void {
  if (isFrozen === true) throw new GatewayError('account_frozen')
  if (mediaType(request.header('content-type')) !== 'application/json')
    throw new GatewayError('unsupported_media_type', { message: 'Send the body as Content-Type: application/json.' })
}

async function* numbered(
  content: AsyncIterable<Uint8Array>,
  endpoint: string,
  maxBytes: number,
): BatchSubmission['requests'] {
  let line = 0
  for await (const bytes of linesOf(content, maxBytes)) {
    const request = readLine(bytes, ++line, { endpoint, maxBytes })
    if (request !== undefined) yield { line, request }
  }
}

function batchEndpoint({ endpoints }: PipelineContext, path: unknown): Endpoint {
  const endpoint = typeof path === 'string' ? endpoints.at(path) : undefined
  if (endpoint?.isBatchable === true) return endpoint
  const known = endpoints.all.filter(({ isBatchable }) => isBatchable === true).map((candidate) => candidate.path)
  throw invalidField('endpoint', `must be one of ${known.join(', ')}`)
}

/**
 * Returns the caller's webhook address for the end of the batch.
 * @throws GatewayError `invalid_request` if the address cannot be called.
 */
export async function webhookUrlOf(
  context: PipelineContext,
  accountId: string,
  url: unknown,
): Promise<string | undefined> {
  if (url === undefined || url === null) return undefined
  if (typeof url !== 'string') throw invalidField('webhook_url', 'expected a URL')
  const check = checkPublicUrl(url, { allowPrivate: context.allowPrivateUrls })
  if ('reason' in check) throw invalidField('webhook_url', check.reason)
  await ensureWebhookSecret(context, accountId, url)
  return new URL(url).href
}

function outputLifetimeOf({ output_expires_after: asked }: Readonly<Record<string, unknown>>): number | undefined {
  if (asked === undefined || asked === null) return undefined
  const { anchor, seconds } = isJsonObject(asked) ? asked : {}
  return askedLifetimeMs({ anchor, seconds }, (member) => `output_expires_after.${member}`)
}

const MAX_METADATA = 16
const MAX_METADATA_NAME = 64
const MAX_METADATA_VALUE = 512

function metadataText(metadata: unknown): string | null {
  if (metadata === undefined || metadata === null) return null
  const entries = isJsonObject(metadata) ? Object.entries(metadata) : undefined
  const isFit =
    entries !== undefined &&
    entries.length <= MAX_METADATA &&
    entries.every(
      ([name, value]) =>
        name.length <= MAX_METADATA_NAME && typeof value === 'string' && value.length <= MAX_METADATA_VALUE,
    )
  if (!isFit)
    throw invalidField('metadata', `expected at most ${MAX_METADATA} texts of at most ${MAX_METADATA_VALUE} characters`)
  return JSON.stringify(metadata)
}
