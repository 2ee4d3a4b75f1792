import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PriceFile, PriceRow } from '../../../src/catalog/prices/prices.ts'
import type { ListedModel } from '../../../src/gateway/model-list.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { sandboxVendors } from '../../../src/testing/index.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { voyage } from '../../../src/vendors/voyage/voyage.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../../support/start-gateway.ts'
import { testPrices } from '../../support/test-prices.ts'

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
      context_length: 1_000_000,
      max_input_tokens: 1_000_000,
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

  test('says which models cannot be used because no vendor is configured', async () => {
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

  test.each(['', '%zz'])('has no route for an id of %j', async (id) => {
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

describe('GET /v1/models of a coding client, which asks with the version of its own', () => {
  const ask = async (key = TEST_KEY): Promise<{ list: CodingList; etag: string | null }> => {
    const response = await get('/v1/models?client_version=0.169.0', { authorization: `Bearer ${key}` })
    expect(response.status).toBe(200)
    return { list: (await response.json()) as CodingList, etag: response.headers.get('etag') }
  }

  test('has every member that a version of it requires, of each chat model that can be called', async () => {
    const { list } = await ask()
    const plain = (await (await get('/v1/models')).json()) as CodingList

    expect(list).toEqual({ ...plain, models: expect.any(Array) })
    expect(list.models.map(({ slug }) => slug)).toEqual(
      plain.data.filter(({ kinds, available }) => kinds.includes('chat') && available).map(({ id }) => id),
    )
    expect(list.models.find(({ slug }) => slug === 'gmn-2.5-pro')).toEqual({
      slug: 'gmn-2.5-pro',
      display_name: expect.any(String),
      description: null,
      default_reasoning_level: 'medium',
      supported_reasoning_levels: ['low', 'medium', 'high'].map((effort) => ({
        effort,
        description: expect.any(String),
      })),
      shell_type: 'shell_command',
      visibility: 'list',
      supported_in_api: true,
      priority: expect.any(Number),
      availability_nux: null,
      upgrade: null,
      base_instructions: expect.stringContaining('coding agent'),
      supports_reasoning_summaries: true,
      supports_reasoning_summary_parameter: true,
      default_reasoning_summary: 'auto',
      support_verbosity: false,
      default_verbosity: null,
      apply_patch_tool_type: 'freeform',
      web_search_tool_type: 'text',
      truncation_policy: { mode: 'bytes', limit: expect.any(Number) },
      supports_parallel_tool_calls: true,
      supports_image_detail_original: false,
      context_window: expect.any(Number),
      max_context_window: expect.any(Number),
      auto_compact_token_limit: null,
      effective_context_window_percent: 95,
      experimental_supported_tools: [],
      input_modalities: ['text', 'image'],
      supports_search_tool: false,
    })
  })

  test('has a version of its own, which stays the same while the list does', async () => {
    const [one, other] = [await ask(), await ask()]
    const { key } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT, scopes: { models: ['cl-opus-4-7'] } })
    const scoped = await ask(key)

    expect(one.etag).toMatch(/^"[\w-]{22}"$/)
    expect(other.etag).toBe(one.etag)
    expect(scoped.list.models.map(({ slug }) => slug)).toEqual(['cl-opus-4-7', 'claude-opus-4-7'])
    expect(scoped.etag).not.toBe(one.etag)
    expect((await get('/v1/models')).headers.get('etag')).toBe(null)
  })
})

test('lists modalities and parameters of own rows: as declared, as the catalog knows, or by their kind', async () => {
  const own = await startGateway({
    billing: 'off',
    models: [
      { id: 'plain', kind: 'chat', vendor: 'openai', upstream: 'a-fine-tune' },
      {
        ...{ id: 'declared', kind: 'chat', vendor: 'openai', upstream: 'a-fine-tune' },
        ...{ inputModalities: ['text', 'image'], abilities: ['reasoning'] },
      },
      { id: 'known', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4' },
      { id: 'no-tools', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4', abilities: ['temperature'] },
      { id: 'hears', kind: 'transcription', vendor: 'openai', upstream: 'a-fine-tune' },
      {
        id: 'draws',
        kind: ['image', 'image_edit'],
        vendor: 'openai',
        upstream: 'a-fine-tune',
        protocol: 'generations',
      },
    ],
  })
  const rows = new Map(own.gateway.models().map((row) => [row.id, row]))
  const of = (id: string) => {
    const { architecture, supported_parameters: parameters } = rows.get(id)!
    return [architecture?.input_modalities.join(), architecture?.output_modalities.join(), parameters?.join()]
  }
  await own.close()
  const base = 'max_tokens,max_completion_tokens,stop'

  expect(of('plain')).toEqual(['text', 'text', `${base},tools,tool_choice,response_format,temperature,top_p`])
  expect(of('declared')).toEqual(['text,image', 'text', `${base},reasoning_effort`])
  expect(of('known')).toEqual(of('gpt-5.4'))
  expect(of('no-tools')).toEqual([of('gpt-5.4')[0], 'text', `${base},temperature,top_p`])
  expect(of('hears')).toEqual(['audio', 'text', undefined])
  expect(of('draws')).toEqual(['text,image', 'image', undefined])
})

describe('a model that cannot be called', () => {
  const chat = { kind: 'chat', vendor: 'openai', limits: { maxOutputTokens: 100 } } as const
  const models = [
    { ...chat, id: 'priced', upstream: 'gpt-5.4' },
    { ...chat, id: 'unpriced', upstream: 'gpt-5.4-mini' },
    { ...chat, id: 'half-priced', upstream: 'gpt-5.4-nano' },
    { ...chat, id: 'family-member', upstream: 'gpt-5.1' },
    { ...chat, id: 'keyless', vendor: 'voyage' },
    { id: 'free', kind: 'moderation', vendor: 'openai' },
  ] as const
  const price = (model: string, meter: 'input_token' | 'output_token') =>
    ({ model, meter, amount: '1', per: 1_000_000 }) as const
  const both = (model: string) => [price(model, 'input_token'), price(model, 'output_token')]
  const prices = {
    currency: 'USD',
    prices: [...both('priced'), price('half-priced', 'input_token'), ...both('family-*'), ...both('keyless')],
  } as const
  const REASONS = {
    priced: undefined,
    unpriced: 'model_not_priced',
    'half-priced': 'model_not_priced',
    'family-member': undefined,
    keyless: 'model_not_configured',
    free: undefined,
  }

  async function listOf(options: Partial<GatewayOptions>): Promise<{ started: StartedGateway; rows: ListedModel[] }> {
    const own = await startGateway({ ...options, models })
    const response = await fetch(`${own.url}/v1/models`, { headers: { authorization: `Bearer ${TEST_KEY}` } })
    const { data } = (await response.json()) as { data: ListedModel[] }
    return { started: own, rows: data.filter(({ id }) => Object.hasOwn(REASONS, id)) }
  }
  const reasonsOf = (rows: readonly ListedModel[]) =>
    Object.fromEntries(rows.map(({ id, unavailable_reason: reason }) => [id, reason]))

  test('is listed with the error code that its calls get', async () => {
    const sandbox = sandboxVendors()
    const { origin } = await sandbox.listen()
    const { started: own, rows } = await listOf({
      prices,
      vendors: [openai({ apiKey: 'k', baseURL: origin }), voyage()],
    })
    const codeOf = async ({ id }: ListedModel): Promise<[string, string | undefined]> => {
      const response = await own.post('/v1/chat/completions', chatBody(id, 'Hi'))
      const { error } = (await response.json()) as { error?: { code: string } }
      return [id, error?.code]
    }
    const codes = await Promise.all(rows.filter(({ kinds }) => kinds.includes('chat')).map(codeOf))
    const one = await fetch(`${own.url}/v1/models/unpriced`, { headers: { authorization: `Bearer ${TEST_KEY}` } })
    const codex = await fetch(`${own.url}/v1/models?client_version=1`, {
      headers: { authorization: `Bearer ${TEST_KEY}` },
    })
    const slugs = ((await codex.json()) as { models: { slug: string }[] }).models.map(({ slug }) => slug)
    await own.close()
    await sandbox.close()

    expect(reasonsOf(rows)).toEqual(REASONS)
    expect(rows.map(({ available }) => available)).toEqual(rows.map(({ id }) => codeFor(id) === undefined))
    expect(Object.fromEntries(codes)).toEqual({ ...REASONS, free: undefined })
    expect(await one.json()).toMatchObject({ available: false, unavailable_reason: 'model_not_priced' })
    expect(slugs).toEqual(expect.arrayContaining(['priced', 'family-member']))
    expect(slugs).not.toContain('unpriced')
  })

  test('is available without a price if billing is off, or if the prices do not list their rows', async () => {
    const off = await listOf({ billing: 'off' })
    const unlisted = await listOf({ prices: { quote: () => undefined } })
    await off.started.close()
    await unlisted.started.close()

    expect(off.rows.every(({ available }) => available)).toBe(true)
    expect(reasonsOf(unlisted.rows)).toMatchObject({ unpriced: undefined })
  })

  const codeFor = (id: string): string | undefined => REASONS[id as keyof typeof REASONS]
})

/** The prices of tests, and a price of each of these chats. */
function pricesOf(...chats: string[]): PriceFile {
  const meters = ['input_token', 'output_token'] as const
  const rows = chats.flatMap((model) => meters.map((meter) => ({ model, meter, amount: '1' })))
  return { ...testPrices, prices: [...testPrices.prices, ...rows] }
}

describe('the answer for an unknown model', () => {
  let started: StartedGateway
  const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${started.url}${path}`, { headers: { authorization: `Bearer ${TEST_KEY}`, ...headers } })

  beforeAll(async () => {
    const { currency, prices } = pricesOf(
      ...['gpt-4o', 'gpt-5.4', 'gpt-5.4-mini', 'claude-sonnet-4-6', 'claude-opus-4-8', 'gemini-3.5-flash'],
    )
    const more: PriceRow[] = [
      { model: 'text-embedding-3-small', meter: 'input_token', amount: '1' },
      { model: 'tts-1', meter: 'character', amount: '1' },
    ]
    started = await startGateway({ prices: { currency, prices: [...prices, ...more] } })
  })
  afterAll(() => started.close())

  const messageOf = async (response: Response): Promise<string> => {
    const { error, message } = (await response.json()) as { error?: { message: string }; message?: string }
    return error?.message ?? message ?? ''
  }
  const LISTED = 'GET /v1/models lists the models.'

  test.each([
    ['/v1/chat/completions', chatBody('gpt5.4', 'Hi'), 404, 'There is no model "gpt5.4"; did you mean "gpt-5.4"?'],
    [
      '/v1/messages',
      { ...chatBody('claude-sonnet-4.6', 'Hi'), max_tokens: 9 },
      404,
      'did you mean "claude-sonnet-4-6"?',
    ],
    ['/v1/responses', { model: 'gpt-5.4-minni', input: 'Hi' }, 404, 'did you mean "gpt-5.4-mini"?'],
    ['/v1/embeddings', { model: 'text-embeding-3-small', input: 'Hi' }, 404, 'did you mean "text-embedding-3-small"?'],
    ['/v1/images/generations', { model: 'gp-image2', prompt: 'A cat' }, 400, 'did you mean "gp-image-2"?'],
    ['/v1/videos/generations', { model: 'wv2.7-t2', input: {} }, 404, 'did you mean "wv2.7-t2v"?'],
    ['/v1/audio/speech', { model: 'ts-1', input: 'Hi', voice: 'alloy' }, 400, 'did you mean "tts-1"?'],
    ['/v1/estimate', { endpoint: 'chat', body: chatBody('gpt5.4', 'Hi') }, 404, 'did you mean "gpt-5.4"?'],
    // A name that begins with the id is preferred to one with two mistakes (`o3-mini`), and the newest of such names to an older one.
    ['/v1/chat/completions', chatBody('gemini', 'Hi'), 404, 'did you mean "gemini-'],
    ['/v1/chat/completions', chatBody('claude-opus-4-9', 'Hi'), 404, 'did you mean "claude-opus-4-8"?'],
    // No model of an older generation is named.
    ['/v1/chat/completions', chatBody('claude-opus-9', 'Hi'), 404, `price for the model "claude-opus-9". ${LISTED}`],
    ['/v1/chat/completions', chatBody('claude-opus-9', 'Hi'), 404, 'the operator can allow it with a price'],
    ['/v1/chat/completions', chatBody('cluade-opus-9', 'Hi'), 404, `There is no model "cluade-opus-9". ${LISTED}`],
    ['/v1/chat/completions', chatBody('gemni-3.9-flash', 'Hi'), 404, 'did you mean "gemini-3'],
    ['/v1/chat/completions', chatBody('sonnet', 'Hi'), 404, '-sonnet-'],
    ['/v1/chat/completions', chatBody('nobody', 'Hi'), 404, `There is no model "nobody". ${LISTED}`],
    // Letters of `gemini-3-pro-preview` in their order, and the end of `gpt-5-chat-latest`.
    ['/v1/chat/completions', chatBody('nope', 'Hi'), 404, `There is no model "nope". ${LISTED}`],
    ['/v1/chat/completions', chatBody('test', 'Hi'), 404, `There is no model "test". ${LISTED}`],
  ])('names on %s the one that was meant, or where they are listed', async (path, body, status, message) => {
    const response = await started.post(path, body)

    expect(response.status).toBe(status)
    expect(await messageOf(response)).toContain(message)
  })

  test('names one of any kind where the list is asked', async () => {
    expect(await messageOf(await get('/v1/models/gp-image2'))).toBe(
      'There is no model "gp-image2"; did you mean "gp-image-2"?',
    )
  })

  test('names no model of another kind, and none whose vendor has no key', async () => {
    const other = await startGateway({ vendors: [openai({ apiKey: 'one' })] })

    expect(await messageOf(await other.post('/v1/embeddings', { model: 'gpt5.4', input: 'Hi' }))).toContain(LISTED)
    expect(await messageOf(await other.post('/v1/chat/completions', chatBody('cl-opus-47', 'Hi')))).toContain(LISTED)
    await other.close()
  })

  test('names no model without a price while billing is on', async () => {
    const models = ['zebra-sold', 'zebra-free'].map((id) => ({ id, kind: 'chat' as const, vendor: 'openai' }))
    const options = { vendors: [openai({ apiKey: 'one' })], models }
    const prices = pricesOf('zebra-sold')
    const ask = async (gateway: StartedGateway): Promise<string> =>
      await messageOf(await gateway.post('/v1/chat/completions', chatBody('zebra-fre', 'Hi')))
    const billed = await startGateway({ ...options, prices })
    const unbilled = await startGateway({ ...options, billing: 'off' })

    expect(await ask(billed)).not.toContain('zebra-free')
    expect(await ask(unbilled)).toContain('did you mean "zebra-free"?')
    await billed.close()
    await unbilled.close()
  })

  test('names no model that the scope of the key hides, nor a name of it', async () => {
    const { key } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT, scopes: { models: ['gpt-4o'] } })
    const authorization = `Bearer ${key}`
    const ask = async (model: string): Promise<string> =>
      await messageOf(await started.post('/v1/chat/completions', chatBody(model, 'Hi'), { authorization }))

    expect(await ask('claude-sonnet-4.6')).toBe('This API key may not use the model "claude-sonnet-4.6".')
    expect(await ask('cl-opus-47')).toContain(LISTED)
    expect(await ask('gpt4o')).toContain('did you mean "gpt-4o"?')
    expect(await messageOf(await get('/v1/models/cl-opus-4-7', { authorization }))).toBe(
      `There is no model "cl-opus-4-7". ${LISTED}`,
    )
  })

  test('compares no long text, and repeats a part of it', async () => {
    const message = await messageOf(await started.post('/v1/chat/completions', chatBody('gpt-5.4'.repeat(100), 'Hi')))

    expect(message).toContain('..."')
    expect(message).toContain(LISTED)
    expect(message.length).toBeLessThan(300)
  })
})

interface CodingList {
  readonly data: readonly { readonly id: string; readonly kinds: readonly string[]; readonly available: boolean }[]
  readonly models: readonly { readonly slug: string }[]
}
