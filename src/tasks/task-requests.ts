import { GatewayError } from '../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { invalidField } from '../endpoints/field-errors.ts'
import type { TaskBehaviour } from '../endpoints/task.ts'
import { checkEndpointScope } from '../pipeline/authenticate.ts'
import { type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import { countReading, respondJson } from '../pipeline/respond.ts'
import type { Principal } from '../stores/principal.ts'
import type { TaskPage, TaskRecord } from '../stores/task-store.ts'
import type { WebhookDelivery } from '../stores/webhook-store.ts'
import { checkPublicUrl } from '../transport/egress.ts'
import { firstHeader, type HeaderMap, mediaType } from '../wire/headers.ts'
import { cancelAtVendor, vendorOf } from './call-vendor.ts'
import { Download, DownloadError, sendPieces } from './download.ts'
import { TASK_LEASE_MS } from './task-worker.ts'
import { commit, endTask, POLLED_STATES, refreshTask, type WakeWebhooks } from './update-task.ts'

/** Actions on one task and their methods, by the path below `…/{id}`. `read` is the task itself. */
export const TASK_ACTIONS = {
  read: ['GET', 'HEAD'],
  cancel: ['POST'],
  content: ['GET'],
  webhooks: ['GET', 'HEAD'],
  'webhooks/resend': ['POST'],
} as const

/** Action on one task. */
export type TaskAction = keyof typeof TASK_ACTIONS

/** Request about tasks of one endpoint, from an authenticated caller. */
export interface TaskRequest {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly requestId: string
  readonly principal: Principal
  readonly endpoint: Endpoint
  /** Task and action, or `undefined` for the list of tasks. */
  readonly target: { readonly taskId: string; readonly action: TaskAction } | undefined
  readonly wakeWebhooks: WakeWebhooks
}

/**
 * Answers a request about tasks. An account sees only its own tasks; foreign, unknown and malformed ids get identical responses.
 * @throws GatewayError as the actions do, `permission_denied` for a key that may not use the endpoint of the tasks, `rate_limited`,
 *   and `store_unavailable`.
 */
export async function serveTaskRequest(context: PipelineContext, asked: TaskRequest): Promise<void> {
  const { principal, endpoint } = asked
  checkEndpointScope(principal, endpoint.id)
  await countReading(context, principal)
  try {
    await answer(context, asked)
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? cause : new GatewayError('store_unavailable', { cause })
  }
}

async function answer(context: PipelineContext, asked: TaskRequest): Promise<void> {
  const { request, sink, requestId, principal, endpoint, target, wakeWebhooks } = asked
  const { accountId } = principal
  const { task: behaviour } = endpoint
  if (behaviour === undefined) throw new GatewayError('task_not_found')
  if (target === undefined)
    return respondJson(sink, requestId, await listTasks(context, accountId, endpoint.id, behaviour, request.query))
  const task = await findTask(context, accountId, endpoint.id, target.taskId)
  switch (target.action) {
    case 'read':
      return respondJson(sink, requestId, behaviour.record(await upToDate(context, task, wakeWebhooks)))
    case 'cancel':
      return respondJson(sink, requestId, behaviour.record(await cancelTask(context, task, wakeWebhooks)))
    case 'content':
      return await sendContent(context, asked, await upToDate(context, task, wakeWebhooks))
    case 'webhooks':
      return respondJson(sink, requestId, await deliveryList(context, accountId, task.id))
    case 'webhooks/resend': {
      const { webhooks } = context.store
      const nowMs = context.clock.now()
      for (const delivery of await webhooks.list(accountId, task.id))
        await webhooks.resend(accountId, delivery.id, nowMs)
      wakeWebhooks()
      return respondJson(sink, requestId, await deliveryList(context, accountId, task.id))
    }
  }
}

/** Format of an id in a path: the gateway's or a vendor's. Any other id is unknown without a look-up in the store. */
const TASK_ID = /^[A-Za-z0-9_-]{1,128}$/

/** Whether a text may be the id of a task. */
export function isTaskId(text: string): boolean {
  return TASK_ID.test(text)
}

/** Finds an account's own task of an endpoint, by the gateway's id or the vendor's. */
async function findTask(
  context: PipelineContext,
  accountId: string,
  endpointId: string,
  id: string,
): Promise<TaskRecord> {
  const task = isTaskId(id) ? await context.store.tasks.find(accountId, id) : undefined
  if (task === undefined || task.details.endpoint !== endpointId) throw new GatewayError('task_not_found')
  return task
}

/**
 * Returns the task, after a poll at the vendor if that is due. Frequent reads do not increase the polling: if a task is not due,
 * beyond the vendor's budget, or leased to another process, the record is returned.
 */
async function upToDate(context: PipelineContext, task: TaskRecord, wake: WakeWebhooks): Promise<TaskRecord> {
  const nowMs = context.clock.now()
  const budget = vendorOf(context, task)?.operation.pollBudget
  if (budget === undefined || !POLLED_STATES.includes(task.state) || task.nextPollAtMs > nowMs) return task
  const { credentialId, id } = task
  try {
    const query = { credentialId, id, nowMs, leaseUntilMs: nowMs + TASK_LEASE_MS, limit: 1, budget }
    const [taken] = await context.store.tasks.leaseDue(query)
    return taken === undefined ? task : await refreshTask(context, taken, wake)
  } catch (error) {
    // The stored record is still a valid answer.
    reportFault(context, task.details.requestId, 'tasks', error)
    return task
  }
}

/**
 * Cancels a task that has not started, at the vendor first: only the vendor's confirmation releases the hold.
 * @throws GatewayError `task_not_cancellable` if it runs or has ended; `upstream_unavailable` if the vendor cannot be reached, or no
 *   key for it is configured.
 */
export async function cancelTask(context: PipelineContext, task: TaskRecord, wake: WakeWebhooks): Promise<TaskRecord> {
  if (task.state !== 'queued' || task.upstreamId === undefined) throw new GatewayError('task_not_cancellable')
  const asked = vendorOf(context, task)
  if (asked === undefined) throw new GatewayError('upstream_unavailable')
  const answer = await cancelAtVendor(context, asked, task.upstreamId)
  if (answer.kind === 'refused' && answer.failure.kind === 'caller') throw new GatewayError('task_not_cancellable')
  if (answer.kind !== 'answer') throw new GatewayError('upstream_unavailable')
  const nowMs = context.clock.now()
  const cancelled = await commit(context, task, endTask(task, task.details, { state: 'cancelled', nowMs }), wake)
  // A report may have arrived in the meantime; it decides the task's state.
  if (cancelled.state !== 'cancelled') throw new GatewayError('task_not_cancellable')
  return cancelled
}

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

/**
 * Lists an account's own tasks of an endpoint. Query parameters: `limit` (1 to 100, default 20), `after` and `before` (task ids of
 * the gateway).
 * @throws GatewayError `invalid_request` naming the parameter.
 */
async function listTasks(
  context: PipelineContext,
  accountId: string,
  endpointId: string,
  behaviour: TaskBehaviour,
  query: string,
): Promise<object> {
  const parameters = new URLSearchParams(query)
  const limit = limitOf(parameters.get('limit'))
  const after = cursorOf(parameters, 'after')
  const before = cursorOf(parameters, 'before')
  const isAsked = ({ details }: TaskRecord): boolean => details.endpoint === endpointId
  const { tasks, hasMore } = await pageOf(context, accountId, isAsked, { limit, after, before })
  return listObject(
    tasks.map((task) => behaviour.record(task)),
    hasMore,
    tasks,
  )
}

/** Returns a page of objects (OpenAI API reference, lists). */
export function listObject(
  data: readonly object[],
  hasMore: boolean,
  owners: readonly { readonly id: string }[],
): object {
  const [first_id, last_id] = [owners[0]?.id ?? null, owners.at(-1)?.id ?? null]
  return { object: 'list', data, has_more: hasMore, first_id, last_id }
}

/** Number of tasks per read: most may belong to other endpoints, and open ones may hold large requests. */
const READ_BATCH_SIZE = 50

/** Reads pages until one page of the requested tasks is full, because stores list the tasks of all endpoints. */
export async function pageOf(
  context: PipelineContext,
  accountId: string,
  isAsked: (task: TaskRecord) => boolean,
  { limit, ...cursors }: { limit: number; after: string | undefined; before: string | undefined },
): Promise<TaskPage> {
  let { after, before } = cursors
  const isBackwards = after === undefined && before !== undefined
  let tasks: TaskRecord[] = []
  for (;;) {
    const page = await context.store.tasks.list(accountId, { limit: Math.max(limit, READ_BATCH_SIZE), after, before })
    const own = page.tasks.filter(isAsked)
    tasks = isBackwards ? [...own, ...tasks] : [...tasks, ...own]
    const next = isBackwards ? page.tasks[0] : page.tasks.at(-1)
    if (!page.hasMore || tasks.length >= limit || next === undefined) {
      const hasMore = page.hasMore || tasks.length > limit
      return { tasks: isBackwards ? tasks.slice(-limit) : tasks.slice(0, limit), hasMore }
    }
    if (isBackwards) before = next.id
    else after = next.id
  }
}

function limitOf(text: string | null): number {
  if (text === null) return DEFAULT_LIMIT
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw invalidField('limit', `must be 1 to ${MAX_LIMIT}`)
}

function cursorOf(parameters: URLSearchParams, name: 'after' | 'before'): string | undefined {
  const id = parameters.get(name)
  if (id !== null && !isTaskId(id)) throw invalidField(name, 'not the id of a task')
  return id ?? undefined
}

async function deliveryList(context: PipelineContext, accountId: string, taskId: string): Promise<unknown> {
  const deliveries = await context.store.webhooks.list(accountId, taskId)
  return { object: 'list', data: deliveries.map(readableDelivery), has_more: false }
}

function readableDelivery(delivery: WebhookDelivery): unknown {
  return {
    id: delivery.id,
    object: 'webhook.delivery',
    task_id: delivery.taskId,
    url: delivery.url,
    state: delivery.state,
    created_at: Math.floor(delivery.createdAtMs / 1000),
    next_attempt_at: delivery.state === 'pending' ? Math.floor(delivery.nextAttemptAtMs / 1000) : null,
    attempts: delivery.attempts.map(({ atMs, status, error, durationMs }) => ({
      at: Math.floor(atMs / 1000),
      status: status ?? null,
      error: error ?? null,
      duration_ms: durationMs,
    })),
  }
}

/** Headers of the vendor's file that are passed to the caller. */
const PASSED_HEADERS = ['content-length', 'content-range', 'accept-ranges', 'etag', 'last-modified']

/**
 * Types that a browser can display and that contain no scripts. The file has the gateway's own origin, where a vendor's page could
 * act with the cookies of the host.
 */
const PLAYED = /^(?:video|audio|image)\/(?!svg)/

/**
 * Streams the content of a completed task to the caller. The address comes from the vendor, so the rule for callers' addresses
 * applies: no private IP address, literal or by DNS, no redirect, and no credential is sent.
 * @throws GatewayError `task_not_finished`, `content_not_found`, or an `upstream_…` code before anything was sent.
 */
async function sendContent(
  context: PipelineContext,
  exchange: { readonly request: GatewayRequest; readonly sink: ByteSink; readonly requestId: string },
  task: TaskRecord,
): Promise<void> {
  const { state, details } = task
  if (state === 'failed' || state === 'cancelled') throw new GatewayError('content_not_found')
  if (state !== 'completed') throw new GatewayError('task_not_finished', { retryAfterSeconds: 5 })
  if (details.contentUrl === undefined) throw new GatewayError('content_not_found')
  const check = checkPublicUrl(details.contentUrl, { allowPrivate: context.allowPrivateUrls })
  if ('reason' in check)
    throw new GatewayError('upstream_invalid_response', { cause: new Error(`the content's address ${check.reason}`) })
  const { url } = check
  const { request, sink, requestId } = exchange
  const download = new Download()
  let isSending = false
  download.begin(
    context.publicTransport.send(
      {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: 'GET',
        headers: [...ACCEPT, ...rangeOf(request)],
        body: null,
        firstByteTimeoutMs: context.timeouts.firstByteMs,
        idleTimeoutMs: context.timeouts.idleMs,
      },
      download,
    ),
  )
  context.taskCalls.add(download)
  try {
    const { status, headers } = await download.head()
    const head = contentHead(status, headers, requestId)
    isSending = true
    const sent = sendPieces(sink, { status, headers: head }, download, () => download.abort())
    // A caller who does not read would keep a failed download open.
    await Promise.race([sent, download.failed])
  } catch (error) {
    if (!(error instanceof DownloadError)) throw GatewayError.from(error)
    const { kind, error: cause } = error.failure
    if (!isSending) throw new GatewayError(kind === 'timeout' ? 'upstream_timeout' : 'upstream_unavailable', { cause })
    // An answer that has begun must not look complete.
    sink.destroy()
  } finally {
    context.taskCalls.delete(download)
    download.abort()
  }
}

/** @throws GatewayError if the answer has no content. */
function contentHead(status: number, headers: HeaderMap, requestId: string): readonly string[] {
  if (status === 416) {
    const message = 'Range: outside of the content'
    const range = firstHeader(headers, 'content-range')
    const cause = range === undefined ? undefined : new RangeCause(range)
    throw new GatewayError('invalid_request', { status, message, param: 'Range', cause })
  }
  // The vendor keeps content for a day. After that its address returns 403 or 404.
  if ([403, 404, 410].includes(status)) throw new GatewayError('content_not_found')
  if (status !== 200 && status !== 206) throw new GatewayError('upstream_invalid_response')
  const type = firstHeader(headers, 'content-type') ?? ''
  const head = ['x-request-id', requestId, 'x-content-type-options', 'nosniff']
  head.push('content-type', PLAYED.test(mediaType(type)) ? type : 'application/octet-stream')
  for (const name of PASSED_HEADERS) {
    const value = firstHeader(headers, name)
    if (value !== undefined) head.push(name, value)
  }
  return head
}

const ACCEPT = ['accept', '*/*', 'accept-encoding', 'identity']

/** Headers `range` and `if-range` of the request. If the file is not the one that the caller began with, the whole file is sent. */
function rangeOf(request: GatewayRequest): string[] {
  const range = request.header('range')
  const file = request.header('if-range')
  return range === undefined ? [] : ['range', range, ...(file === undefined ? [] : ['if-range', file])]
}

/** Returns the header `content-range` of a 416 (RFC 9110, section 15.5.17), or `undefined` for other errors. */
export function contentRange({ cause }: GatewayError): string | undefined {
  return cause instanceof RangeCause ? cause.message : undefined
}

class RangeCause extends Error {}
