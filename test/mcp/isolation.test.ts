import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TEST_KEY } from '../support/start-gateway.ts'
import { type StartedMcp, startMcp } from './support/start-mcp.ts'

const CALLS = 500
const AT_ONCE = 20

let started: StartedMcp
let keys: { readonly tenant: string; readonly key: string }[]

beforeAll(async () => {
  started = await startMcp()
  const { id: accountId } = await started.gateway.accounts.create({ id: 'acct_other' })
  await started.gateway.accounts.credit(accountId, '100')
  const { key } = await started.gateway.keys.create({ accountId })
  keys = [
    { tenant: 'acct_test', key: TEST_KEY },
    { tenant: 'acct_other', key },
  ]
})
afterAll(() => started.close())

/** The `_meta` of a request in revision 2026-07-28, and the headers that belong to it. */
const MODERN_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

type Revision = '2025-11-25' | '2026-07-28'

/** Posts one call of a tool with an id that every tenant uses, and gives the bare JSON-RPC answer. */
async function rpc(revision: Revision, key: string, id: number, name: string, args: object) {
  const isModern = revision === '2026-07-28'
  const params = { name, arguments: args, ...(isModern ? { _meta: MODERN_META } : {}) }
  const response = await fetch(started.mcpUrl, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': revision,
      ...(isModern ? { 'mcp-method': 'tools/call', 'mcp-name': name } : { 'mcp-session-id': 'the-same-for-all' }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params }),
  })
  const text = await response.text()
  const json = text.startsWith('{') ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? 'null')
  return JSON.parse(json) as { id: number; result: { structuredContent: unknown } }
}

describe.each<Revision>(['2025-11-25', '2026-07-28'])('in revision %s', (revision) => {
  test(`two tenants with ${CALLS} interleaved calls each under equal JSON-RPC ids get no answer of the other`, async () => {
    const crossed: string[] = []
    let answered = 0
    const oneCall = async (id: number): Promise<void> => {
      await Promise.all(
        keys.map(async ({ tenant, key }) => {
          const isChat = id % 2 === 0
          const said = `${tenant} ${id}`
          const answer = isChat
            ? await rpc(revision, key, id, 'chat_complete', {
                model: 'chat-relayed',
                messages: [{ role: 'user', content: `[[fault:delay=${id % 7}]] ${said}` }],
              })
            : await rpc(revision, key, id, 'get_balance', {})
          answered++
          const { structuredContent } = answer.result
          const seen = isChat
            ? (structuredContent as { choices: { message: { content: string } }[] }).choices[0]?.message.content
            : (structuredContent as { id: string }).id
          if (answer.id !== id || seen !== (isChat ? `You said: ${said}` : tenant)) crossed.push(`${said}: ${seen}`)
        }),
      )
    }
    const ids = Array.from({ length: CALLS }, (_, index) => index)
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        for (let id = ids.shift(); id !== undefined; id = ids.shift()) await oneCall(id)
      }),
    )

    expect(crossed).toEqual([])
    expect(answered).toBe(2 * CALLS)
  }, 60_000)
})

test('each tenant was charged for its own calls', async () => {
  const [one, other] = await Promise.all(keys.map(({ tenant }) => started.gateway.accounts.get(tenant)))

  expect(one?.held).toBe(0n)
  expect(other?.held).toBe(0n)
  const spent = keys.map(({ tenant }) =>
    started.events.filter((event) => event.type === 'request-ended' && event.accountId === tenant),
  )
  expect(spent.map((events) => events.length)).toEqual([CALLS, CALLS])
})

test('limits of a key hold for its calls of tools and by HTTP together', async () => {
  const { key } = await started.gateway.keys.create({ accountId: 'acct_other', limits: { requestsPerMinute: 2 } })
  const body = { model: 'chat-relayed', messages: [{ role: 'user', content: 'hello' }] }
  const client = await started.connect({ apiKey: key })
  await client.callTool({ name: 'chat_complete', arguments: body })
  const byHttp = () => started.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` })

  expect((await byHttp()).status).toBe(200)
  expect((await byHttp()).status).toBe(429)
  const refused = await client.callTool({ name: 'chat_complete', arguments: body })

  expect(refused.isError).toBe(true)
  expect(JSON.stringify(refused.content)).toContain('Throttling.RateQuota')
})

test('the scopes of a key hold for its tools', async () => {
  const scopes = { endpoints: ['embeddings'], models: ['vy-4'] }
  const { key } = await started.gateway.keys.create({ accountId: 'acct_other', scopes })
  const client = await started.connect({ apiKey: key })
  const calls = [
    ['chat_complete', { model: 'chat-relayed', messages: [{ role: 'user', content: 'hello' }] }],
    ['create_embeddings', { model: 'vy-4-large', input: 'one' }],
    ['get_video_task', { task_id: 'task_1' }],
    [
      'estimate_cost',
      { endpoint: 'chat', request: { model: 'chat-relayed', messages: [{ role: 'user', content: 'a' }] } },
    ],
  ] as const

  for (const [name, args] of calls) {
    const result = await client.callTool({ name, arguments: args })
    expect(JSON.stringify(result.content), name).toContain('permission_denied')
  }
  const allowed = await client.callTool({ name: 'create_embeddings', arguments: { model: 'vy-4', input: 'one' } })
  expect(allowed.isError ?? false).toBe(false)
})

test('a key whose scope names models sees those only', async () => {
  const scopes = { models: ['vy-*', 'group:none'] }
  const { key } = await started.gateway.keys.create({ accountId: 'acct_other', scopes })
  const client = await started.connect({ apiKey: key })
  const read = async (uri: string): Promise<Record<string, readonly Record<string, unknown>[]>> => {
    const { contents } = await client.readResource({ uri })
    return JSON.parse((contents[0] as { text: string }).text)
  }
  const byHttp = await fetch(`${started.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
  const { data } = (await byHttp.json()) as { data: readonly { id: string }[] }
  // MCP names a model once, by its public id.
  const seen = data.map(({ id }) => id).filter((id) => started.gateway.catalog.find(id)?.id === id)
  const idsOf = (rows: unknown): unknown[] => (rows as { id: string }[]).map(({ id }) => id)

  const listed = await client.callTool({ name: 'list_models', arguments: { available_only: false } })
  const suggested = await client.complete({
    ref: { type: 'ref/resource', uri: 'gateway://catalog/{model}' },
    argument: { name: 'model', value: '' },
  })
  const pricing = await read('gateway://pricing')

  expect(seen).toContain('vy-4')
  expect(idsOf((listed.structuredContent as { models: unknown }).models)).toEqual(seen)
  expect(idsOf((await read('gateway://catalog'))['models'])).toEqual(seen)
  expect(suggested.completion.values.toSorted()).toEqual(seen.toSorted())
  expect(pricing['prices']).not.toEqual([])
  expect(pricing['prices']!.filter(({ model }) => !seen.includes(model as string))).toEqual([])
  expect(await read('gateway://catalog/vy-4')).toMatchObject({ id: 'vy-4' })
  for (const uri of ['gateway://catalog/cl-sonnet-4-6', 'gateway://pricing/cl-sonnet-4-6'])
    await expect(client.readResource({ uri }), uri).rejects.toThrow()
})
