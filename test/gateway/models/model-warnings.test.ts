import { afterEach, expect, test, vi } from 'vitest'
import { listPrices } from '../../../src/catalog/prices/list-prices.ts'
import { silentLogger } from '../../../src/core/logger.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { anthropic } from '../../../src/vendors/anthropic/anthropic.ts'
import { cohere } from '../../../src/vendors/cohere/cohere.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'
import { voyage } from '../../../src/vendors/voyage/voyage.ts'

let gateway: ReturnType<typeof createGateway> | undefined

afterEach(() => gateway?.close())

const NO_ANTHROPIC =
  'The vendor "anthropic" has no key, so no call goes to it. Set ANTHROPIC_API_KEY or anthropic({ apiKey }).'
const row = (id: string, more: object = {}) => ({ id, kind: 'chat', vendor: 'openai', ...more }) as const
const price = (model: string) => ({ model, meter: 'request', amount: '1' }) as const

async function start(options: Partial<GatewayOptions>) {
  const logger = { ...silentLogger, warn: vi.fn() }
  const onEvent = vi.fn()
  gateway = createGateway({
    vendors: [openai({ apiKey: 'k' }), anthropic()],
    prices: { currency: 'USD', prices: [] },
    logger,
    onEvent,
    ...options,
  })
  await gateway.start()
  const warnings = gateway.warnings()
  const logged = logger.warn.mock.calls.filter(([message]) => !message.includes('days old'))
  expect(logged.map(([message, { code }]) => ({ code, message }))).toEqual(warnings)
  expect(onEvent.mock.calls).toEqual(warnings.map((warning) => [{ type: 'configuration-warning', ...warning }]))
  return warnings
}

test('reports models that the host has listed without a price in one warning', async () => {
  const own = openaiCompatible({
    id: 'own',
    baseURL: 'http://own.example/v1',
    models: [{ id: 'own-model', kind: 'chat' }],
  })
  const warnings = await start({
    vendors: [openai({ apiKey: 'k' }), anthropic(), own],
    models: [
      row('priced'),
      row('by-pattern'),
      row('forgotten'),
      row('not-callable', { vendor: 'anthropic' }),
      row('any-*', { upstream: 'x-*' }),
    ],
    prices: { currency: 'USD', prices: [price('priced'), price('by-*')] },
  })

  expect(warnings).toEqual([
    {
      code: 'model-unpriced',
      message: 'Models have no price and are refused while billing is on: "forgotten", "own-model".',
    },
    { code: 'vendor-unconfigured', message: NO_ANTHROPIC },
  ])
})

test('reports the missing price of a chat model with only an input or output price', async () => {
  const only = (model: string, meter: 'input_token' | 'output_token') => ({ model, meter, amount: '1' }) as const
  const warnings = await start({
    models: [
      row('half'),
      row('by-half-pattern'),
      row('whole'),
      row('by-request'),
      row('vectors', { kind: 'embedding' }),
    ],
    prices: {
      currency: 'USD',
      prices: [
        only('half', 'output_token'),
        only('by-*', 'input_token'),
        only('whole', 'input_token'),
        only('whole', 'output_token'),
        price('by-request'),
        only('vectors', 'input_token'),
        // A model of the vendor, which nobody has listed but who wrote this row.
        only('gpt-4o', 'input_token'),
      ],
    },
  })

  expect(warnings.map(({ message }) => message)).toEqual([
    'Models have no price and are refused while billing is on: "half" (no input_token), "by-half-pattern" (no output_token), "gpt-4o" (no output_token).',
  ])
})

test('names twenty of very many models without a price', async () => {
  const models = Array.from({ length: 25 }, (_, index) => row(`m-${index}`))
  const [warning] = await start({ models })

  expect(warning?.message).toMatch(/"m-19" and 5 more\.$/)
})

test('nobody needs a price where billing is off, or for models that nobody has listed', async () => {
  expect(await start({})).toEqual([])
  await gateway?.close()
  expect(await start({ billing: 'off', prices: undefined as never, models: [row('free')] })).toEqual([])
})

test('reports fallbacks whose vendors cannot be called with the reason', async () => {
  const warnings = await start({
    billing: 'off',
    prices: undefined as never,
    vendors: [openai({ apiKey: 'k' }), anthropic(), voyage()],
    models: [
      row('main', { fallbacks: ['good', 'keyless', 'vendorless', 'by-routes', 'by-good-route'] }),
      row('good'),
      row('keyless', { vendor: 'anthropic' }),
      row('vendorless', { vendor: 'gone' }),
      row('by-routes', { vendor: 'anthropic', routes: [{ vendor: 'anthropic' }, { vendor: 'gone' }] }),
      row('by-good-route', { vendor: 'anthropic', routes: [{ vendor: 'anthropic' }, { vendor: 'openai' }] }),
    ],
  })

  const unreachable = warnings.filter(({ code }) => code === 'fallback-unreachable')
  expect(unreachable.map(({ message }) => message)).toEqual([
    'The model "keyless" can never answer as a fallback of "main": the vendor "anthropic" has no key.',
    'The model "vendorless" can never answer as a fallback of "main": there is no vendor "gone".',
    'The model "by-routes" can never answer as a fallback of "main": the vendor "anthropic" has no key, and there is no vendor "gone".',
  ])
})

test('reports prices of unknown models, too', async () => {
  const warnings = await start({ prices: { currency: 'USD', prices: [price('gone')] } })

  expect(warnings).toEqual([{ code: 'price-unused', message: 'prices[0] (request of gone): there is no such model' }])
})

test('reports a pattern whose models all have their own prices', async () => {
  const prices = [price('ours-*'), price('ours-one'), price('other-*'), price('other-one'), price('later-*')]
  const models = [row('ours-one'), row('other-one'), row('other-two')]
  const warnings = await start({ models, prices: { currency: 'USD', prices } })

  expect(warnings).toEqual([
    {
      code: 'price-unused',
      message:
        'prices[0] (request of ours-*): every model that it matches has prices of its own, such as ours-one, and is charged by those',
    },
  ])
})

test('names every vendor without a key that a row, a fallback, a route or a price names', async () => {
  const warnings = await start({
    vendors: [openai({ apiKey: 'k' }), anthropic(), gemini(), voyage(), cohere()],
    models: [
      row('main', { fallbacks: ['claude-haiku-4-5'] }),
      row('routed', { vendor: 'openai', routes: [{ vendor: 'openai' }, { vendor: 'gone' }] }),
      row('keyless', { vendor: 'gemini', upstream: 'gemini-3-flash' }),
    ],
    prices: {
      currency: 'USD',
      prices: [price('main'), price('routed'), price('keyless'), price('claude-haiku-4-5'), price('vy-4')],
    },
  })

  expect(warnings.filter(({ code }) => code === 'vendor-unconfigured').map(({ message }) => message)).toEqual([
    'There is no vendor "gone", so no call goes to it. Add it to the option vendors.',
    'The vendor "gemini" has no key, so no call goes to it. Set GEMINI_API_KEY or gemini({ apiKey }).',
    NO_ANTHROPIC,
    'The vendor "voyage" has no key, so no call goes to it. Set VOYAGE_API_KEY or voyage({ apiKey }).',
  ])
})

test('names no vendor without a key for list prices alone', async () => {
  const warnings = await start({ vendors: [openai({ apiKey: 'k' }), anthropic(), gemini()], prices: listPrices() })

  expect(warnings.filter(({ code }) => code === 'vendor-unconfigured')).toEqual([])
})
