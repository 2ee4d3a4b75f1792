import { afterEach, expect, test } from 'vitest'
import { type RunningServer, serve } from '../../src/cli/serve-command.ts'
import { mcpClient } from './support/mcp-client.ts'
import { callTool } from './support/tool-result.ts'

const KEY = 'sk-of-the-operator'

let running: RunningServer

afterEach(() => running.close())

function start(environment: Record<string, string> = {}): Promise<RunningServer> {
  return serve({
    environment: { PORT: '0', SIGNALBOX_STORE: 'memory:', SIGNALBOX_API_KEYS: KEY, ...environment },
    useStandIns: true,
    print: () => undefined,
    version: '0.0.0',
  })
}

test('signalbox serve has the server at /mcp', async () => {
  running = await start()
  const client = await mcpClient(`${running.url}/mcp`, { apiKey: KEY })

  const result = await callTool(client, 'chat_complete', {
    model: 'cl-sonnet-4-6',
    messages: [{ role: 'user', content: 'good morning' }],
  })
  await client.close()

  expect(result.structured.choices[0].message.content).toBe('You said: good morning')
})

test('on this machine only, it is reached by the names of this machine only', async () => {
  running = await start()
  const client = mcpClient(`${running.url}/mcp`, { apiKey: KEY, headers: { origin: 'https://evil.example.net' } })

  await expect(client).rejects.toThrow()
})

test.each(['https://app.example.com', 'chrome-extension://abcdefghijklmnop'])(
  'a page of %s that SIGNALBOX_CORS_ORIGINS names reaches it',
  async (origin) => {
    running = await start({ SIGNALBOX_CORS_ORIGINS: origin })
    const client = await mcpClient(`${running.url}/mcp`, { apiKey: KEY, headers: { origin } })

    expect((await client.listTools()).tools.length).toBeGreaterThan(0)
    await client.close()
  },
)

test('everything else is the gateway', async () => {
  running = await start()

  expect((await fetch(`${running.url}/healthz`)).status).toBe(200)
  expect((await fetch(`${running.url}/mcp`, { method: 'POST' })).status).toBe(401)
})
