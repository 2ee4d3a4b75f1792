import { ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server'
import { GatewayError } from '../core/errors.ts'
import type { Logger } from '../core/logger.ts'
import { complete } from './resources/complete.ts'
import { listResources, readResource, resourceTemplates } from './resources/resources.ts'
import { type Caller, toolContext } from './tool-context.ts'
import { toolError } from './tool-error.ts'
import { TOOLS } from './tools/tools.ts'

/** Version of the surface: that of the API which the tools carry out (API specification, "Versioning"). */
const SURFACE_VERSION = '1.0.0'

const INSTRUCTIONS =
  'Models of several vendors behind one key: chat, pictures, video, embeddings and speech. list_models names the models, ' +
  'estimate_cost says what a request would cost at most, and every other call is charged to the account of the key. ' +
  'Videos are made by submit_video and waited for with wait_for_video. The fields of each request stand in ' +
  'gateway://reference/{endpoint}.'

const TOOLS_BY_NAME = new Map(TOOLS.map((tool) => [tool.name, tool]))
const LISTED_TOOLS = TOOLS.map((tool) => tool.listed)

/**
 * A server for one exchange of one caller. It is made anew each time, so callers have nothing in common but the gateway.
 */
export function mcpServer(caller: Caller, logger: Logger): Server {
  const server = new Server(
    { name: 'signalbox', title: 'Signalbox AI gateway', version: SURFACE_VERSION },
    { capabilities: { tools: {}, resources: {}, completions: {} }, instructions: INSTRUCTIONS },
  )
  server.setRequestHandler('tools/list', () => ({ tools: LISTED_TOOLS }))
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const tool = TOOLS_BY_NAME.get(params.name)
    if (tool === undefined) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${JSON.stringify(params.name)}.`)
    }
    try {
      return await tool.call(params.arguments ?? {}, toolContext(caller, context))
    } catch (cause) {
      // What the gateway refuses or reports itself is known to the operator already.
      if (!GatewayError.isInstance(cause)) logger.error('a tool failed', { tool: tool.name, error: cause })
      return toolError(GatewayError.from(cause))
    }
  })
  server.setRequestHandler('resources/list', () => ({ resources: listResources() }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: resourceTemplates() }))
  server.setRequestHandler('resources/read', ({ params }) => readResource(caller.gateway, params.uri))
  server.setRequestHandler('completion/complete', ({ params }) => complete(caller.gateway, params))
  return server
}
