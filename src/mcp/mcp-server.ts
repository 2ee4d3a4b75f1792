import { type CallToolResult, ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server'
import { GatewayError } from '../core/errors.ts'
import type { Logger } from '../core/logger.ts'
import { complete, listResources, readResource, resourceTemplates } from './resources/resources.ts'
import { type Caller, toolContext } from './tool-context.ts'
import { TOOLS } from './tools/tools.ts'

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
export function mcpServer(caller: Caller, logger: Logger): Server {
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
