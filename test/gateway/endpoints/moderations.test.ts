import { afterEach, describe, expect, test } from 'vitest'
import type { PriceFile } from '../../../src/catalog/prices/prices.ts'
import { fakeClock, sandboxVendors } from '../../../src/testing/index.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'

const PATH = '/v1/moderations'
const MODEL = 'omni-moderation-latest'
const HUNDRED_DOLLARS = 100n * 10n ** 9n

interface Answer {
  id: string
  model: string
  results: { flagged?: boolean; categories: Record<string, boolean>; category_scores: Record<string, number> }[]
}

let started: StartedGateway | undefined

afterEach(async () => {
  await started?.close()
  started = undefined
})

const priced = (meter: 'request' | 'input_token', amount: string): PriceFile => ({
  currency: 'USD',
  prices: [{ model: MODEL, meter, amount }],
})

async function answerOf(response: Response): Promise<Answer> {
  expect(response.status).toBe(200)
  return (await response.json()) as Answer
}

async function errorOf(response: Response): Promise<{ code: string; param: string }> {
  return ((await response.json()) as { error: { code: string; param: string } }).error
}

/** The vendor's side of the last call. */
const asked = () => started!.sandbox.requests.at(-1)!

test('judges a string, a list of strings and a list of parts', async () => {
  started = await startGateway()
  const one = await answerOf(await started.post(PATH, { model: MODEL, input: 'plain violence' }))
  const two = await answerOf(await started.post(PATH, { model: MODEL, input: ['calm', 'sexual/minors'] }))
  const parts = [
    { type: 'text', text: 'what is this?' },
    { type: 'image_url', image_url: { url: 'https://pictures.example/violence.png' } },
  ]
  const both = await answerOf(await started.post(PATH, { model: MODEL, input: parts }))

  expect(one.model).toBe(MODEL)
  expect(one.results.map(({ flagged }) => flagged)).toEqual([true])
  expect(one.results[0]!.categories).toMatchObject({ violence: true, 'violence/graphic': false })
  expect(two.results.map(({ flagged }) => flagged)).toEqual([false, true])
  expect(both.results).toHaveLength(1)
  expect(both.results[0]!.categories['violence']).toBe(true)
  expect(asked().body).toEqual({ model: MODEL, input: parts })
})

test('a request that names no model gets the usual one', async () => {
  started = await startGateway()
  const answer = await answerOf(await started.post(PATH, { input: 'calm' }))

  expect(answer.model).toBe(MODEL)
  expect(asked().body).toEqual({ model: MODEL, input: 'calm' })
})

test('a dated id reaches the vendor as it is, and its answer carries it', async () => {
  started = await startGateway()
  const model = 'omni-moderation-2024-09-26'
  expect((await answerOf(await started.post(PATH, { model, input: 'calm' }))).model).toBe(model)
  expect(asked().model).toBe(model)
})

test('without a price row a call is free, also for an account without money, and no usage is missed', async () => {
  started = await startGateway()
  await started.gateway.accounts.create({ id: 'acct_poor' })
  const { key } = await started.gateway.keys.create({ accountId: 'acct_poor' })
  const response = await started.post(PATH, { model: MODEL, input: 'calm' }, { authorization: `Bearer ${key}` })
  const ended = await started.ended(response)

  expect(response.status).toBe(200)
  expect(ended).toMatchObject({ endpoint: 'moderations', model: MODEL, vendor: 'openai', costNanoDollars: 0n })
  expect(await started.gateway.accounts.get('acct_poor')).toMatchObject({ balance: 0n, held: 0n })
  expect(started.events.map(({ type }) => type)).not.toContain('usage-missing')
})

test('a price by the request is charged, and not for a call that fails', async () => {
  started = await startGateway({ prices: priced('request', '0.01') })
  const response = await started.post(PATH, { model: MODEL, input: 'calm' })
  expect(response.headers.get('x-signalbox-cost')).toBe('0.01')
  started.sandbox.reply({ when: { operation: 'moderations' }, error: { status: 400 } })
  expect((await started.post(PATH, { model: MODEL, input: 'calm' })).status).toBe(400)

  expect(await started.account()).toEqual({ balance: HUNDRED_DOLLARS - 10_000_000n, held: 0n })
})

test('a price by tokens is charged by the estimate, because the vendor reports no usage', async () => {
  started = await startGateway({ prices: priced('input_token', '0.001') })
  const response = await started.post(PATH, { model: MODEL, input: 'a'.repeat(400) })
  const { usage, costNanoDollars } = await started.ended(response)

  expect(usage?.inputTokens).toBeGreaterThanOrEqual(100)
  expect(costNanoDollars).toBe(BigInt(usage!.inputTokens!) * 1_000_000n)
  expect((await started.account()).balance).toBe(HUNDRED_DOLLARS - costNanoDollars)
  expect(started.events.map(({ type }) => type)).toContain('usage-missing')
})

test('a fallback without a price answers for one with a price, free of charge', async () => {
  const second = 'omni-moderation-2024-09-26'
  started = await startGateway({
    prices: priced('request', '0.01'),
    models: [
      { id: MODEL, kind: 'moderation', vendor: 'openai', fallbacks: [second] },
      { id: second, kind: 'moderation', vendor: 'openai' },
    ],
  })
  started.sandbox.reply({ when: { model: MODEL }, error: { status: 503 }, times: Number.POSITIVE_INFINITY })
  const response = await started.post(PATH, { model: MODEL, input: 'calm' })

  expect((await answerOf(response)).model).toBe(second)
  expect(response.headers.get('x-signalbox-cost')).toBe('0')
  expect(await started.account()).toEqual({ balance: HUNDRED_DOLLARS, held: 0n })
  expect(started.gateway.warnings()).toEqual([])
})

test('models for moderation are not counted among those that need a price', async () => {
  started = await startGateway({ vendors: [openai({ apiKey: 'vendor-key-canary-7f3a' })], models: [] })
  const { catalog } = started.gateway
  const { unpriced, models } = started.gateway.unpricedModels()!
  // A model with a public id and its vendor's id is listed under both, and counted once.
  const all = started.gateway
    .models()
    .filter((model) => model.unavailable_reason !== 'model_not_configured' && catalog.find(model.id)?.id === model.id)
  const moderation = all.filter(({ kinds }) => kinds.includes('moderation'))
  const prices = new Set(started.gateway.prices()!.map(({ model }) => model))

  expect(moderation.map(({ id }) => id)).toEqual([MODEL, 'omni-moderation-2024-09-26'])
  expect(models).toBe(all.length)
  expect(unpriced).toBe(all.filter(({ id }) => !prices.has(id)).length - moderation.length)
})

test.each([
  ['no input', {}, 'input'],
  ['an empty list', { input: [] }, 'input'],
  ['a number', { input: [1] }, 'input'],
  ['texts and parts', { input: ['calm', { type: 'text', text: 'calm' }] }, 'input'],
  ['a part of another type', { input: [{ type: 'video_url', video_url: { url: 'https://v.example/1' } }] }, 'input'],
])('%s is refused with the field', async (_title, body, param) => {
  started = await startGateway()
  const response = await started.post(PATH, { model: MODEL, ...body })

  expect(response.status).toBe(400)
  expect((await errorOf(response)).param).toMatch(new RegExp(`^${param}`))
  expect(started.sandbox.requests).toEqual([])
})

test('rejects a private image address', async () => {
  started = await startGateway({ allowPrivateUrls: false })
  const input = [{ type: 'image_url', image_url: { url: 'http://169.254.169.254/latest/meta-data' } }]
  const response = await started.post(PATH, { model: MODEL, input })

  expect(response.status).toBe(400)
  expect((await errorOf(response)).param).toBe('input[0].image_url.url')
  expect(started.sandbox.requests).toEqual([])
})

test("answers with 502 if the vendor's answer is not a moderation", async () => {
  started = await startGateway()
  started.sandbox.fault({ kind: 'garbage', operation: 'moderations' })
  expect((await started.post(PATH, { model: MODEL, input: 'calm' })).status).toBe(502)
})

test('a key whose scopes lack the endpoint is refused', async () => {
  started = await startGateway()
  const { key } = await started.gateway.keys.create({ accountId: TEST_ACCOUNT, scopes: { endpoints: ['chat'] } })
  const response = await started.post(PATH, { model: MODEL, input: 'calm' }, { authorization: `Bearer ${key}` })
  expect(response.status).toBe(403)
})

test('an equal request is answered from the cache', async () => {
  started = await startGateway({ cache: {} })
  const first = await answerOf(await started.post(PATH, { input: 'violence' }))
  const second = await started.post(PATH, { input: 'violence' })

  expect(second.headers.get('x-signalbox-cache')).toBe('hit')
  expect(await second.json()).toEqual({ ...first, id: expect.not.stringMatching(first.id) })
  expect(started.sandbox.requests).toHaveLength(1)
})

test('hooks read the texts of a request and may replace them', async () => {
  const seen: unknown[] = []
  started = await startGateway({
    hooks: [
      {
        name: 'masked',
        endpoints: ['moderations'],
        request: (call) => {
          seen.push(call.texts().map(({ id, text }) => [id, text]))
          return { texts: new Map([['input[1].text', 'calm']]) }
        },
      },
    ],
  })
  const input = [
    { type: 'image_url', image_url: { url: 'https://pictures.example/a.png' } },
    { type: 'text', text: 'violence' },
  ]
  const answer = await answerOf(await started.post(PATH, { input }))

  expect(seen).toEqual([
    [
      ['input[0].image_url.url', 'https://pictures.example/a.png'],
      ['input[1].text', 'violence'],
    ],
  ])
  expect(answer.results[0]!.flagged).toBe(false)
})

test('scores that a test writes are answered, and flagged from 0.5 on', async () => {
  started = await startGateway()
  started.sandbox.reply({ scores: { hate: 0.5, sexual: 0.49 } })
  const [result] = (await answerOf(await started.post(PATH, { input: 'calm' }))).results

  expect(result).toMatchObject({ flagged: true, categories: { hate: true, sexual: false } })
  expect(result!.category_scores).toMatchObject({ hate: 0.5, sexual: 0.49, violence: 0.0001 })
})

test('the client and usage records know moderations', async () => {
  const clock = fakeClock({ startMs: Date.now() })
  started = await startGateway({ clock })
  const client = started.gateway.client({ accountId: TEST_ACCOUNT, keyId: 'key_1', tier: 'paid' })
  const answer = await client.moderations.create({ model: MODEL, input: ['violence'] })
  clock.advance(1_000)
  await new Promise((resolve) => setImmediate(resolve))
  const records = await started.gateway.usage.records({ accountId: TEST_ACCOUNT })

  expect(answer.results[0]?.categories.violence).toBe(true)
  expect(records.records).toMatchObject([{ endpoint: 'moderations', model: MODEL, vendor: 'openai' }])
})

describe('Mistral', () => {
  const stand = sandboxVendors()
  const mistral = openaiCompatible(presets.mistral, {
    apiKey: 'vendor-key-canary-7f3a',
    baseURL: 'http://mistral.example/presets/mistral/v1',
    models: [{ id: 'mistral-moderation-latest', kind: 'moderation' }],
  })
  const body = { model: 'mistral-moderation-latest', input: 'pii' }

  test('answers keep their own categories', async () => {
    started = await startGateway({ vendors: [mistral], models: [], transport: stand.transport() })
    const [result] = (await answerOf(await started.post(PATH, body))).results

    expect(result).toEqual({
      categories: expect.objectContaining({ pii: true, hate_and_discrimination: false }),
      category_scores: expect.objectContaining({ pii: 0.95 }),
    })
  })

  test('parts are refused, because it judges texts only', async () => {
    started = await startGateway({ vendors: [mistral], models: [], transport: stand.transport() })
    const response = await started.post(PATH, { ...body, input: [{ type: 'text', text: 'calm' }] })

    expect(response.status).toBe(400)
    expect(await errorOf(response)).toMatchObject({ code: 'unsupported_parameter', param: 'input' })
  })
})
