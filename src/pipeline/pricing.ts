import type { CatalogModel } from '../catalog/model.ts'
import { plausibleUsage } from '../catalog/prices/plausible-usage.ts'
import {
  BATCH_FIELD,
  BATCH_VALUE,
  type BillingFields,
  charge,
  highestCharge,
  hookUnitRate,
  type Prices,
  type Rate,
} from '../catalog/prices/prices.ts'
import { createRate, type MeterPrice } from '../catalog/prices/rate.ts'
import { GatewayError } from '../core/errors.ts'
import { formatDollars } from '../core/money.ts'
import { type Usage, withHookUnits } from '../core/usage.ts'
import type { Endpoint, ExtraFeature, InnerModel } from '../endpoints/endpoint.ts'
import { pricedMembers } from '../endpoints/price-members.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { Candidate, Hold, Parsed, Reserved } from './call-record.ts'
import { chargeableUsage, estimatedUsage, estimateFor, reportBounds, type UnreportedOutput } from './estimate.ts'
import { unknownModel } from './model-notices.ts'
import type { ConfigurationWarning } from './notices.ts'
import type { PipelineContext } from './pipeline-context.ts'

type Billed = Pick<Parsed, 'endpoint' | 'billingFields'>

/** Amount to reserve for a request, and its rates. */
export interface PricedRequest extends Omit<Hold, 'id'> {
  /** Models that may answer, without fallbacks that have no price. */
  readonly chain: readonly CatalogModel[]
  /** Upper estimate of each of them. */
  readonly estimates: readonly Usage[]
}

/**
 * Prices a request at the most expensive model that could answer. Undefined if nothing is charged: billing is off, or the
 * endpoint is free, or it is free for models without a price and none has one.
 * @param estimate Estimate of the first model of the chain, if it is known already.
 * @throws GatewayError `model_not_priced`, and `unsupported_parameter` with the part of the request that has no price.
 */
export function priceRequest(context: PipelineContext, parsed: Parsed, estimate?: Usage): PricedRequest | undefined {
  const { prices } = context
  const { endpoint, hookUnits } = parsed
  if (prices === undefined) return undefined
  if (endpoint.isFree === true) return priceHookUnits(context, parsed)
  const isFreeWithoutPrice = endpoint.isFree === 'unless-priced'
  const listed = parsed.chain.map((model) => rateOfRequest(context, prices, parsed, model))
  if (isFreeWithoutPrice && listed.every((rate) => rate === undefined)) return priceHookUnits(context, parsed)
  const offers = parsed.chain.flatMap((model, index) => {
    const rate = listed[index] ?? (isFreeWithoutPrice ? createRate(model.id, FREE) : undefined)
    const own = (index === 0 ? estimate : undefined) ?? estimateFor(context, parsed, model)
    const expected = withHookUnits(own, hookUnits)
    const amount = rate === undefined || 'param' in rate ? undefined : highestCharge(rate, expected)
    if (rate !== undefined && !('param' in rate) && amount !== undefined) return [{ model, rate, expected, amount }]
    if (parsed.chain.length === 1 || isFreeWithoutPrice || isAskedFor(model, parsed))
      throw rate !== undefined && 'param' in rate ? unpricedPart(rate) : unpricedModel(context, parsed, model, rate)
    const asked = context.catalog.find(parsed.body.model)?.id ?? parsed.body.model
    context.warnings.warn(unpricedFallback(model.id, asked))
    return []
  })
  if (offers.length === 0) throw notPriced(context, parsed, parsed.chain[0]!)
  let amount = 0n
  for (const offer of offers) if (offer.amount > amount) amount = offer.amount
  return {
    amount,
    rates: offers.map(({ rate }) => rate),
    chain: offers.length === parsed.chain.length ? parsed.chain : offers.map(({ model }) => model),
    estimates: offers.map(({ expected }) => expected),
  }
}

const FREE: readonly MeterPrice[] = [{ meter: 'request', amount: '0', per: 1 }]

/**
 * Prices only the charges of hooks for a request. Undefined if they charge nothing, or billing is off.
 * @throws GatewayError `model_not_priced`; the operator is notified of the missing price.
 */
export function priceHookUnits(context: PipelineContext, parsed: Parsed): PricedRequest | undefined {
  const { prices } = context
  const { hookUnits, chain } = parsed
  const model = chain[0]
  if (prices === undefined || hookUnits === 0 || model === undefined) return undefined
  const listed = prices.quote(model.id, chargedFields(context, parsed, model), parsed.endpoint.surcharges)
  const rate = listed && hookUnitRate(listed)
  const amount = rate && charge(rate, { hookUnits })
  if (rate === undefined || amount === undefined) throw hookUnitsUnpriced(context, model)
  return { amount, rates: [rate], chain, estimates: [{ hookUnits }] }
}

/** Returns the model whose price is missing: its own, or that of hook units. */
function unpricedModel(
  context: PipelineContext,
  parsed: Parsed,
  model: CatalogModel,
  rate: Rate | undefined,
): GatewayError {
  const { hookUnits } = parsed
  const isOfHooks = rate !== undefined && hookUnits > 0 && charge(hookUnitRate(rate), { hookUnits }) === undefined
  return isOfHooks ? hookUnitsUnpriced(context, model) : notPriced(context, parsed, model)
}

function hookUnitsUnpriced({ warnings }: PipelineContext, { id }: CatalogModel): GatewayError {
  const model = JSON.stringify(id)
  warnings.warn({
    code: 'hook-units-unpriced',
    message: `A hook charges units for the model ${model}, which has no price of the meter hook_unit: its requests are refused. Add a price row { model: ${model}, meter: "hook_unit", amount: "…" }.`,
  })
  return new GatewayError('model_not_priced', {
    message: `There is no price for the hook units of this service with the model ${model}, and billing is on.`,
    param: 'model',
  })
}

function isAskedFor({ id, aliases }: CatalogModel, { body }: Parsed): boolean {
  return id === body.model || aliases.includes(body.model)
}

/** Returns the operator's warning about a fallback that is skipped because it has no price. */
export function unpricedFallback(fallback: string, model: string): ConfigurationWarning {
  const message = `The model ${JSON.stringify(fallback)} has no price, so it is not used as a fallback of ${JSON.stringify(model)}.`
  return { code: 'fallback-unpriced', message }
}

function quote(prices: Prices, { endpoint }: Billed, model: string, fields: BillingFields): Rate | undefined {
  return prices.quote(model, fields, endpoint.surcharges)
}

const MAX_VALUE_SHOWN = 100

function unpricedPart({ param, field, value }: UnpricedPart): GatewayError {
  const shown = JSON.stringify(value.slice(0, MAX_VALUE_SHOWN))
  return new GatewayError('unsupported_parameter', {
    message: `${param}: this gateway has no price for it (${field}: ${shown}).`,
    param,
  })
}

/** Returns the error for a model without a price for the request, with the model and the endpoint. */
export function notPriced(context: PipelineContext, parsed: Parsed, model: CatalogModel): GatewayError {
  if (model.family !== undefined) return unknownModel(context, model.id, { ...parsed, isUnpriced: true })
  const batches = parsed.billingFields[BATCH_FIELD] === BATCH_VALUE ? 'batches of ' : ''
  return new GatewayError('model_not_priced', {
    message: `There is no price for ${batches}the model ${JSON.stringify(model.id)} on the endpoint ${JSON.stringify(parsed.endpoint.id)}, and billing is on.`,
    param: 'model',
  })
}

/**
 * Returns the estimated cost of a request at a candidate: by the list's price for `vendor/upstream` if any, else by the model's.
 */
export function costAt(
  context: PipelineContext,
  parsed: Billed & { readonly estimate: Usage },
  { model, vendor }: { readonly model: CatalogModel; readonly vendor: Vendor },
): bigint | undefined {
  const { prices } = context
  if (prices === undefined) return undefined
  const fields = fieldsAt(parsed.endpoint, parsed.billingFields, vendor)
  const rate =
    quote(prices, parsed, `${model.vendor}/${model.upstream}`, fields) ?? quote(prices, parsed, model.id, fields)
  return rate === undefined ? undefined : charge(rate, parsed.estimate)
}

/**
 * Returns the cost of usage at the model that answered, including hooks, in nano-dollars. Undefined if billing is off, or if a
 * part of the usage has no price.
 */
export function chargeFor(reserved: Reserved, candidate: Candidate, usage: Usage): bigint | undefined {
  const rate = reserved.hold === undefined ? undefined : rateOf(reserved.hold, candidate.model)
  return rate === undefined ? undefined : charge(rate, withHookUnits(usage, reserved.hookUnits))
}

function rateOf({ rates }: Hold, { id }: CatalogModel): Rate | undefined {
  for (let index = 0; index < rates.length; index++) if (rates[index]!.model === id) return rates[index]
  return undefined
}

/** Returns the usage that is charged for a complete answer, which its caller also reads; see `VendorCall.billedUsage`. */
export function billedUsage(
  reserved: Reserved,
  candidate: Candidate,
  reported: Usage | undefined,
  output: UnreportedOutput,
): Usage {
  if (reported === undefined) return estimatedUsage(reserved, output)
  const estimated = estimatedUsage(reserved, { outputBytes: output.outputBytes, isUnseen: false })
  return chargeableUsage(reported, reportBounds(reserved, candidate.model), estimated).usage
}

/** Returns the cost of reported usage for the caller before the call is settled, in decimal dollars. */
export function quotedCost(reserved: Reserved, candidate: Candidate, reported: Usage): string | undefined {
  const { usage } = plausibleUsage(reported, reportBounds(reserved, candidate.model))
  const cost = chargeFor(reserved, candidate, usage)
  return cost === undefined ? undefined : formatDollars(cost)
}

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
interface UnpricedPart extends ExtraFeature {}

/**
 * Returns the rate of a call at a model, with the rates of other models that may work within it. If the model has no price,
 * returns `undefined`; if a part of the request has none, returns that part.
 */
function rateOfRequest(
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
function fieldsAt(endpoint: Endpoint, fields: BillingFields, vendor: Vendor): BillingFields {
  const asked = endpoint.priceFieldsAt?.(fields, vendor) ?? fields
  const batch = fields[BATCH_FIELD]
  return batch === undefined || asked[BATCH_FIELD] === batch ? asked : { ...asked, [BATCH_FIELD]: batch }
}
