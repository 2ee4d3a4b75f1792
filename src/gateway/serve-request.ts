import { isInScope } from '../catalog/model-scope.ts'
import { GatewayError } from '../core/errors.ts'
import { type ByteSink, type GatewayRequest, unreadableBody } from '../core/exchange.ts'
import { overloadReason } from '../core/memory-use.ts'
import { formatDollars } from '../core/money.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { ErrorDialect } from '../endpoints/error-dialect.ts'
import { identify } from '../pipeline/authenticate.ts'
import type { ToolCallObservation } from '../pipeline/call-observation.ts'
import { type Admitted, CallRecord, type Received } from '../pipeline/call-record.ts'
import { type CommitWith, HostCommit } from '../pipeline/commit-with.ts'
import { runFailedHooks } from '../pipeline/hooks/request-hooks.ts'
import { unknownModel } from '../pipeline/model-notices.ts'
import { emit, type PipelineContext } from '../pipeline/pipeline-context.ts'
import { pushLimits, respondError, respondJson } from '../pipeline/respond.ts'
import { type CompletionOf, runStages } from '../pipeline/serve.ts'
import { type StoredAnswerRequest, serveStoredAnswer } from '../pipeline/stored-answers.ts'
import { serveStoredObjects } from '../pipeline/stored-objects.ts'
import type { RouteOverride } from '../routing/candidate.ts'
import type { Principal } from '../stores/principal.ts'
import type { DeferredAnswers } from '../tasks/deferred-answers.ts'
import { DeferredSubmission, TaskSubmission } from '../tasks/submit-task.ts'
import { contentRange, serveTaskRequest } from '../tasks/task-requests.ts'
import type { WakeWebhooks } from '../tasks/update-task.ts'
import { bearsOperatorKey, operatorRefusal } from './authenticate.ts'
import { serveEstimate } from './estimates.ts'
import type { Health } from './health.ts'
import type { InFlight } from './in-flight.ts'
import { codingModels, etagOf, listedModel, modelList } from './model-list.ts'
import { routeReport } from './operator-actions.ts'
import type { HeldRequest, OverloadGuard } from './overload-guard.ts'
import { matchRoute, type Target, unknownRoute } from './routes.ts'
import type { LoadedBatches } from './tasks.ts'

export interface ServerState {
  readonly inFlight: InFlight
  readonly health: Health
  readonly isClosing: boolean
  /** Overload guard, or `undefined` if there are no limits. */
  readonly overload: OverloadGuard | undefined
  readonly wakeWebhooks: WakeWebhooks
  readonly deferred: DeferredAnswers
  readonly completionOf: CompletionOf
  /** Batches, or `undefined` if the gateway has none or has not started. */
  readonly batches: LoadedBatches | undefined
  /** Opens the store; `undefined` once it is open. */
  readonly ready: (() => Promise<void>) | undefined
}

/** Options that only requests within the host's process have. */
export interface HostChoices {
  readonly routeOverride?: RouteOverride | undefined
  readonly toolCall?: ToolCallObservation | undefined
  readonly commitWith?: CommitWith | undefined
}

export class RequestContext {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  /** Caller: set if the host authenticates the caller, or after authentication of requests that call nothing. */
  principal: Principal | undefined
  /** Host's routing override; never set for callers over HTTP. */
  readonly routeOverride: RouteOverride | undefined
  /** Tool call that makes the request, for observers. */
  readonly toolCall: ToolCallObservation | undefined
  /** Commits statements of the host with the charge. */
  readonly hostCommit: HostCommit | undefined

  constructor(
    request: GatewayRequest,
    sink: ByteSink,
    principal: Principal | undefined,
    { routeOverride, toolCall, commitWith }: HostChoices,
  ) {
    this.request = request
    this.sink = sink
    this.principal = principal
    this.routeOverride = routeOverride
    this.toolCall = toolCall
    this.hostCommit = commitWith && new HostCommit(commitWith)
  }
}

/** Answers one request. Never rejects: every fault becomes an answer, an event and a log line. */
export async function serve(context: PipelineContext, server: ServerState, incoming: RequestContext): Promise<void> {
  const { request, sink } = incoming
  const requestId = context.ids.next('req')
  let received: CallRecord | undefined
  let held: HeldRequest | undefined
  try {
    const target = findTarget(context, request)
    if (target.kind === 'probe') return respondJson(sink, requestId, { message: 'hello' })
    if (target.kind === 'health') return await serveHealth(context, server, incoming, { asks: target.asks, requestId })
    if (target.kind === 'openapi') return await serveOpenApi(context, incoming, requestId)
    if (server.isClosing) throw new GatewayError('gateway_closing')
    if (server.ready !== undefined) await server.ready()
    if (target.kind !== 'endpoint') return await read(context, server, incoming, { target, requestId })
    if (server.overload !== undefined) held = server.overload.held(request)
    received = receive(context, { request: held ?? request, incoming }, target.endpoint, requestId)
    server.inFlight.add(received)
    if (server.overload !== undefined) server.overload.check(server.inFlight.size)
    if (context.observers !== undefined)
      received.observation = context.observers.begin(received, incoming.toolCall?.states)
    // The stages do not wait for the end, because they would keep their data while a model generates.
    const unfinished = await runStages(context, received, server.completionOf)
    if (unfinished !== undefined) await unfinished.end
  } catch (thrown) {
    const isNoJson = GatewayError.isInstance(thrown) && thrown.code === 'invalid_json'
    const cause = isNoJson ? unreadableBody(request, thrown) : thrown
    const record: RecordSoFar | undefined = received
    const isHooked = context.hooks !== undefined && record !== undefined
    const fault = isHooked ? await runFailedHooks(context, record, GatewayError.from(cause)) : cause
    const dialect = (record?.endpoint ?? record?.called)?.errors ?? context.endpoints.errorsAt(request.path, request)
    const answered = { request, sink: sinkOf(incoming, dialect, requestId), requestId, dialect, record }
    fail(context, { ...answered, principal: incoming.principal }, fault)
  } finally {
    if (received !== undefined) {
      received.observation?.over(received)
      received.calls.end()
      server.inFlight.delete(received)
      held?.release()
    }
  }
}

/**
 * Returns the gateway's own state; with `verbose` also its parts and the state of the vendors, for the operator only.
 * @throws GatewayError `invalid_api_key`, or `rate_limited` after too many wrong keys.
 */
async function serveHealth(
  context: PipelineContext,
  { health }: ServerState,
  { request, sink }: RequestContext,
  { asks, requestId }: { readonly asks: 'ready' | 'alive'; readonly requestId: string },
): Promise<void> {
  const isVerbose = request.query !== '' && new URLSearchParams(request.query).has('verbose')
  if (isVerbose && !bearsOperatorKey(request, context.operatorKey))
    throw operatorRefusal(request, context.clock, context.clientAddress)
  if (asks === 'alive') return respondJson(sink, requestId, { status: 'ok' }, NOT_CACHED)
  const state = await health.read()
  const answer = isVerbose ? { ...state, ...routeReport(context) } : { status: state.status }
  respondJson(sink, requestId, answer, NOT_CACHED, state.status === 'ok' ? 200 : 503)
}

/** Loads the document on its first request, so that other gateways do not keep it in memory. */
async function serveOpenApi(context: PipelineContext, { sink }: RequestContext, requestId: string): Promise<void> {
  const { publicApi } = await import('./openapi/public-api.ts')
  respondJson(sink, requestId, publicApi(context))
}

const NOT_CACHED: readonly string[] = ['cache-control', 'no-store']

function findTarget({ endpoints, batches }: PipelineContext, request: GatewayRequest): Target {
  const { method, path } = request
  const hasBatches = batches !== undefined
  const match = matchRoute(endpoints, method, path, hasBatches)
  if (match === undefined)
    throw new GatewayError('route_not_found', { message: unknownRoute(endpoints, method, path, hasBatches) })
  if ('target' in match) return match.target
  // RFC 9110, section 7.8: an offer to upgrade may be ignored, so a POST with such an offer was matched above and is served as HTTP.
  // Clients that begin with a WebSocket use HTTP immediately after a 426, but retry for seconds after a 405.
  if (request.header('upgrade')?.toLowerCase() === 'websocket')
    throw new GatewayError('method_not_allowed', {
      status: 426,
      message: `${request.path} has no WebSocket mode. Use HTTP.`,
    })
  throw new GatewayError('method_not_allowed', {
    message: `${request.path} takes ${match.allow.join(', ')}, not ${request.method}.`,
  })
}

/** Output to the caller, with the headers that its dialect adds to every answer. */
function sinkOf({ sink }: RequestContext, { requestIdHeader }: ErrorDialect, requestId: string): ByteSink {
  if (requestIdHeader === undefined) return sink
  return {
    get closed() {
      return sink.closed
    },
    head: (status, headers) => sink.head(status, [...headers, requestIdHeader, requestId]),
    write: (bytes) => sink.write(bytes),
    end: (bytes) => sink.end(bytes),
    destroy: () => sink.destroy(),
    endConnection: () => sink.endConnection?.(),
    onDrain: (listener) => sink.onDrain(listener),
    onClose: (listener) => sink.onClose(listener),
  }
}

function receive(
  context: PipelineContext,
  { request, incoming }: { readonly request: GatewayRequest; readonly incoming: RequestContext },
  endpoint: Endpoint,
  requestId: string,
): CallRecord {
  return new CallRecord({
    request,
    sink: sinkOf(incoming, endpoint.errors, requestId),
    requestId,
    startedAtMs: context.clock.now(),
    called: endpoint,
    vouchedPrincipal: incoming.principal,
    routeOverride: incoming.routeOverride,
    hostCommit: incoming.hostCommit,
  })
}

/** Handlers of requests that are not answered on their own connection. */
export function completionsOf(deferred: DeferredAnswers): CompletionOf {
  return (parsed) => {
    const { endpoint, body } = parsed
    if (endpoint.task === undefined && endpoint.deferral?.applies(body) !== true) return undefined
    refuseHostCommit(parsed)
    return endpoint.task === undefined ? new DeferredSubmission(deferred) : new TaskSubmission()
  }
}

/** @throws GatewayError `invalid_request` for work that is charged after its request, possibly in another process. */
function refuseHostCommit({ hostCommit }: Pick<Received, 'hostCommit'>): void {
  const message = 'This work is charged after its request. Use a client without commitWith.'
  if (hostCommit !== undefined) throw new GatewayError('invalid_request', { message })
}

/** Clients that send `x-api-key` call these too. */
const X_API_KEY_TARGETS: ReadonlySet<string> = new Set(['models', 'model', 'estimate', 'files'])

function takesXApiKey(target: Reading['target']): boolean {
  if (target.kind === 'inline-batches') return target.endpoint.takesXApiKey === true
  return X_API_KEY_TARGETS.has(target.kind)
}

/** Query parameter by which a coding client requests its own list and sends its version (github openai/codex, `endpoint/models.rs`). */
const CODING_CLIENT_PARAMETER = 'client_version'

interface Reading {
  readonly target: Exclude<Target, { kind: 'endpoint' | 'health' | 'probe' | 'openapi' }>
  readonly requestId: string
}

async function read(
  context: PipelineContext,
  server: ServerState,
  incoming: RequestContext,
  { target, requestId }: Reading,
): Promise<void> {
  const { request } = incoming
  const sink = sinkOf(incoming, context.endpoints.errorsAt(request.path, request), requestId)
  incoming.principal ??= await identify(context, request, takesXApiKey(target))
  const { principal } = incoming
  if (target.kind === 'estimate') return await serveEstimate(context, principal, request, sink)
  if (target.kind === 'tasks' || target.kind === 'task') {
    const { wakeWebhooks } = server
    const asked = { request, sink, requestId, principal, endpoint: target.endpoint, wakeWebhooks }
    return await serveTaskRequest(context, { ...asked, target: target.kind === 'task' ? target : undefined })
  }
  if (target.kind === 'stored-answer') {
    const { endpoint, id, action } = target
    const pending: StoredAnswerRequest['pending'] = (facts, asked) => server.deferred.serve(facts, asked)
    return await serveStoredAnswer(context, { request, sink, requestId, principal, endpoint, id, action, pending })
  }
  if (target.kind === 'objects') {
    const { endpoint, objects, segments } = target
    return await serveStoredObjects(context, { request, sink, requestId, principal, endpoint, objects, segments })
  }
  const isBatch = target.kind === 'batches' || target.kind === 'inline-batches'
  if (isBatch && request.method === 'POST' && target.segments.length === 0) refuseHostCommit(incoming)
  if ((target.kind === 'files' || target.kind === 'batches') && server.batches !== undefined) {
    const asked = { request, sink, requestId, principal, segments: target.segments }
    if (target.kind === 'files')
      return await server.batches.engine.serveFileRequest(context, server.batches.settings, asked)
    return await server.batches.engine.serveBatchRequest(context, server.batches, asked)
  }
  if (target.kind === 'inline-batches' && server.batches !== undefined) {
    const { endpoint, dialect, segments } = target
    const asked = { request, sink, requestId, principal, segments, endpoint, dialect }
    return await server.batches.engine.serveInlineBatchRequest(context, server.batches, asked)
  }
  if (target.kind === 'models') {
    const scope = principal.scopes?.models
    const models = context.catalog.list().filter((model) => isInScope(scope, model))
    const list = modelList(models, context)
    if (!new URLSearchParams(request.query).has(CODING_CLIENT_PARAMETER)) return respondJson(sink, requestId, list)
    const both = { ...list, models: codingModels(models, context) }
    return respondJson(sink, requestId, both, ['etag', etagOf(both)])
  }
  if (target.kind === 'model') {
    const model = context.catalog.find(target.modelId)
    const isRefused = model?.family !== undefined && context.prices?.quote(model.id, {}) === undefined
    if (
      model === undefined ||
      !isInScope(principal.scopes?.models, model) ||
      (context.prices !== undefined && isRefused)
    )
      throw unknownModel(context, target.modelId, { principal })
    return respondJson(sink, requestId, listedModel(model, context))
  }
  const account = await context.store.ledger.account(principal.accountId)
  if (account === undefined && context.prices !== undefined)
    throw context.principalFaults.unknownAccount(principal.accountId)
  respondJson(sink, requestId, {
    object: 'account',
    id: principal.accountId,
    balance: formatDollars(account?.balance ?? 0n),
    held: formatDollars(account?.held ?? 0n),
    owed: formatDollars(account?.owed ?? 0n),
    currency: 'USD',
    tier: principal.tier,
  })
}

interface Failing {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly requestId: string
  readonly dialect: ErrorDialect
  /** Caller of a request without a record; otherwise only a caller that the host authenticates. */
  readonly principal: Principal | undefined
  readonly record: RecordSoFar | undefined
}

/** Record of a request, with the facts known so far. */
type RecordSoFar = Received & Partial<Admitted>

function fail(context: PipelineContext, failing: Failing, cause: unknown): void {
  const { sink, requestId, dialect } = failing
  const error = GatewayError.from(cause)
  // The caller gets a safe text; the cause is for the operator.
  if (error.code === 'internal_error' || error.code === 'store_unavailable') {
    const where = error.code === 'internal_error' ? 'request' : 'store'
    const line = (): void =>
      context.logger.error('a request failed inside the gateway', { requestId, where, error: error.cause })
    if (where === 'store') context.storeOutage.failed(error, line, true)
    else line()
    emit(context, { type: 'internal-error', requestId, where, error: error.cause })
  }
  const isHeard = context.onEvent !== undefined || context.observers?.hearsEvents === true
  if (isHeard && failing.record?.isAnnounced !== true) emitRefused(context, failing, error)
  failing.record?.observation?.failed(failing.record, error)
  try {
    respondError(sink, error, { dialect, requestId, headers: errorHeaders(context, failing, error) })
  } catch (second) {
    // The answer had begun, so the only task left is to make sure that it does not look complete.
    context.logger.error('an error could not be answered', { requestId, error: second })
    sink.destroy()
  }
}

function emitRefused(context: PipelineContext, failing: Failing, error: GatewayError): void {
  const { requestId, record } = failing
  const principal = record?.principal ?? failing.principal
  emit(context, {
    type: 'request-refused',
    requestId,
    endpoint: record?.called.id,
    accountId: principal?.accountId,
    keyId: principal?.keyId,
    model: record?.body?.model,
    status: error.status,
    code: error.code,
  })
}

/**
 * Headers that an error must have: the allowed methods of a 405 (RFC 9110, section 15.5.6), the available range of a 416, the
 * required protocol of a 426 (section 15.5.22), and the limits of a rejection by limits.
 */
function errorHeaders(context: PipelineContext, { request, record }: Failing, error: GatewayError): string[] {
  const { endpoints, batches } = context
  const headers: string[] = []
  // If the vendor has retired a model, it rejects the call, and the header contains the reason.
  if (record?.chain !== undefined) headers.push(...(context.retirements.headerFor(context, record.chain) ?? []))
  const match =
    error.code === 'method_not_allowed'
      ? matchRoute(endpoints, request.method, request.path, batches !== undefined)
      : undefined
  if (match !== undefined && 'allow' in match) headers.push('allow', match.allow.join(', '))
  // The caller continues with HTTP over a new connection, and waits for the end of this one.
  if (error.status === 426) headers.push('upgrade', 'HTTP/1.1', 'connection', 'close, upgrade')
  const reason = overloadReason(error)
  if (reason !== undefined) headers.push('x-signalbox-overload', reason)
  const range = contentRange(error)
  if (range !== undefined) headers.push('content-range', range)
  return pushLimits(headers, { requestBucket: record?.requestBucket, tokenBucket: record?.tokenBucket })
}
