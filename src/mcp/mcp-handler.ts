import { type Clock, systemClock } from '../core/clock.ts'
import { checkGateway } from '../core/exchange.ts'
import { timeOrderedIds } from '../core/ids.ts'
import { checkMembers, type MemberNames } from '../core/known-members.ts'
import { type Logger, usableLogger } from '../core/logger.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { CallerRules } from './caller-check.ts'
import { McpEndpoint, type McpHandler } from './mcp-endpoint.ts'
import { mcpServer } from './mcp-server.ts'

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

const MCP_HANDLER_OPTIONS = {
  bodyLimitBytes: true,
  logger: true,
  clock: true,
  allowedHosts: true,
  allowedOrigins: true,
} satisfies MemberNames<McpHandlerOptions>

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
