import type { ModelDefinition } from '../../../src/catalog/model.ts'
import type { PriceFile } from '../../../src/catalog/prices/prices.ts'
import { DRILL_MODEL_KINDS } from './drill-calls.ts'

const PRICES = {
  chat: [
    ['input_token', '1.00'],
    ['output_token', '4.00'],
  ],
  embeddings: [['input_token', '0.02']],
  image: [
    ['input_token', '5.00'],
    ['input_image_token', '8.00'],
    ['output_token', '10.00'],
    ['output_image_token', '30.00'],
  ],
} as const

/** Costs of the vendors' whole answers by {@link drillPrices}, in nano-dollars. */
export const WHOLE_COSTS = { chat: 30_000n, stream: 30_000n, embeddings: 200n, image: 650_000n } as const

/** A model of each kind with these vendors behind it, asked in this order: `chat-…`, `embeddings-…`, `image-…`. */
export function drillModels(route: string, vendors: readonly string[]): ModelDefinition[] {
  return Object.entries(DRILL_MODEL_KINDS).map(([name, kind]) => ({
    id: `${name}-${route}`,
    kind,
    vendor: vendors[0]!,
    upstream: 'up',
    routes: vendors.map((vendor, priority) => ({ vendor, upstream: 'up', priority })),
    limits: { maxOutputTokens: 1000 },
    ...(kind === 'image' ? { protocol: 'generations' } : {}),
  }))
}

/** Prices of the models. */
export function drillPrices(routes: readonly string[]): PriceFile {
  const rows = routes.flatMap((route) =>
    Object.entries(PRICES).flatMap(([name, meters]) =>
      meters.map(([meter, amount]) => ({ model: `${name}-${route}`, meter, amount, per: 1_000_000 })),
    ),
  )
  return { currency: 'USD', prices: rows }
}
