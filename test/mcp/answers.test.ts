import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodeHandler } from '../../src/adapters/node.ts'
import type { Mounted } from '../adapters/support/mounts.ts'
import { listen } from '../support/listen.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'
import { fixtureEndpoint } from './conformance/fixture-endpoint.ts'

let started: StartedGateway
let mounted: Mounted

beforeAll(async () => {
  started = await startGateway()
  mounted = await listen(nodeHandler(fixtureEndpoint(started)))
})
afterAll(async () => {
  await mounted.close()
  await started.close()
})

const REVISION = '2026-07-28'

/** Posts one call of a tool in the revision that has no handshake. */
function callTool(name: string): Promise<Response> {
  const meta = {
    progressToken: 'steps',
    'io.modelcontextprotocol/protocolVersion': REVISION,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  return fetch(`${mounted.origin}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${TEST_KEY}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': REVISION,
      'mcp-method': 'tools/call',
      'mcp-name': name,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 'one',
      method: 'tools/call',
      params: { name, arguments: {}, _meta: meta },
    }),
  })
}

test('a result that nothing came before is sent as plain JSON of a known length', async () => {
  const response = await callTool('test_simple_text')
  const text = await response.text()

  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('application/json')
  expect(response.headers.get('content-length')).toBe(String(Buffer.byteLength(text)))
  expect(JSON.parse(text)).toMatchObject({
    jsonrpc: '2.0',
    id: 'one',
    result: { content: [{ type: 'text', text: 'This is a simple text response for testing.' }] },
  })
})

test('a result after notifications is the last event of their stream', async () => {
  const response = await callTool('test_tool_with_progress')
  const events = [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!) as object)

  expect(response.headers.get('content-type')).toBe('text/event-stream')
  expect(events).toMatchObject([
    { method: 'notifications/progress', params: { progress: 0, progressToken: 'steps' } },
    { method: 'notifications/progress', params: { progress: 50 } },
    { method: 'notifications/progress', params: { progress: 100 } },
    { id: 'one', result: { content: [{ type: 'text', text: 'steps' }] } },
  ])
})

test('an error of the protocol is sent as JSON with the id of its request', async () => {
  const response = await callTool('no_such_tool')

  expect(response.headers.get('content-type')).toBe('application/json')
  expect(await response.json()).toMatchObject({ jsonrpc: '2.0', id: 'one', error: { code: -32_602 } })
})
