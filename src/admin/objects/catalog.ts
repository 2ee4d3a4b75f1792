import * as z from 'zod'
import type { CatalogModel } from '../../catalog/model.ts'
import type { CatalogState } from '../../gateway/catalog-options.ts'
import type { ListedModel } from '../../gateway/model-list.ts'
import type { ListedPrice } from '../../gateway/model-warnings.ts'
import type { KeyReport, VendorReport } from '../../gateway/operator-actions.ts'
import type { UsageReportRow } from '../../gateway/usage.ts'
import { amount, defineObject, kind, optionalText, optionalTime, text } from './fields.ts'

/** Age of the catalog in force; `error` is the reason why a newer one cannot be loaded. */
export const { schema: catalogSchema, write: catalogObject } = defineObject<CatalogState>()({
  date: text(({ date }) => date),
  age_days: [z.int(), ({ ageDays }) => ageDays],
  is_old: [z.boolean(), ({ isOld }) => isOld],
  error: optionalText(({ error }) => error),
})
export type CatalogObject = z.infer<typeof catalogSchema>

const routeSchema = z.strictObject({
  vendor: z.string(),
  /** Id of the model at the vendor. */
  upstream: z.string(),
  weight: z.number(),
  priority: z.int(),
  /** Request values under which the price applies. */
  when: z.record(z.string(), z.string()),
})

function routesOf(row: CatalogModel): z.infer<typeof routeSchema>[] {
  const routes = row.routes ?? [{ vendor: row.vendor }]
  return routes.map(({ vendor, upstream = row.upstream, weight = 1, priority = 0, when = {} }) => {
    return { vendor, upstream, weight, priority, when: { ...when } }
  })
}

const unavailable = z.enum(['model_not_configured', 'model_not_priced'])
const texts = z.array(z.string())

/** Model of the catalog, and its routes. */
export const { schema: modelSchema, write: modelObject } = defineObject<{
  readonly listed: ListedModel
  readonly row: CatalogModel
}>()({
  object: kind('model'),
  id: text(({ row }) => row.id),
  display_name: text(({ row }) => row.displayName),
  kinds: [texts, ({ row }) => [...row.kinds]],
  /** Whether this gateway can answer calls of the model. */
  available: [z.boolean(), ({ listed }) => listed.available],
  /** Error code that calls of the model get, or null if it is available. */
  unavailable_reason: [unavailable.nullable(), ({ listed }) => listed.unavailable_reason ?? null],
  aliases: [texts, ({ row }) => [...row.aliases]],
  fallbacks: [texts, ({ row }) => [...row.fallbacks]],
  context_tokens: [z.int().nullable(), ({ listed }) => listed.max_input_tokens ?? null],
  max_output_tokens: [z.int().nullable(), ({ listed }) => listed.max_tokens ?? null],
  /** Day on which its vendor ends it, such as 2026-12-31, or null if it is not known. */
  retires: optionalText(({ listed }) => listed.expiration_date),
  routes: [z.array(routeSchema), ({ row }) => routesOf(row)],
})
export type ModelObject = z.infer<typeof modelSchema>

/** A called model that its vendor ends soon, or has ended, with its calls of the last 30 days. */
export const { schema: retiringModelSchema, write: retiringModelObject } = defineObject<{
  readonly model: CatalogModel
  readonly retires: string
  readonly row: UsageReportRow
}>()({
  object: kind('retiring_model'),
  id: text(({ row }) => row.model ?? ''),
  vendor: text(({ model }) => model.vendor),
  retires: text(({ retires }) => retires),
  requests: [z.int(), ({ row }) => row.requests],
  charged: amount(({ row }) => row.chargedNanoDollars),
})
export type RetiringModelObject = z.infer<typeof retiringModelSchema>

const unitPrice = defineObject<ListedPrice['prices'][number]>()({
  meter: text(({ meter }) => meter),
  /** Dollars for `per` units. */
  amount: text(({ amount }) => amount),
  per: [z.number(), ({ per }) => per],
  /** Number of input tokens above which the price applies. */
  input_tokens_above: [z.number().nullable(), ({ inputTokensAbove }) => inputTokensAbove ?? null],
})

/** Prices of a model that apply under the same conditions. */
export const { schema: priceSchema, write: priceObject } = defineObject<ListedPrice>()({
  object: kind('price'),
  model: text(({ model }) => model),
  when: [z.record(z.string(), z.string()), ({ when }) => textsOf(when)],
  prices: [z.array(unitPrice.schema), ({ prices }) => prices.map(unitPrice.write)],
})
export type PriceObject = z.infer<typeof priceSchema>

function textsOf(conditions: ListedPrice['when']): Record<string, string> {
  const given = Object.entries(conditions).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given.map(([field, value]) => [field, String(value)]))
}

const vendorKey = defineObject<KeyReport>()({
  /** Id of the vendor and a fingerprint of the operator's key. */
  credential: text(({ credentialId }) => credentialId),
  weight: [z.number(), ({ weight }) => weight],
  circuit: [z.enum(['closed', 'half-open', 'open']), ({ circuit }) => circuit],
  reason: [z.enum(['failing', 'busy', 'refused', 'operator']).nullable(), ({ reason }) => reason],
  open_until_ms: optionalTime(({ openUntilMs }) => openUntilMs),
  failures: [z.int(), ({ failures }) => failures],
  in_flight: [z.int(), ({ inFlight }) => inFlight],
  latency_ms: [z.number().nullable(), ({ latencyMs }) => latencyMs],
  open_models: [texts, ({ openModels }) => [...openModels]],
})

/** Vendor from the view of this process. */
export const { schema: vendorSchema, write: vendorObject } = defineObject<VendorReport>()({
  object: kind('vendor'),
  id: text(({ vendor }) => vendor),
  origin: text(({ origin }) => origin),
  in_flight: [z.int(), ({ inFlight }) => inFlight],
  keys: [z.array(vendorKey.schema), ({ keys }) => keys.map(vendorKey.write)],
})
export type VendorObject = z.infer<typeof vendorSchema>
