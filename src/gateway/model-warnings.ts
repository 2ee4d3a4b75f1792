import { isPattern } from '../catalog/id-pattern.ts'
import { type CatalogModel, servingVendors } from '../catalog/model.ts'
import { vendorWithoutKey } from '../pipeline/configuration-warnings.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import {
  isCallable,
  nameOfUnpriced,
  pricedKinds,
  type UnpricedModel,
  unpricedBy,
  unpricedModels,
} from '../pipeline/unpriced-models.ts'
import type { GatewayOptions } from './gateway-options.ts'

/** Maximum number of ids in one message. */
const MOST_NAMED = 20

/**
 * Warns the operator of models that cannot be called because they have no price, although the operator's rows of models or prices
 * name them, and of fallbacks that can never answer. Prices that do not list their rows are not checked.
 */
export function warnOfModels(
  context: PipelineContext,
  options: Pick<GatewayOptions, 'models' | 'vendors' | 'prices'>,
): void {
  warnOfUnpriced(context, options)
  warnOfFallbacks(context)
  warnOfVendors(context, options)
}

/** Warns of vendors without a key that rows of the operator name, also in fallbacks, or that prices name and the operator lists. */
function warnOfVendors(
  { catalog, vendors, prices, warnings }: PipelineContext,
  { models = [], vendors: given, prices: option }: Pick<GatewayOptions, 'models' | 'vendors' | 'prices'>,
): void {
  const rows = [...models, ...given.flatMap((vendor) => (vendor.hasBuiltInModels === true ? [] : vendor.models))]
  const fallbacks = rows.flatMap(({ fallbacks: ids = [] }) => ids.flatMap((id) => catalog.find(id) ?? []))
  const ids = new Set([...rows, ...fallbacks].flatMap(servingVendors))
  // List prices are built for the catalog, and name models that nobody has chosen.
  const isChosen = !(typeof option === 'object' && 'forCatalog' in option)
  for (const { model } of isChosen ? (prices?.rows?.() ?? []) : [])
    for (const id of servingVendors(catalog.find(model) ?? {})) if (vendors.has(id)) ids.add(id)
  for (const id of ids) if (!vendors.get(id)?.apiKeys.length) warnings.warn(vendorWithoutKey(vendors, id))
}

function warnOfUnpriced(
  { catalog, vendors, prices, endpoints, warnings }: PipelineContext,
  { models = [], vendors: given }: Pick<GatewayOptions, 'models' | 'vendors'>,
): void {
  const rows = prices?.rows?.()
  if (rows === undefined) return
  const judge = unpricedBy(rows)
  const needsPrice = pricedKinds(endpoints)
  const listed = [...models, ...given.flatMap((vendor) => (vendor.hasBuiltInModels === true ? [] : vendor.models))]
  const ids = new Set([...listed.map(({ id }) => id), ...rows.map(({ model }) => model)])
  const unpriced: UnpricedModel[] = []
  for (const id of ids) {
    const model = isPattern(id) ? undefined : catalog.find(id)
    // A price row may name an alias, which another warning reports, or a route.
    if (model?.id !== id || !isCallable(model, vendors) || !needsPrice(model)) continue
    const fault = judge(model)
    if (fault !== undefined) unpriced.push(fault)
  }
  if (unpriced.length === 0) return
  const named = unpriced.slice(0, MOST_NAMED).map((model) => nameOfUnpriced(model, JSON.stringify))
  const more = unpriced.length > named.length ? ` and ${unpriced.length - named.length} more` : ''
  const message = `Models have no price and are refused while billing is on: ${named.join(', ')}${more}.`
  warnings.warn({ code: 'model-unpriced', message })
}

function warnOfFallbacks({ catalog, vendors, warnings }: PipelineContext): void {
  for (const { id, fallbacks } of catalog.rows) {
    for (const name of fallbacks) {
      const fallback = catalog.find(name)
      if (fallback === undefined || isCallable(fallback, vendors)) continue
      const message = `The model ${JSON.stringify(name)} can never answer as a fallback of ${JSON.stringify(id)}: ${whyNot(fallback, vendors)}.`
      warnings.warn({ code: 'fallback-unreachable', message })
    }
  }
}

function whyNot({ vendor, routes = [] }: CatalogModel, vendors: PipelineContext['vendors']): string {
  const reasons = [...new Set([vendor, ...routes.map((route) => route.vendor)])].map((id) =>
    vendors.has(id) ? `the vendor ${JSON.stringify(id)} has no key` : `there is no vendor ${JSON.stringify(id)}`,
  )
  return reasons.join(', and ')
}

/** Logs how many models have no price: one line and no event, because models that no caller uses need none. */
export function logUnpricedModels(context: PipelineContext): void {
  const counted = unpricedModels(context)
  if (counted === undefined || counted.unpriced === 0) return
  const { unpriced, models } = counted
  const told = `${unpriced} of ${models} models of the configured vendors have no price, and are refused while billing is on`
  context.logger.info(told, { ...counted })
}
