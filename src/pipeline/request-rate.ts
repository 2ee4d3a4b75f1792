import type { CatalogModel } from '../catalog/model.ts'
import type { BillingFields, Prices, Rate } from '../catalog/prices/prices.ts'
import type { ExtraFeature, InnerModel } from '../endpoints/endpoint.ts'
import type { Parsed } from './call-record.ts'
import type { PipelineContext } from './pipeline-context.ts'

/** The parts of a request that need a price of their own. */
export interface Extras {
  readonly features: readonly ExtraFeature[]
  readonly innerModels: readonly InnerModel[]
}

const NO_EXTRAS: Extras = { features: [], innerModels: [] }

/** Reads a request's parts, once for all models of its chain. */
export function extrasOf({ endpoint, body, request }: Parsed): Extras {
  if (endpoint.extraFeatures === undefined && endpoint.innerModels === undefined) return NO_EXTRAS
  return {
    features: endpoint.extraFeatures?.(body, (name) => request.header(name)) ?? [],
    innerModels: endpoint.innerModels?.(body) ?? [],
  }
}

/** A part of a request without a price. */
export interface UnpricedPart extends ExtraFeature {}

/**
 * The rate of a call at a model, with the rates of other models that may work within it. Undefined: the model has no price;
 * or the part of the request that has none.
 */
export function rateOfRequest(
  context: PipelineContext,
  prices: Prices,
  parsed: Parsed,
  { model, extras }: { readonly model: CatalogModel; readonly extras: Extras },
): Rate | UnpricedPart | undefined {
  const { endpoint, body } = parsed
  const reached = reachesExtras(context, parsed, model) ? extras : NO_EXTRAS
  const charged = chargedFields(context, parsed, model)
  const listed = prices.quote(model.id, charged, endpoint.surcharges)
  if (listed !== undefined && reached.features.length === 0 && reached.innerModels.length === 0) return listed
  // What has no price at all is told as such.
  if (prices.quote(model.id, charged) === undefined) return undefined
  const fields: Record<string, string> = { ...charged }
  for (const name of endpoint.surcharges ?? []) {
    const value = fields[name]
    if (value === undefined || prices.quote(model.id, charged, [name]) !== undefined) continue
    if (!isAllowed(context, name, value))
      return { field: name, value, param: endpoint.priceFieldParam?.(name, body) ?? name }
    delete fields[name]
  }
  for (const { field, value, param } of reached.features) {
    if (isAllowed(context, field, value)) continue
    const isPriced = prices.quote(model.id, { ...fields, [field]: value }, [field]) !== undefined
    // A row for each of two is no price for both of them.
    if (!isPriced || (fields[field] ?? value) !== value) return { field, value, param }
    fields[field] = value
  }
  const rate = prices.quote(model.id, fields, endpoint.surcharges)
  if (rate === undefined || reached.innerModels.length === 0) return rate
  const otherModels = new Map<string, Rate>()
  for (const inner of reached.innerModels) {
    const id = context.catalog.find(inner.model)?.id
    const price = id === undefined ? undefined : prices.quote(id, {})
    if (price === undefined) return { field: 'model', value: inner.model, param: inner.param }
    otherModels.set(inner.model, price)
  }
  return { ...rate, otherModels }
}

function reachesExtras(context: PipelineContext, { endpoint }: Pick<Parsed, 'endpoint'>, model: CatalogModel): boolean {
  if (endpoint.reachesExtras === undefined) return true
  return (model.routes ?? [model]).some(({ vendor: id }) => {
    const vendor = context.vendors.get(id)
    return vendor !== undefined && endpoint.reachesExtras?.(vendor) === true
  })
}

/** Does the operator let it pass without a price? */
function isAllowed({ unpricedFeatures }: PipelineContext, field: string, value: string): boolean {
  return unpricedFeatures.has(field) || unpricedFeatures.has(`${field}=*`) || unpricedFeatures.has(`${field}=${value}`)
}

/**
 * What a model's price depends on: a surcharge that no vendor of its routes is asked for is not charged. One that some of them is
 * asked for is, because nobody knows yet which of them will answer.
 */
export function chargedFields(
  context: PipelineContext,
  billed: Pick<Parsed, 'endpoint' | 'billingFields'>,
  model: CatalogModel,
): BillingFields {
  const { billingFields, endpoint } = billed
  if (endpoint.priceFieldsAt === undefined) return billingFields
  let charged: BillingFields | undefined
  for (const { vendor: id } of model.routes ?? [model]) {
    const vendor = context.vendors.get(id)
    if (vendor === undefined) continue
    const asked = endpoint.priceFieldsAt(billingFields, vendor)
    if (asked === billingFields) return billingFields
    charged = { ...charged, ...asked }
  }
  return charged ?? billingFields
}
