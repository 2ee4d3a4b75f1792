// Measures the cost of one call of the MCP tool `chat_complete`, compared with the same chat without MCP, without sockets; see
// in-process.mjs.
//
//   node --expose-gc bench/in-process-mcp.mjs [calls per round]
//   node --cpu-prof --cpu-prof-interval 100 bench/in-process-mcp.mjs
import { mcpHandler } from '../dist/mcp.js'
import { CHAT, openChatGateway } from './in-process-chat.mjs'
import { CHAT_REQUEST } from './in-process-messages.mjs'
import { measureRounds, sendOnce } from './in-process-rounds.mjs'

const REVISION = '2026-07-28'

const perRound = Number(process.argv[2] ?? 3_000)

const gateway = await openChatGateway({ billing: 'off' })

const params = {
  name: 'chat_complete',
  arguments: JSON.parse(CHAT_REQUEST.toString()),
  _meta: {
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  },
}
const call = {
  path: '/mcp',
  contentType: 'application/json',
  chunks: [Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }))],
  headers: {
    host: 'localhost',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': REVISION,
    'mcp-method': 'tools/call',
    'mcp-name': 'chat_complete',
  },
}
const mcp = mcpHandler(gateway)

const plan = { perRound, rounds: 9, parallel: 8 }
await measureRounds(() => sendOnce(gateway, CHAT), plan)
await measureRounds(() => sendOnce(mcp, call), plan)
await mcp.close()
await gateway.close({ drainMs: 0 })
