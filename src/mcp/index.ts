/**
 * The gateway as an MCP server.
 *
 * @example
 * import { mcpHandler } from 'signalbox/mcp'
 * import { expressHandler } from 'signalbox/express'
 *
 * app.use('/ai', expressHandler(gateway))
 * app.use('/mcp', expressHandler(mcpHandler(gateway, { allowedHosts: ['api.example.com'] })))
 */

export type { CallerRules } from './caller-check.ts'
export type { McpHandler } from './mcp-endpoint.ts'
export { gatewayWithMcp, type McpHandlerOptions, mcpHandler } from './mcp-handler.ts'
