import { checkGivenMembers, memberNames, nearestName } from '../../core/known-members.ts'
import type { Catalog } from '../catalog.ts'
import { isPattern } from '../model.ts'
import { definePrices, type PriceRow, type Prices } from './prices.ts'

/**
 * Returns the prices after checking that vendors in names such as `openai/gpt-4o` exist: configured, or known to the public
 * catalog. Prices that do not list their rows are not checked.
 * @throws TypeError with the row and the unknown vendor.
 */
export function withKnownVendors<Given extends Prices>(prices: Given, catalog: Catalog): Given {
  for (const [index, { model }] of (prices.rows?.() ?? []).entries()) {
    const vendor = model.slice(0, Math.max(0, model.indexOf('/')))
    if (vendor === '' || isPattern(vendor) || catalog.find(model) !== undefined) continue
    const ofRows = catalog.rows.flatMap((row) => [row.vendor, ...(row.routes ?? []).map((route) => route.vendor)])
    const known = [...new Set([...ofRows, ...(catalog.source.vendorNames?.() ?? [vendor])])]
    if (known.includes(vendor) || catalog.rows.some(({ id }) => id.startsWith(`${vendor}/`))) continue
    const nearest = nearestName(vendor, known)
    const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`
    throw new TypeError(`prices[${index}]: ${JSON.stringify(model)} names an unknown vendor${hint}`)
  }
  return prices
}

/**
 * Rule for ids that no catalog knows but a vendor claims. `refuse`: they get 404, except ids that a price names. `pricedAs`: they cost as
 * much as the newest priced model of their family at the same vendor, or the amounts of these rows, whose `model` may be a pattern.
 */
export type UnknownModels = 'refuse' | { readonly pricedAs: typeof NEWEST_OF_FAMILY | readonly PriceRow[] }

export const NEWEST_OF_FAMILY = 'newest of its family'
const MEMBERS = memberNames<Exclude<UnknownModels, 'refuse'>>()('pricedAs')

/**
 * Returns prices that also cover unknown models according to the option. Prices that name such a model take precedence.
 * @throws TypeError if the option is malformed, or has prices although billing is off (`prices` is `undefined`).
 */
export function withUnknownModels(
  prices: Prices | undefined,
  catalog: Catalog,
  option: UnknownModels = 'refuse',
): Prices | undefined {
  if (option === 'refuse') return prices
  if (typeof option !== 'object')
    throw new TypeError(`createGateway: unknownModels must be 'refuse' or { pricedAs }, not ${JSON.stringify(option)}`)
  checkGivenMembers(option, MEMBERS, 'createGateway', 'unknownModels')
  const { pricedAs } = option
  if (pricedAs !== NEWEST_OF_FAMILY && !Array.isArray(pricedAs))
    throw new TypeError(`createGateway: unknownModels.pricedAs must be '${NEWEST_OF_FAMILY}' or a list of price rows`)
  if (prices === undefined)
    throw new TypeError("createGateway: unknownModels.pricedAs has no effect with billing: 'off'. Remove one of them")
  const own =
    pricedAs === NEWEST_OF_FAMILY ? undefined : definePrices({ currency: 'USD', prices: pricedAs as PriceRow[] })
  const quote: Prices['quote'] = (id, fields, surcharges) => {
    const rate = prices.quote(id, fields, surcharges)
    const model = rate === undefined ? catalog.find(id) : undefined
    if (model?.family === undefined || prices.quote(id, {}) !== undefined) return rate
    if (own !== undefined) return own.quote(id, fields, surcharges)
    const relative = model.family
      .map((upstream) => catalog.find(`${model.vendor}/${upstream}`)?.id)
      .find((other) => other !== undefined && prices.quote(other, {}) !== undefined)
    const found = relative === undefined ? undefined : prices.quote(relative, fields, surcharges)
    return found === undefined ? undefined : { ...found, model: id }
  }
  const { rows } = prices
  return rows === undefined ? { quote } : { quote, rows: rows.bind(prices) }
}
