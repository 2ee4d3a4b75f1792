import { isInScope } from '../catalog/model-scope.ts'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import { formatDollars } from '../core/money.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { ErrorDialect } from '../endpoints/error-dialect.ts'
import { identify } from '../pipeline/authenticate.ts'
import { type Admitted, CallRecord, type Received } from '../pipeline/call-record.ts'
import { pipeline } from '../pipeline/pipeline.ts'
import { emit, type PipelineContext } from '../pipeline/pipeline-context.ts'
import { pushLimits, respondError, respondJson } from '../pipeline/respond.ts'
import { serveStoredAnswer } from '../pipeline/stored-answers.ts'
import type { RouteOverride } from '../routing/routing-options.ts'
import type { Principal } from '../stores/principal.ts'
import { TaskSubmission } from '../tasks/submit-task.ts'
import { serveTaskRequest } from '../tasks/task-requests.ts'
import type { WakeWebhooks } from '../tasks/update-task.ts'
import type { InFlight } from './in-flight.ts'
import { listedModel, modelList } from './model-list.ts'
import { bearsOperatorKey } from './operator-key.ts'
import { routeReport } from './route-report.ts'
import { matchRoute, type Target } from './routes.ts'

/** The server state when a request arrives. */
export interface ServerState {
  readonly inFlight: InFlight
  readonly isClosing: boolean
  readonly wakeWebhooks: WakeWebhooks
  /** Opens the store; undefined once it is open. */
  readonly ready: (() => Promise<void>) | undefined
}

/** A request as it arrives. */
export class RequestContext {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  /** Who calls: set when the host vouches for the caller, and where nothing is called once the caller is known. */
  principal: Principal | undefined
  /** The host's routing choice; never set for callers over HTTP. */
  readonly routeOverride: RouteOverride | undefined

  constructor(
    request: GatewayRequest,
    sink: ByteSink,
    principal: Principal | undefined,
    routeOverride: RouteOverride | undefined,
  ) {
    this.request = request
    this.sink = sink
    this.principal = principal
    this.routeOverride = routeOverride
  }
}

/** Answers one request. Never rejects: every fault becomes an answer, an event and a log line. */
export async function serve(context: PipelineContext, server: ServerState, incoming: RequestContext): Promise<void> {
  const { request, sink } = incoming
  const requestId = context.ids.next('req')
  let received: Received | undefined
  try {
    const target = findTarget(context, request)
    if (target.kind === 'probe') return respondJson(sink, requestId, { message: 'hello' })
    if (target.kind === 'health') return respondJson(sink, requestId, health(context, server, request))
    if (server.isClosing) throw new GatewayError('gateway_closing')
    if (server.ready !== undefined) await server.ready()
    if (target.kind !== 'endpoint') return await read(context, server, incoming, { target, requestId })
    received = receive(context, incoming, target.endpoint, requestId)
    server.inFlight.add(received.calls)
    await pipeline(context, received, newSubmission)
  } catch (cause) {
    const record: RecordSoFar | undefined = received
    const dialect = (record?.endpoint ?? record?.called)?.errors ?? context.endpoints.errorsAt(request.path)
    const answered = { request, sink: sinkOf(incoming, dialect, requestId), requestId, dialect, record }
    fail(context, { ...answered, principal: incoming.principal }, cause)
  } finally {
    if (received !== undefined) {
      received.calls.end()
      server.inFlight.delete(received.calls)
    }
  }
}

/**
 * The gateway's own state, and with `verbose` the state of the vendors, for the operator only.
 * @throws GatewayError `invalid_api_key`.
 */
function health(context: PipelineContext, { isClosing }: ServerState, request: GatewayRequest): object {
  const status = isClosing ? 'closing' : 'ok'
  if (request.query === '' || !new URLSearchParams(request.query).has('verbose')) return { status }
  if (!bearsOperatorKey(request, context.operatorKey)) throw new GatewayError('invalid_api_key')
  return { status, ...routeReport(context) }
}

function findTarget({ endpoints }: PipelineContext, request: GatewayRequest): Target {
  const match = matchRoute(endpoints, request.method, request.path)
  if (match === undefined)
    throw new GatewayError('route_not_found', { message: `There is no route ${request.method} ${request.path}.` })
  if ('target' in match) return match.target
  // Clients that begin with a WebSocket use HTTP at once after it, and try again for seconds after a 405.
  if (request.header('upgrade')?.toLowerCase() === 'websocket')
    throw new GatewayError('method_not_allowed', {
      status: 426,
      message: `${request.path} has no WebSocket mode. Use HTTP.`,
    })
  throw new GatewayError('method_not_allowed', {
    message: `${request.path} takes ${match.allow.join(', ')}, not ${request.method}.`,
  })
}

/** The caller's side, with the headers that its dialect adds to every answer. */
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
    onDrain: (listener) => sink.onDrain(listener),
    onClose: (listener) => sink.onClose(listener),
  }
}

function receive(context: PipelineContext, incoming: RequestContext, endpoint: Endpoint, requestId: string): Received {
  return new CallRecord({
    request: incoming.request,
    sink: sinkOf(incoming, endpoint.errors, requestId),
    requestId,
    startedAtMs: context.clock.now(),
    called: endpoint,
    vouchedPrincipal: incoming.principal,
    routeOverride: incoming.routeOverride,
  })
}

const newSubmission = (): TaskSubmission => new TaskSubmission()

/** Model lists are read by clients that send `x-api-key` too. */
const X_API_KEY_TARGETS: ReadonlySet<string> = new Set(['models', 'model'])

interface Reading {
  readonly target: Exclude<Target, { kind: 'endpoint' | 'health' | 'probe' }>
  readonly requestId: string
}

async function read(
  context: PipelineContext,
  server: ServerState,
  incoming: RequestContext,
  { target, requestId }: Reading,
): Promise<void> {
  const { request, sink } = incoming
  incoming.principal ??= await identify(context, request, X_API_KEY_TARGETS.has(target.kind))
  const { principal } = incoming
  if (target.kind === 'tasks' || target.kind === 'task') {
    const { wakeWebhooks } = server
    const task = target.kind === 'task' ? target : undefined
    const { endpoint } = target
    return await serveTaskRequest(context, {
      request,
      sink,
      requestId,
      principal,
      endpoint,
      target: task,
      wakeWebhooks,
    })
  }
  if (target.kind === 'stored-answer') {
    const { endpoint, id, action } = target
    return await serveStoredAnswer(context, { request, sink, requestId, principal, endpoint, id, action })
  }
  if (target.kind === 'models') {
    const scope = principal.scopes?.models
    const models = context.catalog.list().filter((model) => isInScope(scope, model))
    return respondJson(sink, requestId, modelList(models, context))
  }
  if (target.kind === 'model') {
    const model = context.catalog.find(target.modelId)
    if (model === undefined || !isInScope(principal.scopes?.models, model))
      throw new GatewayError('model_not_found', {
        message: `There is no model ${JSON.stringify(target.modelId)}.`,
        param: 'model',
      })
    return respondJson(sink, requestId, listedModel(model, context))
  }
  const account = await context.store.ledger.account(principal.accountId)
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
  /** The caller of a request that has no record; with one, only a caller for whom the host vouches. */
  readonly principal: Principal | undefined
  readonly record: RecordSoFar | undefined
}

/** The record of a request, as far as it came. */
type RecordSoFar = Received & Partial<Admitted>

function fail(context: PipelineContext, failing: Failing, cause: unknown): void {
  const { sink, requestId, dialect } = failing
  const error = GatewayError.from(cause)
  // The caller reads a safe text; what is behind it is for the operator.
  if (error.code === 'internal_error' || error.code === 'store_unavailable') {
    const where = error.code === 'internal_error' ? 'request' : 'store'
    context.logger.error('a request failed inside the gateway', { requestId, where, error: error.cause })
    emit(context, { type: 'internal-error', requestId, where, error: error.cause })
  }
  if (context.onEvent !== undefined && failing.record?.isAnnounced !== true) emitRefused(context, failing, error)
  try {
    respondError(sink, error, { dialect, requestId, headers: errorHeaders(context, failing, error) })
  } catch (second) {
    // The answer had begun: what is left is to make sure that it does not look whole.
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

/** A 405 must say what is allowed (RFC 9110, section 15.5.6); refusals by limits show the limits. */
function errorHeaders({ endpoints }: PipelineContext, { request, record }: Failing, error: GatewayError): string[] {
  const headers: string[] = []
  const match = error.code === 'method_not_allowed' ? matchRoute(endpoints, request.method, request.path) : undefined
  if (match !== undefined && 'allow' in match) headers.push('allow', match.allow.join(', '))
  return pushLimits(headers, { requestBucket: record?.requestBucket, tokenBucket: record?.tokenBucket })
}
