import type { CatalogModel } from '../catalog/model.ts'
import { BATCH_FIELD, type BillingFields, type Prices, type Rate } from '../catalog/prices/prices.ts'
import type { Endpoint, ExtraFeature, InnerModel } from '../endpoints/endpoint.ts'
import { pricedMembers } from '../endpoints/price-members.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { Parsed } from './call-record.ts'
import type { PipelineContext } from './pipeline-context.ts'

/** Parts of a request that need their own price. */
interface Extras {
  readonly features: readonly ExtraFeature[]
  readonly innerModels: readonly InnerModel[]
}

const NO_FEATURES: readonly ExtraFeature[] = []
const NO_MODELS: readonly InnerModel[] = []
const NO_EXTRAS: Extras = { features: NO_FEATURES, innerModels: NO_MODELS }

/** Returns the extras of a request at all vendors of a model, whichever of them will answer. */
function extrasOf({ vendors }: PipelineContext, parsed: Parsed, { vendor, routes }: CatalogModel): Extras {
  return routes === undefined ? extrasAt(parsed, vendors.get(vendor)) : extrasOfRoutes(vendors, parsed, routes)
}

// Separate from its caller, because a function that may create closures allocates for them in every call.
function extrasOfRoutes(
  vendors: PipelineContext['vendors'],
  parsed: Parsed,
  routes: NonNullable<CatalogModel['routes']>,
): Extras {
  const extras = routes.map((route) => extrasAt(parsed, vendors.get(route.vendor)))
  return {
    features: extras.flatMap(({ features }) => features),
    innerModels: extras.flatMap((asked) => asked.innerModels),
  }
}

function extrasAt({ endpoint, body, request }: Parsed, vendor: Vendor | undefined): Extras {
  if (vendor === undefined) return NO_EXTRAS
  const members = vendor.priceMembers?.[endpoint.id]
  const named = members === undefined ? NO_FEATURES : pricedMembers(body, members)
  const asked = endpoint.extraFeatures?.(body, vendor, request) ?? NO_FEATURES
  const features = named.length === 0 ? asked : [...asked, ...named]
  const innerModels = endpoint.innerModels?.(body, vendor) ?? NO_MODELS
  return features.length === 0 && innerModels.length === 0 ? NO_EXTRAS : { features, innerModels }
}

/** Part of a request without a price. */
export interface UnpricedPart extends ExtraFeature {}

/**
 * Returns the rate of a call at a model, with the rates of other models that may work within it. If the model has no price,
 * returns `undefined`; if a part of the request has none, returns that part.
 */
export function rateOfRequest(
  context: PipelineContext,
  prices: Prices,
  parsed: Parsed,
  model: CatalogModel,
): Rate | UnpricedPart | undefined {
  const { endpoint, body } = parsed
  const { features, innerModels } = extrasOf(context, parsed, model)
  const charged = chargedFields(context, parsed, model)
  const listed = prices.quote(model.id, charged, endpoint.surcharges)
  if (listed !== undefined && features.length === 0 && innerModels.length === 0) return listed
  // A model without any price is reported as such.
  if (prices.quote(model.id, charged) === undefined) return undefined
  const fields: Record<string, string> = { ...charged }
  for (const name of endpoint.surcharges ?? []) {
    const value = fields[name]
    if (value === undefined || prices.quote(model.id, charged, [name]) !== undefined) continue
    if (!isAllowed(context, name, value))
      return { field: name, value, param: endpoint.priceFieldParam?.(name, body) ?? name }
    delete fields[name]
  }
  for (const { field, value, param } of features) {
    if (isAllowed(context, field, value)) continue
    const isPriced = prices.quote(model.id, { ...fields, [field]: value }, [field]) !== undefined
    // Separate rows for two values do not price their combination.
    if (!isPriced || (fields[field] ?? value) !== value) return { field, value, param }
    fields[field] = value
  }
  const rate = prices.quote(model.id, fields, endpoint.surcharges)
  if (rate === undefined || innerModels.length === 0) return rate
  const otherModels = new Map<string, Rate>()
  for (const inner of innerModels) {
    const id = context.catalog.find(inner.model)?.id
    const price = id === undefined ? undefined : prices.quote(id, {})
    if (price === undefined) return { field: 'model', value: inner.model, param: inner.param }
    otherModels.set(inner.model, price)
  }
  return { ...rate, otherModels }
}

/** Whether the operator accepts it without a price. */
function isAllowed({ unpricedFeatures }: PipelineContext, field: string, value: string): boolean {
  return unpricedFeatures.has(field) || unpricedFeatures.has(`${field}=*`) || unpricedFeatures.has(`${field}=${value}`)
}

/**
 * Returns the fields that determine a model's price. A surcharge that no vendor of its routes receives is not charged. A
 * surcharge that some of them receive is charged, because it is not known yet which of them will answer.
 */
export function chargedFields(
  context: PipelineContext,
  billed: Pick<Parsed, 'endpoint' | 'billingFields'>,
  model: CatalogModel,
): BillingFields {
  const { billingFields, endpoint } = billed
  if (endpoint.priceFieldsAt === undefined) return billingFields
  if (model.routes === undefined) {
    const vendor = context.vendors.get(model.vendor)
    return vendor === undefined ? billingFields : fieldsAt(endpoint, billingFields, vendor)
  }
  let charged: BillingFields | undefined
  for (const { vendor: id } of model.routes) {
    const vendor = context.vendors.get(id)
    if (vendor === undefined) continue
    const asked = fieldsAt(endpoint, billingFields, vendor)
    if (asked === billingFields) return billingFields
    charged = { ...charged, ...asked }
  }
  return charged ?? billingFields
}

/** Returns the price fields that reach a vendor. Being part of a batch is not a field of a request, so no translation drops it. */
export function fieldsAt(endpoint: Endpoint, fields: BillingFields, vendor: Vendor): BillingFields {
  const asked = endpoint.priceFieldsAt?.(fields, vendor) ?? fields
  const batch = fields[BATCH_FIELD]
  return batch === undefined || asked[BATCH_FIELD] === batch ? asked : { ...asked, [BATCH_FIELD]: batch }
}
