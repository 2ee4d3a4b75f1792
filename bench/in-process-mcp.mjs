// What one call of the MCP tool `chat_complete` costs, beside the same chat without it, without sockets: see in-process.mjs.
//
//   node --expose-gc bench/in-process-mcp.mjs [calls per round]
//   node --cpu-prof --cpu-prof-interval 100 bench/in-process-mcp.mjs
import { createGateway, openai } from '../dist/index.js'
import { mcpHandler } from '../dist/mcp.js'
import { CHAT_ANSWER, CHAT_REQUEST } from './in-process-messages.mjs'
import { answeringTransport, CALLER_KEY, measureRounds, sendOnce } from './in-process-rounds.mjs'

const REVISION = '2026-07-28'

const perRound = Number(process.argv[2] ?? 3_000)

const gateway = createGateway({
  vendors: [openai({ apiKey: 'vendor-key' })],
  models: [
    { id: 'bench-chat', kind: 'chat', vendor: 'openai', upstream: 'gpt-4.1-mini', limits: { maxOutputTokens: 1000 } },
  ],
  billing: 'off',
  keys: [{ key: CALLER_KEY, account: 'bench' }],
  limits: { requestsPerMinute: 1e9, tokensPerMinute: 1e12, concurrency: 100_000 },
  transport: answeringTransport([CHAT_ANSWER]),
})
await gateway.start()

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
const chat = { path: '/v1/chat/completions', contentType: 'application/json', chunks: [CHAT_REQUEST] }
const mcp = mcpHandler(gateway)

const plan = { perRound, rounds: 9, parallel: 8 }
await measureRounds(() => sendOnce(gateway, chat), plan)
await measureRounds(() => sendOnce(mcp, call), plan)
await mcp.close()
await gateway.close({ drainMs: 0 })
