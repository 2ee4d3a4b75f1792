import { createMcpHandler, type McpServer, type McpServerFactory, type Server } from '@modelcontextprotocol/server'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import type { Ids } from '../core/ids.ts'
import { parseCallerJson } from '../core/json.ts'
import type { Logger } from '../core/logger.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { respondError } from '../stages/respond.ts'
import type { Principal } from '../stores/principal.ts'
import { joinChunks } from '../wire/join-chunks.ts'
import { type CallerRules, callerCheck } from './caller-check.ts'
import { CallsUnderWay } from './calls-under-way.ts'
import type { McpHandler } from './mcp-handler.ts'
import { protocolRequest } from './protocol-request.ts'
import { checkContentType, readRequestBody } from './request-body.ts'
import { cancelledId, messageOf, sessionOf } from './rpc-message.ts'
import { respondJson, respondParseError, sendResponse } from './rpc-response.ts'
import { ServedExchange } from './served-exchange.ts'
import type { Caller } from './tool-context.ts'

/** What an endpoint is made of. */
export interface McpEndpointParts {
  readonly gateway: Gateway
  /** Makes the server of one exchange. */
  readonly serverFor: (caller: Caller) => Server | McpServer
  readonly bodyLimitBytes: number
  readonly logger: Logger
  readonly clock: Clock
  readonly ids: Ids
  readonly rules: CallerRules
}

/** Paths that are answered: the handler's own below a shared mount, and a mount of its own. */
const PATHS: ReadonlySet<string> = new Set(['/mcp', '/mcp/', '/'])

/** Takes requests in, finds out who sends them, and has the SDK carry each out on a server of its own. */
export class McpEndpoint implements McpHandler {
  readonly #parts: McpEndpointParts
  readonly #checkCaller: (request: GatewayRequest) => void
  readonly #protocol: ReturnType<typeof createMcpHandler>
  readonly #underWay = new CallsUnderWay()
  readonly #open = new Set<AbortController>()
  #isClosed = false

  constructor(parts: McpEndpointParts) {
    this.#parts = parts
    this.#checkCaller = callerCheck(parts.rules)
    const { logger, serverFor } = parts
    const serve: McpServerFactory = ({ authInfo: exchange, era }) => {
      if (!(exchange instanceof ServedExchange)) throw new TypeError('the caller of this exchange is not known')
      const server = serverFor(exchange.caller)
      // The older revision answers with a stream that can hold more than the result.
      if (era === 'modern') exchange.takeResult(server)
      return server
    }
    this.#protocol = createMcpHandler(serve, {
      maxRequestBodySize: parts.bodyLimitBytes,
      // Mostly what clients did wrong, which they are told.
      onerror: (error) => logger.debug('the MCP server reports', { error }),
    })
  }

  handle(request: GatewayRequest, sink: ByteSink): void {
    const requestId = this.#parts.ids.next('req')
    this.#answer(request, sink).catch((cause: unknown) => {
      const error = GatewayError.from(cause)
      if (error.code === 'internal_error') {
        this.#parts.logger.error('a request failed inside the MCP server', { requestId, error: error.cause })
      }
      const headers = error.code === 'method_not_allowed' ? ['allow', 'POST'] : []
      respondError(sink, error, { dialect: 'openai', requestId, headers })
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const departure of this.#open) departure.abort()
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
    // There are no streams to open by GET, and no sessions to end by DELETE.
    if (request.method !== 'POST') {
      throw new GatewayError('method_not_allowed', { message: `${request.path} takes POST, not ${request.method}.` })
    }
    checkContentType(request)
    const bytes = joinChunks(await readRequestBody(request, bodyLimitBytes))
    let body: unknown
    try {
      body = parseCallerJson(bytes)
    } catch (cause) {
      respondParseError(sink, GatewayError.from(cause))
      return
    }
    await this.#exchange({ request, sink, principal, body })
  }

  async #exchange({ request, sink, principal, body }: Exchange): Promise<void> {
    const { gateway, clock, ids, logger } = this.#parts
    const departure = new AbortController()
    const session = sessionOf(request)
    const message = messageOf(body)
    const cancelled = cancelledId(message)
    if (session !== undefined && cancelled !== undefined) {
      this.#underWay.cancel({ principal, session, id: cancelled })
    }
    const release =
      session === undefined || message?.id === undefined
        ? () => undefined
        : this.#underWay.enter({ principal, session, id: message.id }, departure)
    this.#open.add(departure)
    try {
      const exchange = new ServedExchange({ gateway, principal, clock })
      const asked = protocolRequest(request, departure.signal)
      sink.onClose(() => departure.abort())
      const response = await this.#protocol.fetch(asked, { authInfo: exchange, parsedBody: body })
      if (exchange.result !== undefined) {
        respondJson(sink, 200, exchange.result)
        return
      }
      const headers = message?.method === 'initialize' && response.ok ? ['mcp-session-id', ids.next('mcp')] : []
      await sendResponse(response, sink, {
        headers,
        signal: departure.signal,
        onBreak: (error) => logger.warn('an MCP stream broke', { error }),
      })
    } finally {
      release()
      this.#open.delete(departure)
    }
  }
}

/** One request whose caller is known and whose body has been read. */
interface Exchange {
  readonly request: GatewayRequest
  readonly sink: ByteSink
  readonly principal: Principal
  readonly body: unknown
}
