import { type CallToolResult, ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server'
import { type Clock, systemClock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { checkGateway } from '../core/exchange.ts'
import { timeOrderedIds } from '../core/ids.ts'
import { checkMembers, memberNames } from '../core/known-members.ts'
import { type Logger, usableLogger } from '../core/logger.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { type CallerRules, McpEndpoint, type McpHandler } from './mcp-endpoint.ts'
import { complete, listResources, readResource, resourceTemplates } from './resources/resources.ts'
import { type Caller, toolContext } from './tool.ts'
import { TOOLS } from './tools/tools.ts'

/**
 * The gateway as an MCP server.
 *
 * @example
 * import { mcpHandler } from './caller-check.ts'
 * import { expressHandler } from 'signalbox/express'
 *
 * app.use('/ai', expressHandler(gateway))
 * app.use('/mcp', expressHandler(mcpHandler(gateway, { allowedHosts: ['api.example.com'] })))
 */

export type { CallerRules, McpHandler } from './mcp-endpoint.ts'

/** Equal to the gateway's default, so that both accept the same images. */
const DEFAULT_BODY_LIMIT_BYTES = 32 * 1024 * 1024

/** Options of {@link mcpHandler}. */
export interface McpHandlerOptions extends CallerRules {
  /** Maximum size of a request body. Default 32 MiB. */
  readonly bodyLimitBytes?: number
  /** Logger. Silent by default. */
  readonly logger?: Logger
  /** Clock for the waits of `wait_for_video`. Defaults to the system clock. */
  readonly clock?: Clock
}

const MCP_HANDLER_OPTIONS = memberNames<McpHandlerOptions>()('bodyLimitBytes logger clock allowedHosts allowedOrigins')

/**
 * Offers a gateway's abilities as tools and resources of the Model Context Protocol, by streamable HTTP (API specification, "What the
 * service does", 5). Serves `/mcp` below its mount, or the mount itself, and accepts the gateway's own keys. Every tool call is a
 * gateway request by that key: with the same limits, charges and isolation. Supports revisions 2025-11-25 and 2026-07-28 of the
 * protocol, without sessions that would bind a client to this process.
 * @throws GatewayError `invalid_request` if allowed hosts or origins are malformed.
 */
export function mcpHandler(gateway: Gateway, options: McpHandlerOptions = {}): McpHandler {
  checkMembers(options, MCP_HANDLER_OPTIONS, 'mcpHandler')
  checkGateway(gateway, 'mcpHandler')
  const { bodyLimitBytes = DEFAULT_BODY_LIMIT_BYTES, clock = systemClock } = options
  const logger = usableLogger(options.logger)
  return new McpEndpoint({
    gateway,
    serverFor: (caller) => mcpServer(caller, logger),
    bodyLimitBytes,
    logger,
    clock,
    ids: timeOrderedIds,
    rules: options,
  })
}

/**
 * Serves a gateway and its MCP server behind one mount: `/mcp` goes to the server, every other path to the gateway. Closing it closes
 * only the MCP server.
 * @throws GatewayError as {@link mcpHandler} does.
 */
export function gatewayWithMcp(gateway: Gateway, options: McpHandlerOptions = {}): McpHandler {
  const mcp = mcpHandler(gateway, options)
  return {
    handle(request, sink) {
      const isMcp = request.path === '/mcp' || request.path === '/mcp/'
      return (isMcp ? mcp : gateway).handle(request, sink)
    },
    workEnded: () => gateway.workEnded(),
    close: () => mcp.close(),
  }
}

/** Version of the API behind the tools (API specification, "Versioning"). */
const SURFACE_VERSION = '1.0.0'

const INSTRUCTIONS =
  'Models of several vendors behind one key: chat, images, video, embeddings, reranking, speech and transcription. list_models names the models, ' +
  'estimate_cost returns the highest cost of a request, and every other call is charged to the account of the key. ' +
  'Create videos with submit_video, and wait for them with wait_for_video. The fields of each request are in ' +
  'gateway://reference/{endpoint}.'

const TOOLS_BY_NAME = new Map(TOOLS.map((tool) => [tool.name, tool]))
const LISTED_TOOLS = TOOLS.map((tool) => tool.listed)

/** Creates a server for one exchange of one caller. Callers share only the gateway. */
function mcpServer(caller: Caller, logger: Logger): Server {
  const server = new Server(
    { name: 'signalbox', title: 'Signalbox AI gateway', version: SURFACE_VERSION },
    { capabilities: { tools: {}, resources: {}, completions: {} }, instructions: INSTRUCTIONS },
  )
  server.setRequestHandler('tools/list', () => ({ tools: LISTED_TOOLS }))
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const tool = TOOLS_BY_NAME.get(params.name)
    const observed = caller.beginToolCall?.(tool?.name, context.mcpReq)
    if (tool === undefined) {
      observed?.ended('refused')
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${JSON.stringify(params.name)}.`)
    }
    try {
      const result = await tool.call(params.arguments ?? {}, toolContext(caller, context, observed))
      observed?.ended('completed')
      return result
    } catch (cause) {
      // The gateway has already reported its own errors.
      if (!GatewayError.isInstance(cause)) logger.error('a tool failed', { tool: tool.name, error: cause })
      const error = GatewayError.from(cause)
      observed?.ended(error.code === 'client_closed_request' ? 'abandoned' : 'failed', error.code)
      return toolError(error)
    }
  })
  server.setRequestHandler('resources/list', () => ({ resources: listResources() }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: resourceTemplates() }))
  server.setRequestHandler('resources/read', ({ params }) => readResource(caller, params.uri))
  server.setRequestHandler('completion/complete', ({ params }) => complete(caller, params))
  return server
}

/** Returns an error as the result of a tool, so that the model can react to it. Equal calls get equal results. */
function toolError(error: GatewayError): CallToolResult {
  const { message, publicCode: code, param, status, retryAfterSeconds } = error
  const shown = {
    code,
    message,
    status,
    ...(param === undefined ? {} : { param }),
    ...(retryAfterSeconds === undefined ? {} : { retry_after_seconds: retryAfterSeconds }),
  }
  return { isError: true, content: [{ type: 'text', text: JSON.stringify({ error: shown }) }] }
}
