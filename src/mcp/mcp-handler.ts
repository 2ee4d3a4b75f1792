import { type Clock, systemClock } from '../core/clock.ts'
import type { ExchangeHandler } from '../core/exchange.ts'
import { timeOrderedIds } from '../core/ids.ts'
import { type Logger, silentLogger } from '../core/logger.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { CallerRules } from './caller-check.ts'
import { McpEndpoint } from './mcp-endpoint.ts'
import { mcpServer } from './mcp-server.ts'

/** Largest request body unless the options say otherwise: that of the gateway, so that the same pictures fit. */
const DEFAULT_BODY_LIMIT_BYTES = 32 * 1024 * 1024

/** Options of {@link mcpHandler}. */
export interface McpHandlerOptions extends CallerRules {
  /** Largest request body. Default 32 MiB. */
  readonly bodyLimitBytes?: number
  /** Default: silent. */
  readonly logger?: Logger
  /** Times the waits of `wait_for_video`. Default: the machine's clock. */
  readonly clock?: Clock
}

/** The MCP server of a gateway. Mount it with the adapters, as the gateway itself. */
export interface McpHandler extends ExchangeHandler {
  /** Ends what is under way and answers 503 from now on. The gateway itself is left open. */
  close(): Promise<void>
}

/**
 * Offers a gateway's abilities as tools and resources of the Model Context Protocol, by streamable HTTP (API specification,
 * "What the service does", 5). It answers `/mcp` below its mount, or the mount itself, and takes the gateway's own keys.
 * Every tool is a request of the gateway in the name of the key: same limits, same bill, same isolation. Revisions
 * 2025-11-25 and 2026-07-28 of the protocol are spoken, both without sessions that would bind a client to this process.
 * @throws TypeError for allowed hosts or origins that are none.
 */
export function mcpHandler(gateway: Gateway, options: McpHandlerOptions = {}): McpHandler {
  const { bodyLimitBytes = DEFAULT_BODY_LIMIT_BYTES, logger = silentLogger, clock = systemClock } = options
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
