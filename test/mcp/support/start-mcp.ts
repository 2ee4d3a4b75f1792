import type { Client } from '@modelcontextprotocol/client'
import { nodeHandler } from '../../../src/adapters/node.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { type McpHandler, type McpHandlerOptions, mcpHandler } from '../../../src/mcp/index.ts'
import type { SandboxOptions } from '../../../src/testing/index.ts'
import type { Mounted } from '../../adapters/support/mounts.ts'
import { listen } from '../../support/listen.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type Connecting, mcpClient } from './mcp-client.ts'

/** A gateway, its stand-ins, and its MCP server, all behind real sockets. */
export interface StartedMcp extends StartedGateway {
  readonly mcp: McpHandler
  /** Where the MCP server is. */
  readonly mcpUrl: string
  readonly mounted: Mounted
  /** Connects the official client; it is closed with the rest. */
  connect(connecting?: Connecting): Promise<Client>
}

/** Settings that may differ between tests. */
export interface McpSettings {
  readonly gateway?: Partial<GatewayOptions>
  readonly sandbox?: SandboxOptions
  readonly mcp?: McpHandlerOptions
}

/** Starts one. */
export async function startMcp({ gateway, sandbox, mcp: options }: McpSettings = {}): Promise<StartedMcp> {
  const started = await startGateway(gateway, sandbox)
  const mcp = mcpHandler(started.gateway, options)
  const mounted = await listen(nodeHandler(mcp))
  const mcpUrl = `${mounted.origin}/mcp`
  const clients: Client[] = []
  return {
    ...started,
    mcp,
    mcpUrl,
    mounted,
    async connect(connecting) {
      const client = await mcpClient(mcpUrl, connecting)
      clients.push(client)
      return client
    },
    async close() {
      for (const client of clients) await client.close()
      await mcp.close()
      await mounted.close()
      await started.close()
    },
  }
}
