import { afterEach, expect, test } from 'vitest'
import { BUILT_IN_MODELS } from '../../../src/catalog/models/built-in-models.ts'
import { listPrices } from '../../../src/catalog/prices/list-prices.ts'
import type { PriceRow } from '../../../src/catalog/prices/prices.ts'
import type { Logger } from '../../../src/core/logger.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { voyage } from '../../../src/vendors/voyage/voyage.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

let started: StartedGateway | undefined

afterEach(async () => {
  await started?.close()
  started = undefined
})

const ignore = (): void => undefined

/** Returns the log of a gateway with OpenAI and an unconfigured Voyage about prices at its start. */
async function messageAndParam(options: Partial<GatewayOptions>): Promise<readonly string[]> {
  const lines: string[] = []
  const logger: Logger = { debug: ignore, info: (line) => void lines.push(line), warn: ignore, error: ignore }
  const vendors = [openai({ apiKey: 'vendor-key-canary-7f3a' }), voyage()]
  started = await startGateway({ vendors, models: [], logger, ...options })
  return lines.filter((line) => line.includes('no price'))
}

const row = (model: string): PriceRow => ({ model, meter: 'request', amount: '1' })
const pricesOf = (...models: readonly string[]) => ({ currency: 'USD' as const, prices: models.map(row) })

/** Vendors' own ids of models that the list names by a public id, too. */
const SECOND_IDS = new Set(BUILT_IN_MODELS.flatMap(({ id, upstream }) => (upstream === id ? [] : [upstream])))

/** Ids of models whose vendors are configured, each model once. */
function callable(): readonly string[] {
  return started!.gateway
    .models()
    .filter(({ id, unavailable_reason: reason }) => reason !== 'model_not_configured' && !SECOND_IDS.has(id))
    .map(({ id }) => id)
}

/** Moderation is free without a price. */
const isFree = (id: string): boolean => id.startsWith('omni-moderation-')
const FREE = 2

test('start tells once how many models of the configured vendors have no price', async () => {
  const lines = await messageAndParam({ prices: pricesOf('gpt-4o', 'gp-image-2', 'vy-4') })
  await started!.gateway.start()
  const models = callable().length

  expect(models).toBeGreaterThan(40)
  // The price of a vendor that is not configured is none that counts.
  expect(lines).toEqual([
    `${models - 2 - FREE} of ${models} models of the configured vendors have no price, and are refused while billing is on`,
  ])
  expect(started!.gateway.unpricedModels()).toEqual({ unpriced: models - 2 - FREE, models })
})

test('a price of a pattern counts for each model that it holds for', async () => {
  await messageAndParam({ prices: pricesOf('gpt-*') })
  const unpriced = callable().filter((id) => !id.startsWith('gpt-') && !isFree(id)).length

  expect(unpriced).toBeGreaterThan(0)
  expect(started!.gateway.unpricedModels()?.unpriced).toBe(unpriced)
})

test('rows of the host count once, under their own id', async () => {
  const models = [{ id: 'fast', kind: 'chat', vendor: 'openai', upstream: 'gpt-4o-mini' }] as const
  await messageAndParam({ models, prices: pricesOf('fast') })
  const without = callable().length

  expect(started!.gateway.unpricedModels()).toEqual({ unpriced: without - 1 - FREE, models: without })
})

test('list prices leave few, and their number is that of the models whose call is refused', async () => {
  await messageAndParam({ prices: listPrices() })
  const { unpriced, models } = started!.gateway.unpricedModels()!
  const priced = new Set(started!.gateway.prices()?.map(({ model }) => model))

  expect(models).toBe(callable().length)
  expect(unpriced).toBe(callable().filter((id) => !priced.has(id) && !isFree(id)).length)
  expect(unpriced).toBeLessThan(models / 2)
})

test.each<[string, Partial<GatewayOptions>]>([
  ['every model has a price', { prices: pricesOf('*') }],
  ['billing is off', { billing: 'off' }],
  ['a list of the host does not tell its rows', { prices: { quote: () => undefined } }],
])('logs nothing if %s', async (_when, options) => {
  expect(await messageAndParam(options)).toEqual([])
})
