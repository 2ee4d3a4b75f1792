import type { ByteSink, GatewayRequest } from '../core/exchange.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { type McpHandler, type McpHandlerOptions, mcpHandler } from './mcp-handler.ts'

/**
 * A gateway and its MCP server behind one mount: `/mcp` is the server's, every other path the gateway's. Closing it closes
 * the MCP server alone.
 * @throws TypeError as {@link mcpHandler} does.
 */
export function gatewayWithMcp(gateway: Gateway, options: McpHandlerOptions = {}): McpHandler {
  const mcp = mcpHandler(gateway, options)
  return {
    handle(request: GatewayRequest, sink: ByteSink): void {
      const isMcp = request.path === '/mcp' || request.path === '/mcp/'
      ;(isMcp ? mcp : gateway).handle(request, sink)
    },
    close: () => mcp.close(),
  }
}
