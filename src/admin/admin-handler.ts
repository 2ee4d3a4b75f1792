import { Buffer } from 'node:buffer'
import { type Clock, systemClock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import {
  type ByteSink,
  checkGateway,
  type ExchangeHandler,
  type GatewayRequest,
  unreadableBody,
  wholeBody,
} from '../core/exchange.ts'
import { type Ids, timeOrderedIds } from '../core/ids.ts'
import { isJsonObject, parseCallerJson } from '../core/json.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import { type Logger, usableLogger } from '../core/logger.ts'
import { openaiErrors } from '../endpoints/error-dialect.ts'
import type { JsonSchema } from '../endpoints/schema.ts'
import type { Gateway } from '../gateway/gateway.ts'
import {
  ERROR_RESPONSES,
  jsonAnswer,
  type OpenApiDocument,
  type OpenApiOperation,
  type OpenApiParameter,
  type OpenApiPaths,
  openApiDocument,
  pathParameter,
} from '../gateway/openapi/openapi-document.ts'
import { respondError, respondWhole } from '../pipeline/respond.ts'
import type { StoredAnswer } from '../stores/idempotency-store.ts'
import { joinChunks } from '../wire/chunks.ts'
import { mediaType } from '../wire/headers.ts'
import {
  type AdminAnswer,
  type AdminCall,
  type AdminRoute,
  type CsvAnswer,
  checkScopes,
  type IdentifiedOperator,
  type OperatorRules,
  Operators,
} from './admin-route.ts'
import { auditState, type ChangeSubject } from './audit-state.ts'
import { ADMIN_ROUTES } from './routes/admin-routes.ts'

/** Options of {@link adminHandler}. */
export interface AdminHandlerOptions extends OperatorRules {
  /** Whether to reject every change with 405. Default false. */
  readonly readOnly?: boolean | undefined
  /** Logs one line per change. Silent by default; the event `operator-action` reports each change in any case. */
  readonly logger?: Logger | undefined
  /** Clock. Defaults to the system clock. */
  readonly clock?: Clock | undefined
}

export const ADMIN_HANDLER_OPTIONS = memberNames<AdminHandlerOptions>()(
  'readOnly logger clock operatorKeys authorize clientAddress',
)

/** Maximum size of a request body. */
const BODY_LIMIT_BYTES = 1024 * 1024

const DOCUMENT_PATH = '/openapi.json'

/**
 * Serves the administration of a gateway as JSON over HTTP: accounts, money, keys, usage, vendors, tasks. Serves `/v1/…` and
 * `/openapi.json` below its mount. Mount it with the adapters, like the gateway itself. Only operators have access.
 * @throws TypeError if neither `operatorKeys` nor `authorize` is set, or for an invalid key, name or scope.
 */
export function adminHandler(gateway: Gateway, options: AdminHandlerOptions = {}): ExchangeHandler {
  checkMembers(options, ADMIN_HANDLER_OPTIONS, 'adminHandler')
  checkGateway(gateway, 'adminHandler')
  const logger = usableLogger(options.logger)
  const { clock = systemClock, readOnly: isReadOnly = false } = options
  const operators = new Operators(options, clock, logger)
  return new AdminEndpoint({ gateway, operators, isReadOnly, clock, logger, ids: timeOrderedIds })
}

interface EndpointParts {
  readonly gateway: Gateway
  readonly operators: Operators
  readonly isReadOnly: boolean
  readonly clock: Clock
  readonly logger: Logger
  readonly ids: Ids
}

/** Change that is reported to the host, whatever its outcome. */
interface Change {
  readonly route: AdminRoute
  readonly call: AdminCall
  /** State of its subject before the change, for the audit. */
  readonly before?: Readonly<Record<string, unknown>> | undefined
  readonly answer?: AdminAnswer | StoredAnswer | undefined
}

/** Identifies operators, finds routes, and writes answers. */
class AdminEndpoint implements ExchangeHandler {
  readonly #parts: EndpointParts
  readonly #table = new AdminRouteTable(ADMIN_ROUTES)

  constructor(parts: EndpointParts) {
    this.#parts = parts
  }

  handle(request: GatewayRequest, sink: ByteSink): void {
    const requestId = this.#parts.ids.next('req')
    this.#answer(request, sink, requestId).catch((cause: unknown) => {
      const error = GatewayError.from(cause)
      const { gateway, logger } = this.#parts
      const line = (): void => logger.error('a request failed inside the admin API', { requestId, error: error.cause })
      if (error.code === 'store_unavailable') gateway.operatorActions.requestFailed(error, line)
      else if (error.code === 'internal_error') line()
      const headers = ['cache-control', 'no-store']
      try {
        respondError(sink, error, { dialect: openaiErrors, requestId, headers })
      } catch (second) {
        // The answer had begun: what is left is to make sure that it does not look whole.
        logger.error('an error could not be answered', { requestId, error: second })
        sink.destroy()
      }
    })
  }

  async #answer(request: GatewayRequest, sink: ByteSink, requestId: string): Promise<void> {
    const operator = await this.#parts.operators.identify(request)
    const path = pathBelowMount(request.path)
    if (path === DOCUMENT_PATH && request.method === 'GET') return sendJson(sink, requestId, adminApi(ADMIN_ROUTES))
    const matched = this.#table.match(request.method, path.replace(/^\/v1(?=\/)/, ''))
    const asked = { request, sink, requestId, operator, matched }
    return matched.route.method === 'GET' ? await this.#read(asked) : await this.#change(asked)
  }

  async #read({ request, sink, requestId, operator, matched: { route, params } }: AskedChange): Promise<void> {
    const call = this.#call(request, { route, params }, { operator, requestId })
    // Reads that create something, or that only operators with write access may see, are reported like changes.
    const isTold = route.scope === 'write'
    try {
      checkScopes(operator, route)
      checkIdempotencyKey(call)
      const answer = await runRoute(route, call)
      if (isTold) await this.#report({ route, call }, undefined)
      await this.#send(sink, requestId, answer)
    } catch (cause) {
      if (isTold) await this.#report({ route, call }, GatewayError.from(cause))
      throw cause
    }
  }

  async #change(asked: AskedChange): Promise<void> {
    const { request, sink, requestId, operator, matched } = asked
    const { route } = matched
    let change: Change = { route, call: this.#call(request, matched, { operator, requestId }) }
    try {
      checkScopes(operator, route)
      if (this.#parts.isReadOnly)
        throw new GatewayError('method_not_allowed', { message: 'Nothing can be changed here.' })
      if (!operator.hasKey) checkSameOrigin(request)
      checkIdempotencyKey(change.call)
      change = { route, call: { ...change.call, body: await readJson(request) } }
      change = { ...change, before: await auditState(this.#parts.gateway, subjectOf(change)) }
      const { answer, isReplayed } = await this.#made(change, request)
      // A repeated request changes nothing; the change was reported before.
      if (!isReplayed) await this.#report({ ...change, answer }, undefined)
      await this.#send(sink, requestId, answer)
    } catch (cause) {
      const error = GatewayError.from(cause)
      await this.#report(change, error)
      throw error
    }
  }

  /** Makes a change, or returns the answer of the same change before. */
  async #made({ route, call }: Change, { path }: GatewayRequest): Promise<MadeChange> {
    const { idempotencyKey: key, operator, gateway, body } = call
    if (key === undefined || !route.answers.includes('application/json') || route.answers.length > 1)
      return { answer: await runRoute(route, call), isReplayed: false }
    let answer: AdminAnswer | undefined
    const request = JSON.stringify([route.method, pathBelowMount(path), body ?? null])
    const made = await gateway.operatorActions.once({ operator: operator.name, key, request }, async () => {
      answer = await runRoute(route, call)
      return storedAnswer(answer, route.secret)
    })
    return { answer: answer ?? made.answer, isReplayed: answer === undefined }
  }

  #call(
    request: GatewayRequest,
    { params }: MatchedRoute,
    known: Pick<AdminCall, 'operator' | 'requestId'>,
  ): AdminCall {
    const { gateway, clock, isReadOnly } = this.#parts
    return {
      gateway,
      clock,
      isReadOnly,
      params,
      query: new URLSearchParams(request.query),
      idempotencyKey: request.header('idempotency-key'),
      address: this.#parts.operators.addressOf(request),
      body: undefined,
      ...known,
    }
  }

  async #report(change: Change, error: GatewayError | undefined): Promise<void> {
    const { route, call } = change
    const action = {
      requestId: call.requestId,
      operator: call.operator.name,
      action: route.id,
      target: targetOf(route, call),
      input: inputOf(route, call),
      status: error?.status ?? 200,
      code: error?.code,
    }
    this.#parts.logger.info(
      error === undefined ? 'an operator changed something' : 'a change by an operator was refused',
      action,
    )
    const { gateway, logger } = this.#parts
    gateway.operatorActions.report(action)
    // A rejected request changed nothing. After a fault inside the gateway, the change may have been made.
    if (error !== undefined && error.status < 500) return
    try {
      await gateway.audit.record({
        operator: action.operator,
        action: action.action,
        subject: action.target,
        source: 'admin_api',
        address: call.address,
        requestId: action.requestId,
        code: action.code,
        input: action.input,
        before: change.before,
        after: await this.#stateAfter(change),
      })
    } catch (cause) {
      // The change was made, so its answer is sent. Without the answer, the operator would repeat the change.
      gateway.operatorActions.reportFault(cause, () =>
        logger.error('a change by an operator could not be added to the audit', { ...action, error: cause }),
      )
    }
  }

  /** Returns the state of the subject, or the answer without its secret if the subject was created or has no readable state. */
  async #stateAfter({ route, call, answer, before }: Change): Promise<Readonly<Record<string, unknown>> | undefined> {
    const state = before && (await auditState(call.gateway, subjectOf({ route, call })))
    if (state !== undefined) return state
    if (answer === undefined || !('json' in answer) || route.showsContent === true) return undefined
    return withoutSecret(answer.json, route.secret)
  }

  async #send(sink: ByteSink, requestId: string, answer: AdminAnswer | StoredAnswer): Promise<void> {
    if ('json' in answer) return sendJson(sink, requestId, answer.json)
    if ('forward' in answer) return answer.forward(sink)
    if ('csv' in answer) return await sendCsv(sink, requestId, answer.csv)
    const headers = [...answer.headers, 'x-request-id', requestId, 'idempotent-replayed', 'true']
    respondWhole(sink, { status: answer.status, headers }, [answer.body])
  }
}

interface MadeChange {
  readonly answer: AdminAnswer | StoredAnswer
  /** Whether the same change was made before, so that only its answer is returned again. */
  readonly isReplayed: boolean
}

interface AskedChange {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly requestId: string
  readonly operator: IdentifiedOperator
  readonly matched: MatchedRoute
}

/** First path segments of routes. They distinguish this API's version segment from one in the host's mount, and from an id. */
const FIRST_STEPS: ReadonlySet<string | undefined> = new Set(ADMIN_ROUTES.map(({ path }) => path.split('/')[1]))

/** Whether a path certainly belongs to this API: its document, or the first segment of a route after a version. */
export function isAdminPath(path: string): boolean {
  const below = pathBelowMount(path)
  return below === DOCUMENT_PATH || (below.startsWith('/v1/') && FIRST_STEPS.has(below.split('/', 3)[2]))
}

/** Returns the path from the version or the document's name on; everything before it is the host's mount. */
function pathBelowMount(path: string): string {
  if (path.endsWith(DOCUMENT_PATH)) return DOCUMENT_PATH
  let below = path
  for (let at = path.indexOf('/v1/'); at !== -1; at = path.indexOf('/v1/', at + 1)) {
    below = path.slice(at)
    if (FIRST_STEPS.has(below.split('/', 3)[2])) break
  }
  return below
}

const JSON_HEADERS = [
  'content-type',
  'application/json',
  'cache-control',
  'no-store',
  'x-content-type-options',
  'nosniff',
]

function sendJson(sink: ByteSink, requestId: string, value: object): void {
  const body = Buffer.from(JSON.stringify(value))
  const headers = [...JSON_HEADERS, 'content-length', String(body.byteLength), 'x-request-id', requestId]
  respondWhole(sink, { status: 200, headers }, [body])
}

function storedAnswer(answer: AdminAnswer, secret: string | undefined): StoredAnswer {
  const json = 'json' in answer ? answer.json : {}
  return { status: 200, headers: JSON_HEADERS, body: Buffer.from(JSON.stringify(withoutSecret(json, secret))) }
}

function withoutSecret(json: object, secret: string | undefined): Readonly<Record<string, unknown>> {
  return { ...json, ...(secret === undefined ? {} : { [secret]: null }) }
}

/** @throws GatewayError `invalid_request`. */
function checkIdempotencyKey({ idempotencyKey }: AdminCall): void {
  if (idempotencyKey === undefined || /^[\x21-\x7e]{1,200}$/.test(idempotencyKey)) return
  const message = 'Idempotency-Key: must be 1 to 200 printable ASCII characters without spaces'
  throw new GatewayError('invalid_request', { message, param: 'Idempotency-Key' })
}

/** @throws GatewayError of `wholeBody`, `unsupported_media_type` or `invalid_json`. */
async function readJson(request: GatewayRequest): Promise<unknown> {
  const bytes = joinChunks(await wholeBody(request, BODY_LIMIT_BYTES))
  // A form of another site cannot send any other type without a CORS preflight.
  if (mediaType(request.header('content-type')) !== 'application/json')
    throw new GatewayError('unsupported_media_type', { message: 'Send changes as Content-Type: application/json.' })
  try {
    return bytes.byteLength === 0 ? undefined : parseCallerJson(bytes)
  } catch (fault) {
    throw unreadableBody(request, fault)
  }
}

/** Returns the account or key that a change names in its path, or as the id of what it creates. */
function subjectOf({ route, call }: Change): ChangeSubject {
  const { params } = call
  return route.creates === undefined ? params : { ...params, [route.creates]: targetOf(route, call) }
}

function targetOf({ target, path }: AdminRoute, { params, body }: AdminCall): string | undefined {
  const name = target ?? /\{(\w+)\}/.exec(path)?.[1]
  if (name === undefined) return isJsonObject(body) && typeof body['id'] === 'string' ? body['id'] : undefined
  const value = params[name] ?? (isJsonObject(body) ? body[name] : undefined)
  return typeof value === 'string' ? value : undefined
}

/** A call for an account contains a prompt, which no event may contain. */
function inputOf({ scope }: AdminRoute, { body }: AdminCall): Readonly<Record<string, unknown>> {
  if (!isJsonObject(body)) return {}
  if (scope !== 'play') return body
  const { request, ...rest } = body
  return { ...rest, model: isJsonObject(request) ? request['model'] : undefined }
}

/** Names that the API uses for arguments of the gateway's methods. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['accountId', 'account'],
  ['keyId', 'key'],
  ['holdId', 'hold'],
  ['chargeId', 'charge'],
  ['cursor', 'after'],
  ['groupBy', 'group_by'],
  ['endUser', 'end_user'],
  ['expiresAtMs', 'expires_at'],
  ['spendingCap', 'spending_cap'],
  ['overlapMs', 'overlap_ms'],
])

/**
 * Runs a route, and names parameters and fields in errors as the API does.
 * @throws GatewayError with status 404 if the gateway does not know the object in the path.
 */
async function runRoute(route: AdminRoute, call: AdminCall): Promise<AdminAnswer> {
  try {
    return await route.run(call)
  } catch (cause) {
    throw GatewayError.isInstance(cause) ? inWordsOfTheApi(cause, call) : cause
  }
}

function inWordsOfTheApi(error: GatewayError, { params }: AdminCall): GatewayError {
  const { code, status, publicCode, param, message } = error
  const name = NAMES.get(param ?? '')
  if (param === undefined || name === undefined) return error
  // The gateway rejects ids for only one reason: there is no such account, key or hold.
  if (params[name] !== undefined && code === 'invalid_request')
    return new GatewayError(code, { status: 404, publicCode: 'not_found', message, cause: error })
  const own = message.startsWith(param) ? name + message.slice(param.length) : message
  return new GatewayError(code, { status, publicCode, message: own, param: name, cause: error })
}

/** Header that no form and no other site can send without permission. */
export const SAME_ORIGIN_HEADER = 'x-signalbox-console'

/**
 * Rejects a change that another site may have triggered in an operator's browser: such requests include cookies. No other origin may
 * send the header, because no preflight request for it is answered.
 * @throws GatewayError `permission_denied`.
 */
function checkSameOrigin(request: GatewayRequest): void {
  if (request.header(SAME_ORIGIN_HEADER) !== '1') throw refused(`it lacks the header ${SAME_ORIGIN_HEADER}: 1`)
  const site = request.header('sec-fetch-site')
  if (site === 'same-origin') return
  if (site !== undefined) throw refused(`sec-fetch-site is ${JSON.stringify(site)}`)
  const origin = request.header('origin')
  if (origin === undefined) return
  const host = URL.canParse(origin) ? new URL(origin).host : undefined
  if (host !== request.header('host')) throw refused('origin and host differ')
}

function refused(why: string): GatewayError {
  return new GatewayError('permission_denied', { message: `This change was refused, because ${why}.` })
}

/** Sends a file of lines at the caller's speed. A failure before the first line becomes an error answer; later, the file is cut. */
async function sendCsv(sink: ByteSink, requestId: string, { fileName, lines }: CsvAnswer): Promise<void> {
  let isBegun = false
  for await (const piece of lines) {
    if (sink.closed) return
    if (!isBegun) sink.head(200, headersOf(fileName, requestId))
    isBegun = true
    if (!sink.write(Buffer.from(piece))) await roomOf(sink)
  }
  if (!isBegun) sink.head(200, headersOf(fileName, requestId))
  sink.end()
}

/** Resolves when the caller has read the data, or has disconnected. */
function roomOf(sink: ByteSink): Promise<void> {
  return new Promise((resolve) => {
    sink.onDrain(resolve)
    sink.onClose(resolve)
  })
}

function headersOf(fileName: string, requestId: string): string[] {
  return [
    ...['content-type', 'text/csv; charset=utf-8', 'cache-control', 'no-store', 'x-content-type-options', 'nosniff'],
    ...['content-disposition', `attachment; filename="${fileName.replaceAll(/[^\w.-]/g, '_')}"`],
    ...['x-request-id', requestId],
  ]
}

/** Route, and the values of its path parameters. */
interface MatchedRoute {
  readonly route: AdminRoute
  readonly params: Readonly<Record<string, string>>
}

/** Finds the route of a method and path. */
class AdminRouteTable {
  readonly #routes: readonly { readonly route: AdminRoute; readonly steps: readonly string[] }[]

  constructor(routes: readonly AdminRoute[]) {
    this.#routes = routes.map((route) => ({ route, steps: route.path.split('/') }))
  }

  /**
   * @param path Path below `/v1`, still percent-encoded.
   * @throws GatewayError `route_not_found`, or `method_not_allowed`.
   */
  match(method: string, path: string): MatchedRoute {
    const steps = stepsOf(path)
    const allowed: string[] = []
    for (const { route, steps: pattern } of this.#routes) {
      const params = steps === undefined ? undefined : paramsOf(pattern, steps)
      if (params === undefined) continue
      if (route.method === method || (method === 'HEAD' && route.method === 'GET')) return { route, params }
      allowed.push(route.method)
    }
    if (allowed.length === 0)
      throw new GatewayError('route_not_found', { message: `There is no route ${method} ${path}.` })
    throw new GatewayError('method_not_allowed', {
      message: `${path} takes ${allowed.join(', ')}, not ${method}.`,
    })
  }
}

/** Returns `undefined` for a path with malformed encoding. */
function stepsOf(path: string): readonly string[] | undefined {
  try {
    return path.split('/').map((step) => decodeURIComponent(step))
  } catch {
    return undefined
  }
}

function paramsOf(pattern: readonly string[], steps: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== steps.length) return undefined
  const params = new Map<string, string>()
  for (const [index, part] of pattern.entries()) {
    const step = steps[index]!
    if (part.startsWith('{') && step !== '') params.set(part.slice(1, -1), step)
    else if (part !== step) return undefined
  }
  return Object.fromEntries(params)
}

/** OpenAPI document of the admin API, built from its routes and their schemas. It is served alongside the routes. */
function adminApi(routes: readonly AdminRoute[]): OpenApiDocument {
  const paths: OpenApiPaths = {}
  for (const route of routes) {
    const path = `/v1${route.path}`
    const methods = paths[path] ?? {}
    paths[path] = methods
    methods[route.method.toLowerCase()] = operationOf(route)
  }
  return openApiDocument({
    title: 'Signalbox admin API',
    description:
      'Accounts, money, keys, usage, vendors and tasks. Amounts are decimal dollars, times Unix milliseconds.',
    credential: 'An operator key.',
    paths,
  })
}

const IDEMPOTENCY_KEY: OpenApiParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes the change once within 24 hours; sent again, it gives the first answer without what is shown once.',
  schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,200}$' },
}

function operationOf(route: AdminRoute): OpenApiOperation {
  const { query, body, answer } = route.schemas()
  const parameters = [
    ...[...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => pathParameter(name)),
    ...queryParameters(query),
    ...(route.method === 'POST' ? [IDEMPOTENCY_KEY] : []),
  ]
  return {
    operationId: route.id,
    summary: route.summary,
    description: scopesOf(route),
    tags: [route.tag],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: { 200: answerOf(route, answer), ...ERROR_RESPONSES },
  }
}

function scopesOf({ scope, alsoScope }: AdminRoute): string {
  return alsoScope === undefined
    ? `Takes the scope \`${scope}\`.`
    : `Takes the scopes \`${scope}\` and \`${alsoScope}\`.`
}

function answerOf({ answers, summary }: AdminRoute, schema: JsonSchema | undefined) {
  if (schema !== undefined) return jsonAnswer(summary, schema)
  return { description: summary, content: Object.fromEntries(answers.map((type) => [type, {}])) }
}

function queryParameters(query: JsonSchema | undefined): OpenApiParameter[] {
  const required = (query?.['required'] ?? []) as readonly string[]
  return Object.entries((query?.['properties'] ?? {}) as Readonly<Record<string, JsonSchema>>).map(([name, schema]) => {
    return { name, in: 'query', required: required.includes(name), schema }
  })
}
