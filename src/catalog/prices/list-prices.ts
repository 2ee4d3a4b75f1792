import { checkMembers, memberNames } from '../../core/known-members.ts'
import { formatDecimal, parseDecimal } from '../../core/money.ts'
import type { Catalog } from '../catalog.ts'
import type { CatalogModel } from '../model.ts'
import type { ListPrice, VendorModel } from '../vendor-models/vendor-model.ts'
import { withKnownVendors } from './check-prices.ts'
import { checkPriceFile, type PriceConditions, type PriceFile, type PriceRow } from './price-file.ts'
import {
  BATCH_FIELD,
  BATCH_VALUE,
  definePrices,
  isOfCalls,
  type Prices,
  THINKING_FIELD,
  THINKING_ON,
} from './prices.ts'
import type { Meter } from './rate.ts'

/** Options of {@link listPrices}. */
export interface ListPriceOptions {
  /** Factor of the list prices as a decimal string: `'1.2'` adds a fifth. Default `'1'`. */
  readonly markup?: string | undefined
  /**
   * Your own prices. A model with a row of its own id has no list price, so its rows must cover everything it needs. Rows for
   * batches and for cache hits apply in addition to the list price. Rows with a pattern apply to models without a list price.
   */
  readonly prices?: PriceFile | undefined
  /**
   * Whether batch requests are charged at the vendors' list prices for their own batches, which are half of the others for most
   * models. Default false: a batch that the vendor's API rejects becomes ordinary calls, which the vendor bills at its usual prices.
   */
  readonly batches?: boolean | undefined
}

const LIST_PRICE_OPTIONS = memberNames<ListPriceOptions>()('markup prices batches')

/** Prices that depend on the models of a gateway; for `createGateway({ prices })`. */
export interface CatalogPrices {
  /** Returns the price list for a catalog. */
  forCatalog(catalog: Catalog): Required<Prices>
}

const PER_MILLION = 1_000_000

/** Meter of each amount, and the number of units that the amount covers. */
const LIST_PRICE_METERS: Readonly<Record<keyof ListPrice, readonly [meter: Meter, per: number]>> = {
  input: ['input_token', PER_MILLION],
  output: ['output_token', PER_MILLION],
  cachedInput: ['cached_input_token', PER_MILLION],
  cacheWrite: ['cache_write_token', PER_MILLION],
  reasoning: ['reasoning_token', PER_MILLION],
  inputAudio: ['input_audio_token', PER_MILLION],
  inputImage: ['input_image_token', PER_MILLION],
  outputImage: ['output_image_token', PER_MILLION],
  thinkingOutput: ['output_token', PER_MILLION],
  audioHour: ['audio_second', 3600],
}

/**
 * Returns the vendors' public list prices of the built-in snapshot on the day of the call, times a markup. While billing is on, a
 * model without a list price is rejected. So is a call with a surcharge, such as a web search, unless you add a row.
 * @throws TypeError if the markup is not a decimal string above zero, or if prices are invalid.
 */
export function listPrices(options: ListPriceOptions = {}): CatalogPrices {
  checkMembers(options, LIST_PRICE_OPTIONS, 'listPrices')
  const { markup = '1', prices, batches = false } = options
  const factor = checkMarkup(markup)
  const own = prices === undefined ? [] : checkPriceFile(prices).prices
  const ownModels = new Set(own.filter(isOfCalls).map(({ model }) => model))
  const ownBatches = new Set(
    own.flatMap(({ model, when }) => (String(when?.[BATCH_FIELD]) === BATCH_VALUE ? [model] : [])),
  )
  return {
    forCatalog(catalog) {
      const rows = catalog.list().flatMap((model) => {
        const facts = current(catalog.source.facts?.(model.vendor, model.upstream))
        if (facts === undefined || ownModels.has(model.id)) return []
        const rows = listPriceRows(model, facts, factor)
        return batches && !ownBatches.has(model.id) ? [...rows, ...batchPriceRows(model, facts, factor)] : rows
      })
      return withKnownVendors(definePrices({ currency: 'USD', prices: [...own, ...rows] }), catalog)
    },
  }
}

/**
 * Checks a markup and returns it.
 * @throws TypeError if it is not a decimal string above zero.
 */
export function checkMarkup(markup: string): string {
  try {
    if (parseDecimal(markup).numerator > 0n) return markup
  } catch {
    // The error below uses the wording of the option.
  }
  throw new TypeError(`a markup must be a decimal string above zero, such as "1.2": ${JSON.stringify(markup)}`)
}

/** Returns the price rows of one model. Empty if its vendor lists no usable price. */
export function listPriceRows(
  { id, kinds }: Pick<CatalogModel, 'id' | 'kinds'>,
  { price, tiers }: VendorModel,
  factor: string,
): PriceRow[] {
  if (price === undefined) return []
  // Some public lists write seconds of audio as tokens, so an amount may be a thousandth of the real one, unless audio has its own price.
  const hears = kinds.includes('transcription') && !kinds.includes('chat')
  if (hears && price.audioHour === undefined && price.inputAudio === undefined) return []
  if (kinds.includes('speech')) {
    const { input, output } = price
    // A price of output means that the model is sold by tokens, which speech calls do not report.
    return input === undefined || output !== undefined
      ? []
      : [{ model: id, meter: 'character', amount: product(input, factor), per: PER_MILLION }]
  }
  // An answer without a price would be free.
  if (kinds.includes('chat') && (price.input === undefined || price.output === undefined)) return []
  const rows = (listed: ListPrice, conditions: PriceConditions): PriceRow[] =>
    (Object.keys(LIST_PRICE_METERS) as (keyof ListPrice)[]).flatMap((field) => {
      const amount = listed[field]
      if (amount === undefined) return []
      const [meter, per] = LIST_PRICE_METERS[field]
      const row = { model: id, meter, amount: product(amount, factor), per }
      const when = field === 'thinkingOutput' ? { ...conditions, [THINKING_FIELD]: THINKING_ON } : conditions
      return [Object.keys(when).length === 0 ? row : { ...row, when }]
    })
  const ofTiers = tiers.flatMap(({ inputTokensAbove, ...tier }) => {
    // A tier with one price of output uses it for both modes.
    const { output, thinkingOutput = price.thinkingOutput && output } = tier
    return rows({ ...tier, ...(thinkingOutput === undefined ? {} : { thinkingOutput }) }, { inputTokensAbove })
  })
  return [...rows(price, {}), ...ofTiers]
}

/** Returns the facts with the price that applies today. */
function current(facts: VendorModel | undefined): VendorModel | undefined {
  if (facts?.laterPrice === undefined || Date.now() < facts.laterPrice.from * 1000) return facts
  const {
    batchPrice: _batch,
    laterPrice: { from: _from, ...price },
    ...others
  } = facts
  return { ...others, price, tiers: [] }
}

/** Returns the price rows of one model in batches. Empty if its vendor lists no batch price. */
function batchPriceRows(model: CatalogModel, facts: VendorModel, factor: string): PriceRow[] {
  const { batchPrice, batchTiers = [] } = facts
  if (batchPrice === undefined) return []
  const rows = listPriceRows(model, { ...facts, price: batchPrice, tiers: batchTiers }, factor)
  return rows.map((row) => ({ ...row, when: { ...row.when, [BATCH_FIELD]: BATCH_VALUE } }))
}

/** The exact product of two decimals. */
function product(left: string, right: string): string {
  const [one, other] = [parseDecimal(left), parseDecimal(right)]
  return formatDecimal({
    numerator: one.numerator * other.numerator,
    denominator: one.denominator * other.denominator,
  })
}
