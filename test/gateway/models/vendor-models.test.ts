import { afterEach, describe, expect, test } from 'vitest'
import { listPrices } from '../../../src/catalog/prices/list-prices.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { sandboxVendors } from '../../../src/testing/index.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

let started: StartedGateway

afterEach(() => started.close())

const start = async (options: Partial<GatewayOptions> = {}): Promise<void> => {
  started = await startGateway({ prices: listPrices({ markup: '1.2' }), models: [], ...options })
}
const models = async (query = '') =>
  (
    await started.gateway.fetch(
      new Request(`http://gateway.test/v1/models${query}`, { headers: { authorization: 'Bearer sk-test-0123456789' } }),
    )
  ).json() as Promise<{ data: Record<string, unknown>[] }>

describe('a gateway without rows of its own', () => {
  test.each([
    ['gpt-4o', 'gpt-4o'],
    ['openai/gpt-4o', 'gpt-4o'],
    ['claude-haiku-4-5-20251001', 'claude-haiku-4-5-20251001'],
    ['gemini-2.5-flash', 'gemini-2.5-flash'],
    ['qwen3-max', 'qwen3-max'],
  ])('answers a chat at %s, charged by the list', async (model, answered) => {
    await start()

    const answer = await started.post('/v1/chat/completions', chatBody(model, 'good morning'))

    expect(answer.status, await answer.clone().text()).toBe(200)
    expect(await answer.json()).toMatchObject({ model: answered })
    expect(answer.headers.get('x-signalbox-cost')).toMatch(/^0\.0000/)
  })

  test('answers embeddings, speech and images with the key of one vendor', async () => {
    await start()

    const vectors = await started.post('/v1/embeddings', { model: 'text-embedding-3-small', input: 'hello' })
    expect((await vectors.json()).data[0].embedding).toHaveLength(1536)
    const sound = await started.post('/v1/audio/speech', {
      model: 'tts-1',
      input: 'Good morning.',
      voice: 'nova',
      response_format: 'wav',
    })
    expect(sound.status, await sound.clone().text()).toBe(200)
    expect(Buffer.from(await sound.arrayBuffer()).toString('latin1', 0, 4)).toBe('RIFF')
    const { body } = started.sandbox.requests.find(({ path }) => path === '/v1/audio/speech')!
    expect(body).toEqual({ model: 'tts-1', input: 'Good morning.', voice: 'nova', response_format: 'pcm' })
    await started.ended(sound)
    const [charge] = await started.gateway.accounts.ledger('acct_test', { limit: 1 })
    expect(charge?.amount).toBe(-234_000n)
    const picture = await started.post('/v1/images/generations', { model: 'gpt-image-2', prompt: 'a crane' })
    expect(picture.status, await picture.clone().text()).toBe(200)
  })

  test.each([
    [{ voice: 'nova' }, 'nova'],
    [{}, 'alloy'],
  ])("a model for speech without a row speaks with its vendor's own voices: %j", async (fields, voice) => {
    const row = { id: 'announcer', kind: 'speech', vendor: 'openai', upstream: 'gpt-4o-mini-tts-2025-12-15' } as const
    started = await startGateway({ models: [row], billing: 'off' })

    const sound = await started.post('/v1/audio/speech', { model: 'announcer', input: 'Good morning.', ...fields })
    await sound.arrayBuffer()

    expect(started.sandbox.requests.at(-1)?.body).toMatchObject({ voice })
  })

  test('says what it knows of them, and their prices where the operator shows them', async () => {
    await start({ showPrices: true })

    const row = (await models()).data.find(({ id }) => id === 'gpt-4o-mini')

    expect(row).toMatchObject({
      created: Date.UTC(2024, 6, 18) / 1000,
      context_length: 128_000,
      max_input_tokens: 128_000,
      top_provider: { max_completion_tokens: 16_384 },
      supported_parameters: expect.arrayContaining(['tools', 'response_format', 'temperature']),
      pricing: { prompt: '0.00000018', completion: '0.00000072', input_cache_read: '0.00000009' },
      available: true,
    })
    expect(row?.['architecture']).toMatchObject({ output_modalities: ['text'] })
  })

  test('says that Claude takes response_format also where it has no structured output, for the gateway translates it', async () => {
    await start()
    const parametersOf = async (id: string) =>
      (await models()).data.find((model) => model.id === id)?.['supported_parameters']

    expect(await parametersOf('claude-3-haiku-20240307')).toContain('response_format')
    expect(await parametersOf('cl-opus-4-7')).toContain('response_format')
  })

  test('refuses a model without a price while billing is on, and says nothing of prices unasked', async () => {
    await start({ prices: { currency: 'USD', prices: [{ model: 'x', meter: 'request', amount: '1' }] } })

    const answer = await started.post('/v1/chat/completions', chatBody('gpt-4o', 'hi'))

    expect(answer.status).toBe(400)
    expect((await answer.json()).error.message).toContain(
      'There is no price for the model "gpt-4o" on the endpoint "chat"',
    )
    expect((await models()).data.some((row) => 'pricing' in row)).toBe(false)
  })
})

describe('ids that no catalog knows', () => {
  test('get 404', async () => {
    await start()

    expect((await started.post('/v1/chat/completions', chatBody('gpt-of-tomorrow', 'hi'))).status).toBe(404)
  })

  test('go to the vendor that passes them, charged by a price of a pattern, and are not listed', async () => {
    const sandbox = sandboxVendors()
    const gateway = createGateway({
      vendors: [openai({ apiKey: 'k', passUnknownModels: true })],
      prices: { currency: 'USD', prices: [{ model: 'openai/*', meter: 'request', amount: '0.5' }] },
      keys: [{ key: 'sk-of-a-caller', account: 'acct' }],
      transport: sandbox.transport(),
    })
    await gateway.start()
    await gateway.accounts.credit('acct', '10')
    const ask = (model: string) =>
      gateway.fetch(
        new Request('http://gateway.test/v1/chat/completions', {
          method: 'POST',
          headers: { authorization: 'Bearer sk-of-a-caller', 'content-type': 'application/json' },
          body: JSON.stringify(chatBody(model, 'hi')),
        }),
      )

    const priced = await ask('openai/gpt-of-tomorrow')
    expect(priced.status, await priced.clone().text()).toBe(200)
    expect(priced.headers.get('x-signalbox-cost')).toBe('0.5')
    expect(sandbox.requests[0]?.body).toMatchObject({ model: 'gpt-of-tomorrow' })
    const unpriced = await ask('gpt-of-tomorrow')
    expect(unpriced.status).toBe(404)
    expect((await unpriced.json()).error.message).toContain('the operator can allow it with a price')
    expect(gateway.models().some(({ id }) => id.includes('tomorrow'))).toBe(false)
    await gateway.close()
  })
})

describe('a key for some models', () => {
  test('may name them by pattern and by group, and lists no others', async () => {
    await start({
      models: [{ id: 'small', kind: 'chat', vendor: 'openai', upstream: 'gpt-4o-mini', groups: ['cheap'] }],
      authenticate: () => ({
        accountId: 'acct_test',
        keyId: 'key_session',
        tier: 'paid',
        scopes: { models: ['group:cheap', 'gpt-4o*'] },
      }),
    })
    await started.gateway.accounts.create({ id: 'acct_test' })
    await started.gateway.accounts.credit('acct_test', '10')
    const status = async (model: string) => (await started.post('/v1/chat/completions', chatBody(model, 'hi'))).status

    const first = await started.post('/v1/chat/completions', chatBody('small', 'hi'))
    expect(first.status, await first.text()).toBe(200)
    expect(await status('gpt-4o')).toBe(200)
    expect(await status('claude-sonnet-4-6')).toBe(403)
    const ids = (await models()).data.map(({ id }) => String(id))
    expect(ids).toContain('small')
    expect(ids.every((id) => id === 'small' || id.startsWith('gpt-4o'))).toBe(true)
    expect(((await models('/claude-sonnet-4-6')) as unknown as { error: object }).error).toBeDefined()
  })
})
