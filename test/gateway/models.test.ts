import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openai } from '../../src/vendors/openai/openai.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway()
})
afterAll(() => started.close())

const get = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> =>
  fetch(`${started.url}${path}`, { method, headers: { authorization: `Bearer ${TEST_KEY}`, ...headers } })

describe('GET /v1/models', () => {
  test("carries the members of OpenAI's list and of Anthropic's at once", async () => {
    const response = await get('/v1/models')
    const list = await response.json()
    const row = list.data.find(({ id }: { id: string }) => id === 'cl-opus-4-7')

    expect(response.status).toBe(200)
    expect(response.headers.get('x-request-id')).toMatch(/^req_/)
    expect(list).toMatchObject({
      object: 'list',
      has_more: false,
      first_id: list.data[0].id,
      last_id: list.data.at(-1).id,
    })
    expect(row).toEqual({
      id: 'cl-opus-4-7',
      object: 'model',
      created: Date.UTC(2026, 3, 16) / 1000,
      owned_by: 'anthropic',
      type: 'model',
      display_name: 'Claude Opus 4.7',
      created_at: '2026-04-16T00:00:00.000Z',
      max_tokens: 128_000,
      top_provider: { max_completion_tokens: 128_000 },
      architecture: { input_modalities: ['text', 'image', 'pdf'], output_modalities: ['text'] },
      supported_parameters: expect.arrayContaining(['max_tokens', 'reasoning_effort', 'tools', 'tool_choice']),
      kinds: ['chat'],
      available: true,
    })
  })

  test('lists every model once, those of the specification and those of the host', async () => {
    const ids = (await (await get('/v1/models')).json()).data.map(({ id }: { id: string }) => id)

    expect(new Set(ids).size).toBe(ids.length)
    expect(ids).toEqual(
      expect.arrayContaining(['gmn-2.5-flash', 'vy-4-lite', 'qw-image-2.0', 'wv2.7-r2v', 'chat-relayed']),
    )
    expect(ids).toEqual(started.gateway.models().map(({ id }) => id))
  })

  test('says which models cannot be used for want of a vendor', async () => {
    const other = await startGateway({ vendors: [openai({})] })
    const rows = other.gateway.models()
    await other.close()

    expect(rows.length).toBeGreaterThan(0)
    expect(rows.every(({ available }) => !available)).toBe(true)
    expect(rows.some(({ id }) => id === 'chat-relayed')).toBe(true)
  })
})

describe('GET /v1/models/{id}', () => {
  test.each([
    ['by its id', 'gmn-2.5-flash'],
    ["by the vendor's own id", 'gemini-2.5-flash'],
    ['with percent-encoding', 'gmn%2D2.5-flash'],
  ])('finds a model %s', async (_name, id) => {
    const response = await get(`/v1/models/${id}`)

    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ id: 'gmn-2.5-flash', object: 'model', type: 'model' })
  })

  test.each(['nobody', 'gmn-2.5-flash/x', '..%2Faccount', '__proto__', 'constructor'])(
    'knows no model %s',
    async (id) => {
      const response = await get(`/v1/models/${id}`)

      expect(response.status).toBe(404)
      expect(await response.json()).toMatchObject({ error: { code: 'model_not_found', param: 'model' } })
    },
  )

  test.each(['', '%zz'])('an id of %j is no route', async (id) => {
    expect((await get(`/v1/models/${id}`)).status).toBe(404)
  })
})

test.each(['/v1/models', '/v1/models/gmn-2.5-flash', '/v1/account', '/healthz'])(
  'HEAD %s answers as GET does, without the body',
  async (path) => {
    const whole = await get(path)
    const body = await whole.text()
    const head = await get(path, {}, 'HEAD')

    expect(head.status).toBe(200)
    expect(await head.text()).toBe('')
    expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(body)))
  },
)

test.each(['/v1/models', '/v1/models/gmn-2.5-flash', '/v1/account'])('%s needs a key', async (path) => {
  expect((await get(path, { authorization: '' })).status).toBe(401)
})

test('a query is passed over', async () => {
  expect((await get('/v1/models?limit=1000&after_id=x')).status).toBe(200)
})

describe('GET /healthz', () => {
  test('needs no key', async () => {
    const response = await get('/healthz', { authorization: '' })

    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ status: 'ok' })
  })

  test('says when the gateway is closing, while everything else is refused', async () => {
    const other = await startGateway()
    await other.gateway.close()
    const health = await (await fetch(`${other.url}/healthz`)).json()
    const refused = await other.post('/v1/chat/completions', chatBody('chat-relayed', 'hello'))
    const body = await refused.json()
    await other.close()

    expect(health).toEqual({ status: 'closing' })
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toBe('5')
    expect(body.error.code).toBe('gateway_closing')
  })
})

describe('GET /v1/account', () => {
  test("shows the caller's own balance as decimal dollars", async () => {
    const { key } = await started.gateway.keys.create({
      accountId: (await started.gateway.accounts.create({ id: 'acct_other', tier: 'free' })).id,
    })
    await started.gateway.accounts.credit('acct_other', '12.50')
    const own = await (await get('/v1/account')).json()
    const other = await (await get('/v1/account', { authorization: `Bearer ${key}` })).json()

    expect(own).toEqual({
      object: 'account',
      id: TEST_ACCOUNT,
      balance: '100',
      held: '0',
      owed: '0',
      currency: 'USD',
      tier: 'paid',
    })
    expect(other).toMatchObject({ id: 'acct_other', balance: '12.5', held: '0', tier: 'free' })
  })
})
