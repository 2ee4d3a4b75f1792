import * as z from 'zod'
import type { CatalogModel } from '../../catalog/model.ts'
import type { ListedModel } from '../../gateway/model-list.ts'
import type { ListedPrice } from '../../gateway/price-list.ts'
import { dollars } from './fields.ts'

const routeSchema = z.strictObject({
  vendor: z.string(),
  /** Id of the model at the vendor. */
  upstream: z.string(),
  weight: z.number(),
  priority: z.int(),
  /** Request values under which the price applies. */
  when: z.record(z.string(), z.string()),
})

/** Model of the catalog, and its routes. */
export const modelSchema = z.strictObject({
  object: z.literal('model'),
  id: z.string(),
  display_name: z.string(),
  kinds: z.array(z.string()),
  /** Whether this gateway can answer calls of the model. */
  available: z.boolean(),
  /** Error code that calls of the model get, or null if it is available. */
  unavailable_reason: z.enum(['model_not_configured', 'model_not_priced']).nullable(),
  aliases: z.array(z.string()),
  fallbacks: z.array(z.string()),
  context_tokens: z.int().nullable(),
  max_output_tokens: z.int().nullable(),
  /** Day on which its vendor ends it, such as 2026-12-31, or null if it is not known. */
  retires: z.string().nullable(),
  routes: z.array(routeSchema),
})

export function modelObject(listed: ListedModel, row: CatalogModel): z.infer<typeof modelSchema> {
  const routes = row.routes ?? [{ vendor: row.vendor }]
  return {
    object: 'model',
    id: row.id,
    display_name: row.displayName,
    kinds: [...row.kinds],
    available: listed.available,
    unavailable_reason: listed.unavailable_reason ?? null,
    aliases: [...row.aliases],
    fallbacks: [...row.fallbacks],
    context_tokens: listed.max_input_tokens ?? null,
    max_output_tokens: listed.max_tokens ?? null,
    retires: listed.expiration_date ?? null,
    routes: routes.map(({ vendor, upstream = row.upstream, weight = 1, priority = 0, when = {} }) => {
      return { vendor, upstream, weight, priority, when: { ...when } }
    }),
  }
}

/** A called model that its vendor ends soon, or has ended, with its calls of the last 30 days. */
export const retiringModelSchema = z.strictObject({
  object: z.literal('retiring_model'),
  id: z.string(),
  vendor: z.string(),
  retires: z.string(),
  requests: z.int(),
  charged: dollars,
})

/** Prices of a model that apply under the same conditions. */
export const priceSchema = z.strictObject({
  object: z.literal('price'),
  model: z.string(),
  when: z.record(z.string(), z.string()),
  prices: z.array(
    z.strictObject({
      meter: z.string(),
      /** Dollars for `per` units. */
      amount: z.string(),
      per: z.number(),
      /** Number of input tokens above which the price applies. */
      input_tokens_above: z.number().nullable(),
    }),
  ),
})

export function priceObject({ model, when, prices }: ListedPrice): z.infer<typeof priceSchema> {
  return {
    object: 'price',
    model,
    when: textsOf(when),
    prices: prices.map(({ meter, amount, per, inputTokensAbove }) => {
      return { meter, amount, per, input_tokens_above: inputTokensAbove ?? null }
    }),
  }
}

function textsOf(conditions: ListedPrice['when']): Record<string, string> {
  const given = Object.entries(conditions).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given.map(([field, value]) => [field, String(value)]))
}
