import { jsonFaults, mcpChatFaults } from '../answer-faults.mjs'
import { CHAT_COST } from '../costs.mjs'
import { load } from '../measurements/load.mjs'
import { chatBody, chatRequest, post } from '../requests.mjs'

const MODEL = 'bench-chat'

/** One call at a time, so that the time of an answer includes only its own work. */
export const scenario = {
  name: 'mcp-call',
  title: 'one chat after another, by HTTP and as an MCP tool',
  unit: 'ms, p50',
  measurement: load,
  load: { connections: 1 },
  unitsPerAnswer: 1,
  costNanoDollars: CHAT_COST,
  headline: 'p50Ms',
  comparison: 'difference',
  target: 1,
  request: (proxy) => (proxy.isMcp ? toolCall() : chatRequest(MODEL)),
  faultsOf: (answer, proxy) =>
    proxy.isMcp
      ? mcpChatFaults(answer, { model: MODEL })
      : jsonFaults(answer, { proxy, model: MODEL, isWhole: (body) => body.choices[0].message.content.length > 400 }),
}

const REVISION = '2026-07-28'

/** The same chat by streamable HTTP, in the revision that answers with plain JSON. Clients must accept both kinds. */
function toolCall() {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const params = { name: 'chat_complete', arguments: chatBody(MODEL), _meta: meta }
  const request = post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const headers = [
    'accept: application/json, text/event-stream',
    `mcp-protocol-version: ${REVISION}`,
    'mcp-method: tools/call',
    'mcp-name: chat_complete',
  ]
  return request.replace('accept: application/json', headers.join('\r\n'))
}
