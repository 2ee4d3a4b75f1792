import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import { listPrices } from '../../../src/catalog/prices/list-prices.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { sandboxVendors } from '../../../src/testing/index.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../../src/vendors/presets/presets.ts'
import type { Vendor } from '../../../src/vendors/vendor.ts'
import { chatBody, type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

let started: StartedGateway | undefined

afterEach(async () => {
  await started?.close()
  started = undefined
})

const FREE = { models: [], billing: 'off' } as const
const PRICED = { models: [], prices: listPrices() } as const

/** Starts a gateway whose vendors, made by `order`, are behind one stand-in for all of them. */
async function start(
  options: Partial<GatewayOptions> = {},
  order?: (connection: { apiKey: string; baseURL: string }) => readonly Vendor[],
): Promise<StartedGateway> {
  if (order === undefined) {
    started = await startGateway(options)
    return started
  }
  const sandbox = sandboxVendors()
  const { origin } = await sandbox.listen()
  const vendors = order({ apiKey: 'vendor-key-canary-7f3a', baseURL: origin })
  const gateway = await startGateway({ ...options, vendors: [...vendors] })
  const close = async (): Promise<void> => {
    await gateway.close()
    await sandbox.close()
  }
  started = { ...gateway, sandbox, close }
  return started
}

const openaiClient = ({ url }: StartedGateway): OpenAI =>
  new OpenAI({ apiKey: TEST_KEY, baseURL: `${url}/v1`, maxRetries: 0 })
const anthropicClient = ({ url }: StartedGateway): Anthropic =>
  new Anthropic({ apiKey: TEST_KEY, baseURL: url, maxRetries: 0 })

/** Calls a model by chat, Messages and Responses with the official clients; returns the model that each answer names. */
async function callByAllThree(gateway: StartedGateway, model: string): Promise<string[]> {
  const messages = [{ role: 'user', content: 'hello' } as const]
  const chat = await openaiClient(gateway).chat.completions.create({ model, messages, max_tokens: 20 })
  const message = await anthropicClient(gateway).messages.create({ model, messages, max_tokens: 20 })
  const response = await openaiClient(gateway).responses.create({ model, input: 'hello', max_output_tokens: 20 })
  return [chat.model, message.model, response.model]
}

/** Paths and models of the calls that the stand-ins received. */
const received = ({ sandbox }: StartedGateway): string[] =>
  sandbox.requests.map(({ path, body }) => `${path} ${(body as { model?: string }).model ?? ''}`.trim())

describe('an id that no catalog knows', () => {
  test.each([
    ['gpt-7-nova', ['/v1/chat/completions gpt-7-nova', '/v1/responses gpt-7-nova', '/v1/responses gpt-7-nova']],
    ['claude-opus-9', Array.from({ length: 3 }, () => '/v1/messages claude-opus-9')],
  ])(
    'is answered at the vendor that claims %s, in either order of the vendors, with billing off',
    async (model, calls) => {
      for (const isReversed of [false, true]) {
        const gateway = await start(FREE, (connection) => {
          const vendors = [anthropic(connection), openai(connection), gemini(connection)]
          return isReversed ? vendors.reverse() : vendors
        })

        expect(await callByAllThree(gateway, model)).toEqual([model, model, model])
        expect(received(gateway).map((call) => call.split(' ')[1])).toEqual(calls.map((call) => call.split(' ')[1]))
        const isOpenai = model.startsWith('gpt')
        expect(received(gateway).every((call) => call.startsWith('/v1/messages') !== isOpenai)).toBe(true)
        await gateway.close()
        started = undefined
      }
    },
  )

  test.each([false, true])(
    'goes to the vendor that claims it although others pass unknown models; reversed: %s',
    async (isReversed) => {
      const gateway = await start(FREE, (connection) => {
        const pass = { ...connection, passUnknownModels: true }
        const vendors = [openai(pass), anthropic(pass)]
        return isReversed ? vendors.reverse() : vendors
      })

      const answer = await gateway.post('/v1/chat/completions', chatBody('claude-opus-5-5', 'hello'))

      expect(answer.status, await answer.clone().text()).toBe(200)
      expect(received(gateway)).toEqual(['/v1/messages claude-opus-5-5'])
    },
  )

  test('is refused with 404 in the dialect of the caller while billing is on, and the answer says how to allow it', async () => {
    const gateway = await start(PRICED)
    const model = 'gpt-7-nova'
    const remedy =
      /no price for the model "gpt-7-nova".* the operator can allow it with a price, or with unknownModels\./i
    const messages = [{ role: 'user', content: 'hello' } as const]

    await expect(openaiClient(gateway).chat.completions.create({ model, messages })).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
      param: 'model',
      message: expect.stringMatching(remedy),
    })
    await expect(openaiClient(gateway).responses.create({ model, input: 'hello' })).rejects.toMatchObject({
      status: 404,
    })
    await expect(anthropicClient(gateway).messages.create({ model, messages, max_tokens: 9 })).rejects.toMatchObject({
      status: 404,
      error: { error: { type: 'not_found_error', message: expect.stringMatching(remedy) } },
    })
    await expect(openaiClient(gateway).models.retrieve(model)).rejects.toMatchObject({ status: 404 })
    expect(gateway.sandbox.requests).toEqual([])
    expect((await gateway.account()).held).toBe(0n)
  })

  test('costs what the newest model of its family costs if the operator says so', async () => {
    const gateway = await start({ ...PRICED, unknownModels: { pricedAs: 'newest of its family' } })
    const costOf = async (model: string): Promise<string | null> => {
      const answer = await gateway.post('/v1/chat/completions', chatBody(model, 'hello'))
      expect(answer.status, await answer.clone().text()).toBe(200)
      await gateway.ended(answer)
      return answer.headers.get('x-signalbox-cost')
    }
    const newest = ({ catalog }: StartedGateway['gateway']): string =>
      catalog.find(`openai/${catalog.find('gpt-7-nova')?.family?.[0]}`)?.id ?? ''

    expect(newest(gateway.gateway)).toMatch(/^gpt-\d(?:\.\d+)?$/)
    expect(await callByAllThree(gateway, 'gpt-7-nova')).toEqual(['gpt-7-nova', 'gpt-7-nova', 'gpt-7-nova'])
    expect(await costOf('gpt-7-nova')).toBe(await costOf(newest(gateway.gateway)))
    expect(await costOf('gpt-7-mini')).not.toBe(await costOf('gpt-7-nova'))
    const strange = await gateway.post('/v1/chat/completions', chatBody('chatgpt-nova', 'hello'))
    expect(strange.status).toBe(404)
  })

  test('costs what the rows for unknown models say, and what a price of its own says first', async () => {
    const row = (model: string, amount: string) => ({ model, meter: 'request', amount }) as const
    const gateway = await start({
      models: [],
      prices: { currency: 'USD', prices: [row('gpt-7-own', '0.25')] },
      unknownModels: { pricedAs: [row('gpt-*', '0.5')] },
    })
    const costOf = async (model: string): Promise<string | null> =>
      (await gateway.post('/v1/chat/completions', chatBody(model, 'hello'))).headers.get('x-signalbox-cost')

    expect(await costOf('gpt-7-nova')).toBe('0.5')
    expect(await costOf('gpt-7-own')).toBe('0.25')
    // The catalog knows this one, so the rows do not hold for it.
    expect(await costOf('gpt-4o')).toBe(null)
    expect((await gateway.post('/v1/chat/completions', chatBody('claude-opus-9', 'hello'))).status).toBe(404)
  })

  test('is refused with billing off if the operator says so', async () => {
    const gateway = await start({ ...FREE, unknownModels: 'refuse' })

    expect((await gateway.post('/v1/chat/completions', chatBody('gpt-7-nova', 'hello'))).status).toBe(404)
    const dated = await gateway.post('/v1/chat/completions', chatBody('gpt-4o-mini-2024-07-18', 'hello'))
    expect(dated.status, await dated.clone().text()).toBe(200)
  })

  test('gets 404 from its vendor without an alert if the vendor has no such model', async () => {
    const gateway = await start(FREE)
    gateway.sandbox.fault({ kind: 'status', status: 404 })

    const answer = await gateway.post('/v1/chat/completions', chatBody('gpt-4o-minii', 'hello'))

    expect(answer.status).toBe(404)
    expect((await answer.json()).error.code).toBe('model_not_found')
    expect(gateway.events.filter(({ type }) => type === 'circuit-opened' || type === 'vendor-account-problem')).toEqual(
      [],
    )
  })
})

test.each([
  [
    'unknownModels: an unknown word',
    { unknownModels: 'newest of its family' },
    "unknownModels must be 'refuse' or { pricedAs }",
  ],
  ['unknownModels: an unknown member', { unknownModels: { priceAs: [] } }, 'unknownModels.priceAs is unknown'],
  ['unknownModels: an unknown rule', { unknownModels: { pricedAs: 'newest' } }, 'unknownModels.pricedAs must be'],
  ['unknownModels: a faulty row', { unknownModels: { pricedAs: [{ model: 'gpt-*' }] } }, 'prices[0].meter'],
])('a gateway does not start with %s', async (_title, options, message) => {
  await expect(startGateway({ ...PRICED, ...options } as Partial<GatewayOptions>)).rejects.toThrow(message)
})

test('a gateway does not start with prices of unknown models and billing off', async () => {
  const unknownModels = { pricedAs: 'newest of its family' } as const
  await expect(startGateway({ ...FREE, unknownModels })).rejects.toThrow("no effect with billing: 'off'")
})

describe('the price list', () => {
  const row = (model: string) => ({ model, meter: 'request', amount: '1' }) as const

  test.each(['openia/gpt-4o', 'acme-of-nowhere/m'])('is refused with the unknown vendor of %s', async (model) => {
    const prices = { currency: 'USD', prices: [row('gpt-4o'), row(model)] } as const

    await expect(startGateway({ prices, models: [] })).rejects.toThrow(`prices[1]: "${model}" names an unknown vendor`)
    await expect(startGateway({ prices: listPrices({ prices }), models: [] })).rejects.toThrow('unknown vendor')
  })

  test('may name vendors that are not configured here, makers in ids, and groups of rows', async () => {
    const models = ['groq/llama-3', 'meta-llama/llama-9', 'corp/own', '*/x', 'claude-opus-9', 'openai/gpt-*']
    await start({
      prices: { currency: 'USD', prices: models.map(row) },
      models: [{ id: 'corp/*', kind: 'chat', vendor: 'openai', upstream: '*' }],
    })
  })
})

describe('a dated form of a known id', () => {
  test.each([
    ['gpt-4o-mini-2024-07-18', 'gpt-4o-mini'],
    ['gpt-5-2025-08-07', 'gpt-5'],
    ['openai/gpt-5-2025-08-07', 'gpt-5'],
    ['claude-opus-4-7-20260416', 'claude-opus-4-7'],
  ])('%s is that model with its price, and the vendor gets the date', async (dated, known) => {
    const gateway = await start(PRICED)
    const first = await gateway.post('/v1/chat/completions', chatBody(dated, 'hello'))
    const second = await gateway.post('/v1/chat/completions', chatBody(known, 'hello'))
    const bare = dated.replace('openai/', '')

    expect(first.status, await first.clone().text()).toBe(200)
    expect(first.headers.get('x-signalbox-cost')).toBe(second.headers.get('x-signalbox-cost'))
    expect(received(gateway).map((call) => call.split(' ')[1])).toEqual([bare, known])
    if (bare === dated) expect((await first.json()).model).toBe(dated)
    const find = (id: string) => gateway.gateway.catalog.find(id)
    expect(find(dated)).toMatchObject({ id: find(known)?.id, limits: find(known)?.limits, upstream: bare })
  })

  test.each(['gpt-4o-mini-2024-13-18', 'gpt-4o-mini-2024-07-18-2024-07-18', 'gpt-7-nova-2024-07-18'])(
    '%s is none',
    async (id) => {
      const gateway = await start(PRICED)

      expect((await gateway.post('/v1/chat/completions', chatBody(id, 'hello'))).status).toBe(404)
    },
  )
})

describe('a vendor with named models', () => {
  const named = [{ id: 'my-model', kind: 'chat' }] as const

  test.each(['ollama', 'vllm', 'lmstudio', 'llamacpp', 'mistral'] as const)('serves only these: %s', async (preset) => {
    const gateway = await start(FREE, (connection) => [
      openaiCompatible(presets[preset], { ...connection, models: named }),
    ])
    const statusOf = async (model: string): Promise<number> =>
      (await gateway.post('/v1/chat/completions', chatBody(model, 'hello'))).status

    for (const model of ['llama-of-mine', 'gpt-7-nova', 'mistral-of-mine', 'my-model-2026-01-01', `${preset}/other`])
      expect(await statusOf(model), model).toBe(404)
    expect(gateway.sandbox.requests).toEqual([])
  })

  test('gets any other id with passUnknownModels, and a local server without named models too', async () => {
    const local = { models: named, passUnknownModels: true }
    for (const options of [local, {}]) {
      const vendor = openaiCompatible(presets.ollama, options)
      const gateway = await start({ ...FREE, vendors: [openai({ apiKey: 'k' }), vendor] })
      const vendorOf = (id: string): string | undefined => gateway.gateway.catalog.find(id)?.vendor

      expect(vendorOf('llama-of-mine')).toBe('ollama')
      expect(vendorOf('gpt-oss:20b')).toBe('ollama')
      expect(vendorOf('ollama/gpt-7-nova')).toBe('ollama')
      expect(vendorOf('gpt-7-nova')).toBe('openai')
      await gateway.close()
      started = undefined
    }
  })
})

describe("the vendors' own ids", () => {
  test('are listed after the public ids, for all clients', async () => {
    const gateway = await start({ ...PRICED, showPrices: true })
    const ids = (await openaiClient(gateway).models.list()).data.map(({ id }) => id)
    const byAnthropic = (await anthropicClient(gateway).models.list()).data.map(({ id }) => id)
    const answer = await fetch(`${gateway.url}/v1/models?client_version=0.171.0`, {
      headers: { authorization: `Bearer ${TEST_KEY}` },
    })
    const coding = (await answer.json()) as { models: Record<string, unknown>[]; data: Record<string, unknown>[] }
    const slugs = coding.models.map(({ slug }) => slug)

    for (const [id, own] of [
      ['cl-opus-4-7', 'claude-opus-4-7'],
      ['cl-sonnet-4-6', 'claude-sonnet-4-6'],
      ['gmn-2.5-pro', 'gemini-2.5-pro'],
      ['gmn-2.5-flash', 'gemini-2.5-flash'],
    ] as const) {
      for (const list of [ids, byAnthropic, slugs]) expect(list.slice(list.indexOf(id)).slice(0, 2)).toEqual([id, own])
      const rows = [id, own].map((one) => coding.data.find((row) => row['id'] === one))
      expect(rows[1]).toEqual({ ...rows[0], id: own })
    }
    expect(new Set(slugs).size).toBe(slugs.length)
  })

  test('claim no summary parameter in the list for Codex if the model does not reason', async () => {
    const gateway = await start(PRICED)
    const answer = await fetch(`${gateway.url}/v1/models?client_version=0.171.0`, {
      headers: { authorization: `Bearer ${TEST_KEY}` },
    })
    const { models } = (await answer.json()) as { models: { slug: string; [member: string]: unknown }[] }
    const of = (slug: string) => models.find((model) => model.slug === slug)

    expect(of('gpt-4o')).toMatchObject({
      supports_reasoning_summary_parameter: false,
      default_reasoning_summary: 'none',
    })
    expect(of('gpt-5')).toMatchObject({ supports_reasoning_summary_parameter: true, default_reasoning_summary: 'auto' })
  })
})
