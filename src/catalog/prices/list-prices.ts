import { checkMembers, type MemberNames } from '../../core/known-members.ts'
import { formatDecimal, parseDecimal } from '../../core/money.ts'
import type { Catalog } from '../catalog.ts'
import type { CatalogModel } from '../model.ts'
import type { ListPrice, VendorModel } from '../vendor-models/vendor-model.ts'
import { withKnownVendors } from './check-priced-vendors.ts'
import { checkPriceFile, type PriceFile, type PriceRow } from './price-file.ts'
import { definePrices, isOfCalls, type Prices } from './prices.ts'
import type { Meter } from './rate.ts'

/** Options of {@link listPrices}. */
export interface ListPriceOptions {
  /** What list prices are multiplied by, as a decimal string: `'1.2'` charges a fifth more. `'1'` by default. */
  readonly markup?: string | undefined
  /**
   * Prices of your own. A model with a row of its own id has no list price: give all that it needs. Rows for batches and for cache hits
   * stand beside the list price. Rows with a pattern hold for models without a list price.
   */
  readonly prices?: PriceFile | undefined
}

const LIST_PRICE_OPTIONS = {
  markup: true,
  prices: true,
} satisfies MemberNames<ListPriceOptions>

/** Prices that depend on the models of a gateway; for `createGateway({ prices })`. */
export interface CatalogPrices {
  /** The price list for a catalog. */
  forCatalog(catalog: Catalog): Required<Prices>
}

const PER_MILLION = 1_000_000

const TOKEN_METERS: Readonly<Record<keyof ListPrice, Meter>> = {
  input: 'input_token',
  output: 'output_token',
  cachedInput: 'cached_input_token',
  cacheWrite: 'cache_write_token',
  reasoning: 'reasoning_token',
  inputAudio: 'input_audio_token',
}

/**
 * The vendors' public list prices of the built-in snapshot, times a markup. A model without a list price is refused while billing
 * is on, as everywhere; so is a call with a surcharge, such as a web search, which needs a row of your own.
 * @throws TypeError for a markup that is no decimal string above zero, and for faulty prices.
 */
export function listPrices(options: ListPriceOptions = {}): CatalogPrices {
  checkMembers(options, LIST_PRICE_OPTIONS, 'listPrices')
  const { markup = '1', prices } = options
  const factor = checkMarkup(markup)
  const own = prices === undefined ? [] : checkPriceFile(prices).prices
  const ownModels = new Set(own.filter(isOfCalls).map(({ model }) => model))
  return {
    forCatalog(catalog) {
      const rows = catalog.list().flatMap((model) => {
        const facts = catalog.source.facts?.(model.vendor, model.upstream)
        return facts === undefined || ownModels.has(model.id) ? [] : listPriceRows(model, facts, factor)
      })
      return withKnownVendors(definePrices({ currency: 'USD', prices: [...own, ...rows] }), catalog)
    },
  }
}

/**
 * Checks a markup, and gives it back.
 * @throws TypeError when it is no decimal string above zero.
 */
export function checkMarkup(markup: string): string {
  try {
    if (parseDecimal(markup).numerator > 0n) return markup
  } catch {
    // Told below, in the words of the option.
  }
  throw new TypeError(`a markup must be a decimal string above zero, such as "1.2": ${JSON.stringify(markup)}`)
}

/** The price rows of one model; none where its vendor lists no price that can be charged by. */
export function listPriceRows(
  { id, kinds }: Pick<CatalogModel, 'id' | 'kinds'>,
  { price, tiers }: VendorModel,
  factor: string,
): PriceRow[] {
  // Public lists write seconds of sound as tokens, so an amount may be a thousandth of what is meant.
  if (price === undefined || (kinds.includes('transcription') && !kinds.includes('chat'))) return []
  if (kinds.includes('speech')) {
    const { input } = price
    return input === undefined
      ? []
      : [{ model: id, meter: 'character', amount: product(input, factor), per: PER_MILLION }]
  }
  // An answer without a price would be free.
  if (kinds.includes('chat') && (price.input === undefined || price.output === undefined)) return []
  const rows = (listed: ListPrice, inputTokensAbove?: number): PriceRow[] =>
    (Object.keys(TOKEN_METERS) as (keyof ListPrice)[]).flatMap((field) => {
      const amount = listed[field]
      if (amount === undefined) return []
      const row = { model: id, meter: TOKEN_METERS[field], amount: product(amount, factor), per: PER_MILLION }
      return [inputTokensAbove === undefined ? row : { ...row, when: { inputTokensAbove } }]
    })
  return [...rows(price), ...tiers.flatMap((tier) => rows(tier, tier.inputTokensAbove))]
}

/** The exact product of two decimals. */
function product(left: string, right: string): string {
  const [one, other] = [parseDecimal(left), parseDecimal(right)]
  return formatDecimal({
    numerator: one.numerator * other.numerator,
    denominator: one.denominator * other.denominator,
  })
}
