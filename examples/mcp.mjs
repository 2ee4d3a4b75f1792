// @ts-check
/*
 * Runs a gateway with its MCP server, and an agent's client that calls a tool. Runs offline with stand-ins.
 *
 *   npm run build && node examples/mcp.mjs
 *
 * With `--serve` it runs until it is stopped, so that you can connect your own client.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { anthropic, createApiKey, createGateway, dashscope } from 'signalbox'
import { gatewayWithMcp } from 'signalbox/mcp'
import { nodeHandler } from 'signalbox/node'
import { sandboxVendors } from 'signalbox/testing'

const apiKey = createApiKey()
const gateway = createGateway({
  vendors: [anthropic({ apiKey: 'stand-in' }), dashscope({ apiKey: 'stand-in' })],
  transport: sandboxVendors().transport(),
  keys: [{ key: apiKey, account: 'customer-1' }],
  billing: 'off',
})

const server = createServer(nodeHandler(gatewayWithMcp(gateway)))
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1')
await once(server, 'listening')
const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
console.log(`mcp     http://127.0.0.1:${port}/mcp`)
console.log(`apiKey  ${apiKey}`)

// An agent connects with its key, lists the tools, and calls one.
const client = new Client({ name: 'example', version: '1.0.0' })
const transport = new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`), {
  requestInit: { headers: { authorization: `Bearer ${apiKey}` } },
})
await client.connect(transport)
const { tools } = await client.listTools()
console.log(`tools   ${tools.map((tool) => tool.name).join(', ')}`)

const result = await client.callTool({
  name: 'chat_complete',
  arguments: { model: 'claude-sonnet-5-5', messages: [{ role: 'user', content: 'good morning' }], max_tokens: 100 },
})
const answer = /** @type {{ choices: { message: { content: string } }[] }} */ (result.structuredContent)
assert.equal(answer.choices[0]?.message.content, 'You said: good morning')
console.log(`answer  ${answer.choices[0]?.message.content}`)
await client.close()

if (process.argv.includes('--serve')) await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')])
server.close()
server.closeAllConnections()
await gateway.close({ drainMs: 1000 })
