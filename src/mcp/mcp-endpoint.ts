import { Buffer } from 'node:buffer'
import {
  type AuthInfo,
  createMcpHandler,
  type JSONRPCMessage,
  type McpServer,
  type McpServerFactory,
  type Server,
  type Transport,
} from '@modelcontextprotocol/server'
import { serializedOrigin } from '../adapters/cors.ts'
import { InFlightCalls } from '../core/calls-in-flight.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import {
  type ByteSink,
  type ExchangeHandler,
  type GatewayRequest,
  unreadableBody,
  wholeBody,
} from '../core/exchange.ts'
import type { Ids } from '../core/ids.ts'
import { parseCallerJson } from '../core/json.ts'
import type { Logger } from '../core/logger.ts'
import { openaiErrors } from '../endpoints/error-dialect.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { respondError } from '../pipeline/respond.ts'
import type { Principal } from '../stores/principal.ts'
import { joinChunks } from '../wire/chunks.ts'
import { mediaType } from '../wire/headers.ts'
import { cancelledId, messageOf, protocolRequest, sessionOf } from './protocol-request.ts'
import { type Caller, toolCallsIn } from './tool.ts'

/** MCP server of a gateway. Mount it with the adapters, like the gateway itself. */
export interface McpHandler extends ExchangeHandler {
  /** Aborts requests in progress and then answers with 503. The gateway itself stays open. */
  close(): Promise<void>
}

/** Parts of an endpoint. */
interface McpEndpointParts {
  readonly gateway: Gateway
  /** Creates the server for one exchange. */
  readonly serverFor: (caller: Caller) => Server | McpServer
  readonly bodyLimitBytes: number
  readonly logger: Logger
  readonly clock: Clock
  readonly ids: Ids
  readonly rules: CallerRules
}

/** Served paths: `/mcp` below a shared mount, and `/` for a separate mount. */
const PATHS: ReadonlySet<string> = new Set(['/mcp', '/mcp/', '/'])

/** Authenticates requests and passes each to the SDK with its own server. */
export class McpEndpoint implements McpHandler {
  readonly answersAtMount = true
  readonly #parts: McpEndpointParts
  readonly #checkCaller: (request: GatewayRequest) => void
  readonly #protocol: ReturnType<typeof createMcpHandler>
  readonly #calls = new InFlightCalls()
  #isClosed = false

  constructor(parts: McpEndpointParts) {
    this.#parts = parts
    this.#checkCaller = callerCheck(parts.rules)
    const { logger, serverFor } = parts
    const serve: McpServerFactory = ({ authInfo: exchange, era }) => {
      if (!(exchange instanceof ServedExchange)) throw new TypeError('the caller of this exchange is not known')
      const server = serverFor(exchange.caller)
      // Answers of the older revision are streams that may contain more than the result.
      if (era === 'modern') exchange.takeResult(server)
      return server
    }
    this.#protocol = createMcpHandler(serve, {
      maxRequestBodySize: parts.bodyLimitBytes,
      // These are mostly client mistakes, which the client gets as errors.
      onerror: (error) => logger.debug('the MCP server reports', { error }),
    })
  }

  handle(request: GatewayRequest, sink: ByteSink): Promise<void> {
    const requestId = this.#parts.ids.next('req')
    return this.#answer(request, sink).catch((cause: unknown) => {
      const error = GatewayError.from(cause)
      if (error.code === 'internal_error') {
        this.#parts.logger.error('a request failed inside the MCP server', { requestId, error: error.cause })
      }
      const headers = error.code === 'method_not_allowed' ? ['allow', 'POST'] : []
      respondError(sink, error, { dialect: openaiErrors, requestId, headers })
    })
  }

  workEnded(): Promise<void> {
    return this.#parts.gateway.workEnded()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#calls.abortAll()
    await this.#protocol.close()
  }

  async #answer(request: GatewayRequest, sink: ByteSink): Promise<void> {
    const { gateway, bodyLimitBytes } = this.#parts
    if (!PATHS.has(request.path)) {
      throw new GatewayError('route_not_found', { message: `There is no route ${request.method} ${request.path}.` })
    }
    this.#checkCaller(request)
    if (this.#isClosed) throw new GatewayError('gateway_closing')
    const principal = await gateway.authenticate(request)
    // GET opens no streams, and DELETE ends no sessions.
    if (request.method !== 'POST') {
      throw new GatewayError('method_not_allowed', { message: `${request.path} takes POST, not ${request.method}.` })
    }
    checkContentType(request)
    const bytes = joinChunks(await wholeBody(request, bodyLimitBytes))
    let body: unknown
    try {
      body = parseCallerJson(bytes)
    } catch (cause) {
      const fault = unreadableBody(request, cause)
      if (fault !== cause) throw fault
      respondParseError(sink, GatewayError.from(cause))
      return
    }
    await this.#exchange({ request, sink, principal, body })
  }

  async #exchange({ request, sink, principal, body }: Exchange): Promise<void> {
    const { gateway, clock, ids, logger } = this.#parts
    if (this.#isClosed) throw new GatewayError('gateway_closing')
    const abort = new AbortController()
    const message = messageOf(body)
    // The session distinguishes clients with the same key. Nothing else is stored for it, so any process can serve any session.
    const session = sessionOf(request)
    const nameOf = (id: string | number | undefined): string | undefined =>
      session === undefined || id === undefined
        ? undefined
        : JSON.stringify([principal.accountId, principal.keyId, session, id])
    const cancelled = nameOf(cancelledId(message))
    if (cancelled !== undefined) this.#calls.cancel(cancelled)
    this.#calls.add(abort, nameOf(message?.id))
    try {
      const exchange = new ServedExchange({
        gateway,
        principal,
        clock,
        identify: () => gateway.authenticate(request),
        beginToolCall: toolCallsIn(request, gateway, principal),
      })
      const asked = protocolRequest(request, abort.signal)
      sink.onClose(() => abort.abort())
      const response = await this.#protocol.fetch(asked, { authInfo: exchange, parsedBody: body })
      if (exchange.result !== undefined) {
        respondJson(sink, 200, exchange.result)
        return
      }
      const headers = message?.method === 'initialize' && response.ok ? ['mcp-session-id', ids.next('mcp')] : []
      await sendResponse(response, sink, {
        headers,
        signal: abort.signal,
        onBreak: (error) => logger.warn('an MCP stream broke', { error }),
      })
    } finally {
      this.#calls.delete(abort)
    }
  }
}

/** An authenticated request whose body has been read. */
interface Exchange {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly principal: Principal
  readonly body: unknown
}

/** One exchange in the form that the SDK passes to the factory of servers, in place of a credential record. It exposes no credential. */
class ServedExchange implements AuthInfo {
  readonly token = ''
  readonly clientId: string
  readonly scopes: string[] = []
  readonly caller: Caller
  #result: JSONRPCMessage | undefined

  constructor(caller: Caller) {
    this.caller = caller
    this.clientId = caller.principal.keyId
  }

  /** Result that {@link takeResult} intercepted; the SDK's own response is then empty. */
  get result(): JSONRPCMessage | undefined {
    return this.#result
  }

  /**
   * Intercepts the result of a server before it is connected to the transport of one exchange, and closes that transport. Otherwise
   * the SDK would build a web `Response` that is read again, which takes a fifth of the time of a tool call. The SDK still sends
   * errors, which have their own statuses, and results after notifications, which belong to a stream.
   */
  takeResult(server: Server | McpServer): void {
    const connect = server.connect.bind(server)
    const connectIntercepted: typeof server.connect = (transport) => {
      transport.send = this.#taking(transport, transport.send.bind(transport))
      return connect(transport)
    }
    server.connect = connectIntercepted
  }

  /** Passes other messages on, and intercepts the result. */
  #taking(transport: Transport, send: Transport['send']): Transport['send'] {
    let isFirst = true
    return (message, options) => {
      if (!isFirst || !('result' in message)) {
        isFirst = false
        return send(message, options)
      }
      this.#result = message
      return transport.close()
    }
  }
}

/** @throws GatewayError `unsupported_media_type`. */
function checkContentType(request: GatewayRequest): void {
  if (mediaType(request.header('content-type')) === 'application/json') return
  throw new GatewayError('unsupported_media_type', { message: 'Send the body as Content-Type: application/json.' })
}

/** Headers of one connection (RFC 9110, section 7.6.1); the adapter sets its own. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'transfer-encoding'])

/** JSON-RPC 2.0, "Error object": the body is not JSON. */
const PARSE_ERROR = -32_700

/** JSON-RPC 2.0, "Error object": the JSON is not a valid request. */
const INVALID_REQUEST = -32_600

/** Answers a body that is not JSON, with a JSON-RPC error. */
function respondParseError(sink: ByteSink, error: GatewayError): void {
  const code = error.code === 'invalid_json' ? PARSE_ERROR : INVALID_REQUEST
  respondJson(sink, error.status, { jsonrpc: '2.0', id: null, error: { code, message: error.message } })
}

/** Answers with one message. */
function respondJson(sink: ByteSink, status: number, message: object): void {
  const body = Buffer.from(JSON.stringify(message))
  sink.head(status, ['content-type', 'application/json', 'content-length', String(body.byteLength)])
  sink.end(body)
}

interface Sending {
  /** Additional response headers, as a flat list. */
  readonly headers: readonly string[]
  /** Aborts when the caller disconnects or cancels. */
  readonly signal: AbortSignal
  /** Called if a stream fails after it has begun. The caller's connection is then closed. */
  readonly onBreak: (error: unknown) => void
}

/** Sends a response: event streams as they arrive, with backpressure; everything else whole. */
async function sendResponse(response: Response, sink: ByteSink, sending: Sending): Promise<void> {
  const list = [...sending.headers]
  for (const [name, value] of response.headers) if (!CONNECTION_HEADERS.has(name)) list.push(name, value)
  if (mediaType(response.headers.get('content-type') ?? undefined) !== 'text/event-stream') {
    const bytes = new Uint8Array(await response.arrayBuffer())
    if (bytes.byteLength > 0) list.push('content-length', String(bytes.byteLength))
    sink.head(response.status, list)
    sink.end(bytes)
    return
  }
  sink.head(response.status, list)
  try {
    if (response.body !== null) await pump(response.body.getReader(), sink, sending.signal)
    sink.end()
  } catch (error) {
    sink.destroy()
    sending.onBreak(error)
  }
}

async function pump(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  sink: ByteSink,
  signal: AbortSignal,
): Promise<void> {
  let resume: (() => void) | undefined
  const go = (): void => resume?.()
  sink.onDrain(go)
  signal.addEventListener('abort', go)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      if (sink.closed) return await reader.cancel()
      if (sink.write(value) || signal.aborted) continue
      await new Promise<void>((resolve) => {
        resume = resolve
      })
    }
  } finally {
    signal.removeEventListener('abort', go)
  }
}

/** Host names that only this machine can use for itself. */
const LOCAL_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/** Hosts and origins from which requests are accepted. */
export interface CallerRules {
  /** Host names of the server, without ports; `any` disables the check. Names of this machine are always allowed. */
  readonly allowedHosts?: readonly string[] | 'any' | undefined
  /** Origins of web pages and apps, such as `https://app.example.com`; `any` disables the check. */
  readonly allowedOrigins?: readonly string[] | 'any' | undefined
}

/**
 * Creates the check against DNS rebinding (MCP specification, "Security warning" of the streamable HTTP transport): a page whose host
 * name resolves to this server sends that name as `Host` and its own origin as `Origin`. Requests without `Origin` do not come from a
 * browser and pass, as do origins on an allowed host.
 * @returns a function that throws GatewayError `permission_denied`.
 * @throws GatewayError `invalid_request` if an allowed host has a scheme, port or path, or an allowed origin is malformed.
 */
function callerCheck({ allowedHosts = [], allowedOrigins = [] }: CallerRules): (request: GatewayRequest) => void {
  const hosts = new Set([...LOCAL_NAMES, ...(allowedHosts === 'any' ? [] : allowedHosts.map(checkedHost))])
  const origins = new Set(allowedOrigins === 'any' ? [] : allowedOrigins.map(checkedOrigin))
  return (request) => {
    const host = hostName(request.header('host'))
    if (allowedHosts !== 'any' && (host === undefined || !hosts.has(host))) throw refused('Host', 'allowedHosts')
    const origin = request.header('origin')
    if (origin === undefined || allowedOrigins === 'any') return
    const told = serializedOrigin(origin)
    if (told === undefined || !(origins.has(told) || hosts.has(new URL(origin).hostname)))
      throw refused('Origin', 'allowedOrigins')
  }
}

function refused(header: string, option: string): GatewayError {
  return new GatewayError('permission_denied', {
    message: `The ${header} of the request is not allowed here; the operator allows it by the option ${option}.`,
  })
}

/** Returns the name in a `Host` header, in lower case and without the port, or `undefined` if there is none. */
function hostName(header: string | undefined): string | undefined {
  if (header === undefined || /[/@?#\\\s]/.test(header) || !URL.canParse(`http://${header}`)) return undefined
  return new URL(`http://${header}`).hostname
}

function checkedHost(host: string): string {
  if (hostName(host) === undefined || /:\d+$/.test(host)) {
    throw badOption('allowedHosts', host, 'a host name without scheme, port or path')
  }
  return hostName(host)!
}

function checkedOrigin(origin: string): string {
  const written = origin.replace(/\/$/, '').toLowerCase()
  if (serializedOrigin(written) === written) return written
  throw badOption('allowedOrigins', origin, 'an origin such as https://app.example.com')
}

function badOption(param: string, value: string, wanted: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${JSON.stringify(value)} must be ${wanted}`, param })
}
