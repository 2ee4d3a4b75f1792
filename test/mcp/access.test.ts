import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodeHandler } from '../../src/adapters/node.ts'
import { gatewayWithMcp, mcpHandler } from '../../src/mcp/index.ts'
import { listen } from '../support/listen.ts'
import { TEST_KEY } from '../support/start-gateway.ts'
import { type StartedMcp, startMcp } from './support/start-mcp.ts'

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
const HEADERS = {
  authorization: `Bearer ${TEST_KEY}`,
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
}

let started: StartedMcp

beforeAll(async () => {
  started = await startMcp({
    mcp: { bodyLimitBytes: 10_000, allowedHosts: ['api.example.com'], allowedOrigins: ['https://app.example.com'] },
  })
})
afterAll(() => started.close())

function post(body: unknown = LIST, headers: Record<string, string> = HEADERS): Promise<Response> {
  return fetch(started.mcpUrl, {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

/** Posts with headers that `fetch` does not let callers set. */
function postWith(headers: Record<string, string>): Promise<number> {
  const { port } = started.mounted
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', path: '/mcp', method: 'POST', headers: { ...HEADERS, ...headers } }
    const sent = httpRequest(options, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    sent.on('error', reject)
    sent.end(JSON.stringify(LIST))
  })
}

describe('credentials', () => {
  test('a request with a key is answered', async () => {
    expect((await post()).status).toBe(200)
  })

  test.each([
    ['no key', {}],
    ['an unknown key', { authorization: 'Bearer sk-unknown' }],
    ['a key in another header', { 'x-api-key': TEST_KEY }],
    ['another scheme', { authorization: `Basic ${TEST_KEY}` }],
  ])('answers %s with 401 and a challenge', async (_what, credentials: Record<string, string>) => {
    const { authorization: _omitted, ...rest } = HEADERS
    const answer = await post(LIST, { ...rest, ...credentials })

    expect(answer.status).toBe(401)
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    expect(await answer.json()).toMatchObject({ error: { code: 'invalid_api_key' } })
  })

  test.each(['GET', 'DELETE', 'OPTIONS'])('%s without a key is 401 too', async (method) => {
    expect((await fetch(started.mcpUrl, { method })).status).toBe(401)
  })

  test('does not accept a key in the query', async () => {
    const { authorization: _omitted, ...rest } = HEADERS
    const url = `${started.mcpUrl}?authorization=Bearer%20${TEST_KEY}&api_key=${TEST_KEY}`

    expect((await fetch(url, { method: 'POST', headers: rest, body: JSON.stringify(LIST) })).status).toBe(401)
  })

  test('401 comes before the body is sent', async () => {
    const socket = connect(started.mounted.port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write(
      'POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9000\r\n\r\n',
    )

    const [first] = await new Promise<string[]>((resolve) => {
      socket.once('data', (chunk) => resolve(chunk.toString('latin1').split('\r\n')))
    })
    socket.destroy()

    expect(first).toBe('HTTP/1.1 401 Unauthorized')
  })

  test('a key that was revoked is refused', async () => {
    const { key, record } = await started.gateway.keys.create({ accountId: 'acct_test' })
    await started.gateway.keys.revoke(record.id)

    expect((await post(LIST, { ...HEADERS, authorization: `Bearer ${key}` })).status).toBe(401)
  })
})

describe('the check against DNS rebinding', () => {
  test.each(['localhost', 'localhost:8787', '127.0.0.1:1', '[::1]:8787', 'api.example.com', 'API.example.com:443'])(
    'a request to the host %s passes',
    async (host) => {
      expect(await postWith({ host })).toBe(200)
    },
  )

  test.each([
    'evil.example.net',
    'api.example.com.evil.example.net',
    'localhost.evil.example.net',
    'a/b',
    'user@localhost',
    '169.254.169.254',
  ])('answers a request to the host %s with 403', async (host) => {
    expect(await postWith({ host })).toBe(403)
  })

  test.each(['http://localhost:3000', 'https://app.example.com', 'https://api.example.com'])(
    'a page of %s passes',
    async (origin) => {
      expect(await postWith({ host: 'localhost', origin })).toBe(200)
    },
  )

  test.each(['http://app.example.com', 'https://app.example.com:8443', 'https://evil.example.net', 'null', 'x'])(
    'answers a page of %s with 403',
    async (origin) => {
      expect(await postWith({ host: 'localhost', origin })).toBe(403)
    },
  )

  test('it comes before the credentials, so that a page cannot try keys', async () => {
    expect(await postWith({ host: 'evil.example.net', authorization: 'Bearer sk-unknown' })).toBe(403)
  })

  test('rejects malformed names at start', () => {
    const { gateway } = started
    const badOption = (param: string) => expect.objectContaining({ code: 'invalid_request', param })

    expect(() => mcpHandler(gateway, { allowedHosts: ['https://api.example.com'] })).toThrow(badOption('allowedHosts'))
    expect(() => mcpHandler(gateway, { allowedHosts: ['api.example.com:443'] })).toThrow(badOption('allowedHosts'))
    expect(() => mcpHandler(gateway, { allowedOrigins: ['app.example.com'] })).toThrow(badOption('allowedOrigins'))
    expect(() => mcpHandler(gateway, { allowedOrigins: ['https://app.example.com/path'] })).toThrow(
      badOption('allowedOrigins'),
    )
  })

  test('it can be turned off', async () => {
    const open = await listen(nodeHandler(mcpHandler(started.gateway, { allowedHosts: 'any', allowedOrigins: 'any' })))
    const status = await new Promise<number>((resolve, reject) => {
      const headers = { ...HEADERS, host: 'anything.example.net', origin: 'https://elsewhere.example.net' }
      const sent = httpRequest(
        { port: open.port, host: '127.0.0.1', path: '/', method: 'POST', headers },
        (response) => {
          response.resume()
          resolve(response.statusCode ?? 0)
        },
      )
      sent.on('error', reject)
      sent.end(JSON.stringify(LIST))
    })
    await open.close()

    expect(status).toBe(200)
  })
})

describe('what cannot be read', () => {
  test.each(['GET', 'DELETE', 'PUT', 'OPTIONS'])('answers %s with 405', async (method) => {
    const answer = await fetch(started.mcpUrl, { method, headers: HEADERS })

    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toBe('POST')
  })

  test('answers another path with 404', async () => {
    const answer = await fetch(`${started.mounted.origin}/mcp/elsewhere`, {
      method: 'POST',
      headers: HEADERS,
      body: '{}',
    })

    expect(answer.status).toBe(404)
  })

  test('answers a body that is too large with 413', async () => {
    expect((await post({ ...LIST, params: { filler: 'x'.repeat(20_000) } })).status).toBe(413)
  })

  test('answers a body that is not JSON with a parse error of JSON-RPC', async () => {
    const answer = await post('{"jsonrpc": "2.0", ')

    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32700 } })
  })

  test('nesting without end, and a member __proto__, are refused', async () => {
    const deep = await post(`${'['.repeat(2000)}${']'.repeat(2000)}`)
    const proto = await post('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"__proto__":{"a":1}}}')

    expect(deep.status).toBe(400)
    expect(await deep.json()).toMatchObject({ error: { code: -32600 } })
    expect(proto.status).toBe(400)
  })

  test('answers a body of another type with 415', async () => {
    expect((await post(LIST, { ...HEADERS, 'content-type': 'text/plain' })).status).toBe(415)
  })

  test('answers a compressed body with 415, not with a parse error', async () => {
    const answer = await post('\u001f', { ...HEADERS, 'content-encoding': 'gzip' })

    expect(answer.status).toBe(415)
    expect(await answer.text()).toContain('Content-Encoding \\"gzip\\"')
  })

  test('rejects a message that is not a request of the protocol', async () => {
    for (const body of [
      {},
      [],
      'null',
      { jsonrpc: '1.0', id: 1, method: 'tools/list' },
      { jsonrpc: '2.0', id: {}, method: 'x' },
    ]) {
      expect((await post(body)).status, JSON.stringify(body)).toBe(400)
    }
  })
})

test('no answer and no log line holds a key', async () => {
  const lines: string[] = []
  const write = (message: string, fields?: unknown) =>
    void lines.push(`${message} ${JSON.stringify(fields)} ${String((fields as { error?: Error })?.error?.stack)}`)
  const logger = { debug: write, info: write, warn: write, error: write }
  const noisy = await startMcp({ mcp: { logger } })
  const texts: string[] = []
  for (const body of ['{', '[]', '{}', JSON.stringify(LIST), JSON.stringify({ ...LIST, method: 'no/such' })]) {
    for (const accept of ['application/json, text/event-stream', 'text/plain']) {
      const answer = await fetch(noisy.mcpUrl, { method: 'POST', headers: { ...HEADERS, accept }, body })
      texts.push(await answer.text(), JSON.stringify([...answer.headers]))
    }
  }
  await noisy.close()

  expect(lines.length).toBeGreaterThan(0)
  expect([...lines, ...texts].filter((text) => text.includes(TEST_KEY) || text.includes('canary'))).toEqual([])
})

test('a gateway that is shutting down answers 503', async () => {
  const closing = await startMcp()
  await closing.gateway.close({ drainMs: 1 })
  const answer = await fetch(closing.mcpUrl, { method: 'POST', headers: HEADERS, body: JSON.stringify(LIST) })

  expect(answer.status).toBe(503)
  expect(answer.headers.get('retry-after')).not.toBeNull()
  await closing.close()
})

test('one mount can hold the gateway and the server', async () => {
  const both = await listen(nodeHandler(gatewayWithMcp(started.gateway), { basePath: '/ai' }))
  const models = await fetch(`${both.origin}/ai/v1/models`, { headers: HEADERS })
  const tools = await fetch(`${both.origin}/ai/mcp`, { method: 'POST', headers: HEADERS, body: JSON.stringify(LIST) })
  await both.close()

  expect(models.status).toBe(200)
  expect(await tools.text()).toContain('chat_complete')
})
