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
import { parseCallerJson } from '../core/json.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import { type Logger, usableLogger } from '../core/logger.ts'
import { openaiErrors } from '../endpoints/error-dialect.ts'
import { type JsonSchema, jsonSchemaOf } from '../endpoints/schema.ts'
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
  type Operator,
  type OperatorRules,
  Operators,
} from './admin-route.ts'
import { type Change, inputOf, isReported, recordChange, runRoute, stateOf, targetOf, withoutSecret } from './change.ts'
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

/** Change over HTTP, which is reported to the host. */
interface ReportedChange extends Change<Gateway> {
  readonly requestId: string
  readonly address: string | undefined
}

/** Identifies operators, finds routes, and writes answers. */
class AdminEndpoint implements ExchangeHandler {
  readonly #parts: EndpointParts

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
    const matched = matchRoute(request.method, path.replace(/^\/v1(?=\/)/, ''))
    const { route } = matched
    const isChange = route.method !== 'GET'
    const call = this.#call(request, matched, operator)
    let change: ReportedChange = { route, call, requestId, address: this.#parts.operators.addressOf(request) }
    try {
      checkScopes(operator, route)
      if (isChange && this.#parts.isReadOnly)
        throw new GatewayError('method_not_allowed', { message: 'Nothing can be changed here.' })
      if (isChange && !operator.hasKey) checkSameOrigin(request)
      checkIdempotencyKey(call)
      if (isChange) {
        change = { ...change, call: { ...call, body: await readJson(request) } }
        change = { ...change, before: await stateOf(change) }
      }
      const { answer, isReplayed } = await this.#made(change, request)
      if (isChange) change = { ...change, answer }
      // A repeated request changes nothing; the change was reported before.
      if (isReported(route) && !isReplayed) await this.#report(change, undefined)
      await this.#send(sink, requestId, answer)
    } catch (cause) {
      const error = GatewayError.from(cause)
      if (isReported(route)) await this.#report({ ...change, answer: undefined }, error)
      throw error
    }
  }

  /** Runs a route, or returns the answer of the same change before. */
  async #made(
    { route, call }: Change<Gateway>,
    { path }: GatewayRequest,
  ): Promise<{ readonly answer: AdminAnswer | StoredAnswer; readonly isReplayed: boolean }> {
    const { idempotencyKey: key, operator, gateway, body } = call
    if (route.method === 'GET' || key === undefined || route.answers.join() !== 'application/json')
      return { answer: await runRoute(route, call), isReplayed: false }
    let answer: AdminAnswer | undefined
    const request = JSON.stringify([route.method, pathBelowMount(path), body ?? null])
    const made = await gateway.operatorActions.once({ operator: operator.name, key, request }, async () => {
      answer = await runRoute(route, call)
      return storedAnswer(answer, route.secret)
    })
    return { answer: answer ?? made.answer, isReplayed: answer === undefined }
  }

  #call(request: GatewayRequest, { params }: MatchedRoute, operator: Operator): AdminCall {
    const { gateway, clock, isReadOnly } = this.#parts
    const query = new URLSearchParams(request.query)
    const idempotencyKey = request.header('idempotency-key')
    return { gateway, clock, isReadOnly, operator, params, query, body: undefined, idempotencyKey }
  }

  async #report(change: ReportedChange, error: GatewayError | undefined): Promise<void> {
    const { route, call, requestId, address } = change
    const action = {
      requestId,
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
      await recordChange(change, { source: 'admin_api', address, requestId }, action.code)
    } catch (cause) {
      // The change was made, so its answer is sent. Without the answer, the operator would repeat the change.
      gateway.operatorActions.reportFault(cause, () =>
        logger.error('a change by an operator could not be added to the audit', { ...action, error: cause }),
      )
    }
  }

  async #send(sink: ByteSink, requestId: string, answer: AdminAnswer | StoredAnswer): Promise<void> {
    if ('json' in answer) return sendJson(sink, requestId, answer.json)
    if ('forward' in answer) return answer.forward(sink)
    if ('csv' in answer) return await sendCsv(sink, requestId, answer.csv)
    const headers = [...answer.headers, 'x-request-id', requestId, 'idempotent-replayed', 'true']
    respondWhole(sink, { status: answer.status, headers }, [answer.body])
  }
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

/** Routes with patterns of their paths. */
const PATTERNS = ADMIN_ROUTES.map((route) => {
  return { route, pattern: new RegExp(`^${route.path.replaceAll('.', '\\.').replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`) }
})

/**
 * Finds the route of a method and path.
 * @param path Path below `/v1`, still percent-encoded.
 * @throws GatewayError `route_not_found`, or `method_not_allowed`.
 */
function matchRoute(method: string, path: string): MatchedRoute {
  const allowed: string[] = []
  for (const { route, pattern } of PATTERNS) {
    const params = decodedParams(pattern.exec(path))
    if (params === undefined) continue
    if (route.method === method || (method === 'HEAD' && route.method === 'GET')) return { route, params }
    allowed.push(route.method)
  }
  if (allowed.length === 0)
    throw new GatewayError('route_not_found', { message: `There is no route ${method} ${path}.` })
  throw new GatewayError('method_not_allowed', { message: `${path} takes ${allowed.join(', ')}, not ${method}.` })
}

/** Returns `undefined` for a path of another route, or with malformed encoding. */
function decodedParams(match: RegExpExecArray | null): Readonly<Record<string, string>> | undefined {
  if (match === null) return undefined
  try {
    const params = Object.entries(match.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)])
    return Object.fromEntries(params)
  } catch {
    return undefined
  }
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
  const [query, body] = [route.query, route.body].map((schema) => schema && jsonSchemaOf(schema, 'input'))
  const answer = route.answer && jsonSchemaOf(route.answer, 'output')
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
