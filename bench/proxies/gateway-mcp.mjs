import { createServer } from 'node:http'
import { importBuilt } from '../built.mjs'
import { startGateway } from './gateway.mjs'

export const name = 'gateway-mcp'
export const title = 'signalbox, MCP tool'
export const isTranslating = true
export const isOwn = true
/** Chats are sent as calls of the tool `chat_complete`. */
export const isMcp = true

/** The gateway with its MCP server. */
export async function serve({ upstreamPort }) {
  const { nodeHandler } = await importBuilt('node')
  const { gatewayWithMcp } = await importBuilt('mcp')
  const { gateway, account } = await startGateway({ upstreamPort })
  return { server: createServer(nodeHandler(gatewayWithMcp(gateway))), account }
}
