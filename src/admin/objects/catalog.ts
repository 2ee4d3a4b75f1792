import * as z from 'zod'
import type { CatalogModel } from '../../catalog/model.ts'
import type { CatalogState } from '../../gateway/catalog-options.ts'
import type { ListedModel } from '../../gateway/model-list.ts'
import type { ListedPrice } from '../../gateway/model-warnings.ts'
import type { KeyReport, VendorReport } from '../../gateway/operator-actions.ts'
import { dollars, timeMs } from './fields.ts'

/** Age of the catalog in force; `error` is the reason why a newer one cannot be loaded. */
export const catalogSchema = z.strictObject({
  date: z.string(),
  age_days: z.int(),
  is_old: z.boolean(),
  error: z.string().nullable(),
})
export type CatalogObject = z.infer<typeof catalogSchema>

export function catalogObject({ date, ageDays, isOld, error }: CatalogState): CatalogObject {
  return { date, age_days: ageDays, is_old: isOld, error: error ?? null }
}

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
export type ModelObject = z.infer<typeof modelSchema>

export function modelObject(listed: ListedModel, row: CatalogModel): ModelObject {
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
export type RetiringModelObject = z.infer<typeof retiringModelSchema>

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
export type PriceObject = z.infer<typeof priceSchema>

export function priceObject({ model, when, prices }: ListedPrice): PriceObject {
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

const vendorKeySchema = z.strictObject({
  /** Id of the vendor and a fingerprint of the operator's key. */
  credential: z.string(),
  weight: z.number(),
  circuit: z.enum(['closed', 'half-open', 'open']),
  reason: z.enum(['failing', 'busy', 'refused', 'operator']).nullable(),
  open_until_ms: timeMs.nullable(),
  failures: z.int(),
  in_flight: z.int(),
  latency_ms: z.number().nullable(),
  open_models: z.array(z.string()),
})

/** Vendor from the view of this process. */
export const vendorSchema = z.strictObject({
  object: z.literal('vendor'),
  id: z.string(),
  origin: z.string(),
  in_flight: z.int(),
  keys: z.array(vendorKeySchema),
})
export type VendorObject = z.infer<typeof vendorSchema>

export function vendorObject({ vendor, origin, inFlight, keys }: VendorReport): VendorObject {
  return { object: 'vendor', id: vendor, origin, in_flight: inFlight, keys: keys.map(vendorKeyObject) }
}

function vendorKeyObject(key: KeyReport): z.infer<typeof vendorKeySchema> {
  return {
    credential: key.credentialId,
    weight: key.weight,
    circuit: key.circuit,
    reason: key.reason,
    open_until_ms: key.openUntilMs === null ? null : Math.floor(key.openUntilMs),
    failures: key.failures,
    in_flight: key.inFlight,
    latency_ms: key.latencyMs,
    open_models: [...key.openModels],
  }
}
