import { createServer } from 'node:http'
import { startGateway } from './gateway.mjs'

export const name = 'gateway-mcp'
export const title = 'signalbox, MCP tool'
export const isTranslating = true
/** Chats are asked for as calls of the tool `chat_complete`. */
export const isMcp = true

/** The same gateway behind its MCP server. */
export async function serve({ upstreamPort }) {
  const { nodeHandler } = await import('../../dist/node.js')
  const { gatewayWithMcp } = await import('../../dist/mcp.js')
  const { gateway, account } = await startGateway({ upstreamPort })
  return { server: createServer(nodeHandler(gatewayWithMcp(gateway))), account }
}
