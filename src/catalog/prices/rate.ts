import { divideRoundingUp, exactDecimal, NANO_DOLLARS_PER_DOLLAR, parseDecimal } from '../../core/money.ts'
import { METERS_BY_FIELD, ORDINARY_TIER, type USAGE_METERS, type Usage, type UsageField } from '../../core/usage.ts'

/** Unit that may have a price. */
export type Meter = (typeof USAGE_METERS)[UsageField]['meter'] | 'request'

/** Meters of usage with their counts. */
const COUNTED_METERS = METERS_BY_FIELD.map(([field, facts]) => ({ field, ...facts, meter: facts.meter as Meter }))

/**
 * Units that may have a price. Tokens of a kind with its own price are charged at it and not again as part of their total; a kind
 * without its own price is charged as part of its total. `request` counts one per call.
 */
export const METERS: readonly Meter[] = [...COUNTED_METERS.map(({ meter }) => meter), 'request']

/** Meters of other units by their count. The price of searches also applies if their number is unknown. */
const UNIT_METERS = new Map<string, (typeof COUNTED_METERS)[number]>(
  COUNTED_METERS.filter(({ meter }) => !isTokenMeter(meter) && meter !== 'web_search').map((unit) => [
    unit.field,
    unit,
  ]),
)

/** Meters whose prices may have a `minimum`. */
export const METERS_WITH_MINIMUM: readonly Meter[] = COUNTED_METERS.filter(
  ({ isSoldByUnit }) => isSoldByUnit === true,
).map(({ meter }) => meter)

function isTokenMeter(meter: Meter): boolean {
  return meter.endsWith('_token')
}

/** Price of one meter. */
export interface MeterPrice {
  readonly meter: Meter
  /** Dollars for `per` units, as a decimal string. */
  readonly amount: string
  /** Number of units that `amount` covers. */
  readonly per: number
  /**
   * Minimum number of units charged for a call that uses any. If omitted, the used units are charged. Allowed for `image`,
   * `video_second`, `audio_second`, `character` and `search_unit`.
   */
  readonly minimum?: number
  /** Number of input tokens that a call must exceed; the price then applies to all of its tokens. If omitted, it applies to all calls. */
  readonly inputTokensAbove?: number
  /** Whether the price applies to calls in which the model thinks, instead of the other prices of its meter. */
  readonly thinking?: true
  /** Service tier that the vendor must have used. If omitted, the price applies to the requested tier. */
  readonly serviceTier?: string
}

/** All prices of one call, ready to charge: nano-dollars per unit as exact fractions with one common denominator. */
export interface Rate {
  /** Public id of the model. */
  readonly model: string
  /** Prices as they were written. Plain data: a long job stores them, and {@link createRate} restores the rate. */
  readonly prices: readonly MeterPrice[]
  /** Numerators of the prices: undefined without a price, 0 if the price is zero. */
  readonly numerators: Readonly<Record<Meter, bigint | undefined>>
  readonly denominator: bigint
  /** Whether any kind of token is priced. */
  readonly pricesTokens: boolean
  /** Minimum units of a call that uses any; undefined if no price has a minimum. */
  readonly minimums?: readonly (readonly [field: UsageField, units: number])[]
  /** Prices that replace these above a number of input tokens, highest number first. */
  readonly tiers: readonly RateTier[]
  /** Prices of calls in which the model thinks, according to its vendor's report. If omitted, no price depends on it. */
  readonly thinking?: Rate
  /** Whether the request turns thinking off, so that no money is reserved for it. */
  readonly isThinkingOff?: true
  /** Rates by the service tier that the vendor used, or `undefined` if no price depends on it. */
  readonly serviceTiers?: ReadonlyMap<string, Rate>
  /**
   * Whether the request names its tier, so that only that or the ordinary one can be used. Default: the vendor may choose any.
   */
  readonly isTierAsked?: true
  /** Rates of models that may work within the call, by the vendor's id of the model. If omitted, no other model may. */
  readonly otherModels?: ReadonlyMap<string, Rate>
}

/** Prices of calls above a number of input tokens. */
interface RateTier {
  readonly inputTokensAbove: number
  readonly rate: Rate
}

/**
 * Converts the prices of a model to one denominator. Without a price of their own, tokens cached for an hour cost 1.6 times as
 * much as those cached for minutes.
 * @throws RangeError if an amount is not a decimal string.
 */
export function createRate(model: string, prices: readonly MeterPrice[]): Rate {
  const names = new Set(prices.flatMap(({ serviceTier }) => serviceTier ?? []))
  if (names.size === 0) return rateOfTier(model, prices)
  const served = (name: string | undefined): Rate =>
    rateOfTier(
      model,
      prices.filter(({ serviceTier }) => serviceTier === name),
    )
  return { ...served(undefined), prices, serviceTiers: new Map([...names].map((name) => [name, served(name)])) }
}

function rateOfTier(model: string, prices: readonly MeterPrice[]): Rate {
  const thresholds = new Set<number>()
  for (const { inputTokensAbove } of prices) if (inputTokensAbove !== undefined) thresholds.add(inputTokensAbove)
  if (thresholds.size === 0) return flatRate(model, prices, NO_TIERS)
  const tiers = [...thresholds]
    .sort((left, right) => right - left)
    .map((above) => ({ inputTokensAbove: above, rate: flatRate(model, pricesAbove(prices, above), NO_TIERS) }))
  return { ...flatRate(model, pricesAbove(prices, 0), tiers), prices }
}

const NO_TIERS: readonly RateTier[] = []

/** Returns, for each meter and mode, the prices of the highest tier that applies above this number of input tokens. */
function pricesAbove(prices: readonly MeterPrice[], above: number): readonly MeterPrice[] {
  const chosen = new Map<string, MeterPrice>()
  for (const price of prices) {
    const from = price.inputTokensAbove ?? 0
    const key = `${price.meter} ${price.thinking ?? ''}`
    const taken = chosen.get(key)
    if (from <= above && (taken === undefined || from > (taken.inputTokensAbove ?? 0))) chosen.set(key, price)
  }
  return [...chosen.values()]
}

/** Returns a rate with only the price of hook units. */
export function hookUnitRate({ model, prices }: Rate): Rate {
  return createRate(
    model,
    prices.filter(({ meter }) => meter === 'hook_unit'),
  )
}

function flatRate(model: string, prices: readonly MeterPrice[], tiers: readonly RateTier[]): Rate {
  const thinking = new Map<Meter, MeterPrice>()
  for (const price of prices) if (price.thinking === true) thinking.set(price.meter, price)
  if (thinking.size === 0) return rateOfMode(model, prices, tiers)
  const plain = prices.filter((price) => price.thinking !== true)
  const others = plain.filter(({ meter }) => !thinking.has(meter))
  return {
    ...rateOfMode(model, plain, tiers),
    prices,
    thinking: rateOfMode(model, [...others, ...thinking.values()], NO_TIERS),
  }
}

function rateOfMode(model: string, prices: readonly MeterPrice[], tiers: readonly RateTier[]): Rate {
  const fractions = prices.map((price) => ({ meter: price.meter, ...nanoDollarsPerUnit(price) }))
  const written = fractions.find(({ meter }) => meter === 'cache_write_token')
  if (written !== undefined && !prices.some(({ meter }) => meter === 'cache_write_1h_token')) {
    // Many lists have only one price of cache writes; vendors charge 2 times the input price for an hour, 1.25 times for minutes.
    const { numerator, denominator } = written
    fractions.push({ meter: 'cache_write_1h_token', numerator: numerator * 8n, denominator: denominator * 5n })
  }
  const denominator = fractions.reduce((common, fraction) => leastCommonMultiple(common, fraction.denominator), 1n)
  const numerators = Object.fromEntries(METERS.map((meter) => [meter, undefined])) as Record<Meter, bigint | undefined>
  for (const fraction of fractions) {
    numerators[fraction.meter] = fraction.numerator * (denominator / fraction.denominator)
  }
  const pricesTokens = prices.some(({ meter }) => isTokenMeter(meter))
  const minimums = prices.flatMap(({ meter, minimum }): (readonly [UsageField, number])[] => {
    const counted = COUNTED_METERS.find((unit) => unit.meter === meter)
    return minimum === undefined || counted === undefined ? [] : [[counted.field, minimum]]
  })
  const rate = { model, prices, numerators, denominator, pricesTokens, tiers }
  return minimums.length === 0 ? rate : { ...rate, minimums }
}

function withMinimums(usage: Usage, minimums: NonNullable<Rate['minimums']>): Usage {
  const raised: { -readonly [Name in keyof Usage]: Usage[Name] } = { ...usage }
  for (const [field, units] of minimums) {
    const count = usage[field] ?? 0
    if (count > 0) raised[field] = Math.max(count, units)
  }
  return raised
}

/**
 * Returns the cost of a call in nano-dollars, computed exactly and rounded up once at the end. Parts of a total that have their
 * own price are subtracted from the total in the order cached, cache-written, image, audio (input) and image, reasoning (output),
 * and never exceed the total. Only calls that may search have a search price; an unknown number of searches counts as one.
 *
 * Undefined if the call used something without a price, because no amount would be right. Tokens need no price if the model is
 * sold by request, image, second or character and no kind of token is priced. Images, seconds, search units and characters need
 * none if requests or tokens have a price.
 * @throws RangeError for counts that are negative, fractional or not finite; vendors' reports go through `plausibleUsage` first.
 */
export function charge(rate: Rate, usage: Usage): bigint | undefined {
  const { serviceTier } = usage
  const served = (serviceTier === undefined ? undefined : rate.serviceTiers?.get(serviceTier)) ?? rate
  const flat = served.tiers.length === 0 ? served : tierFor(served, usage)
  return withOtherModels(rate, usage, chargeFlat(flat, usage), charge)
}

function tierFor(rate: Rate, usage: Usage): Rate {
  const totalInput = totalInputOf(usage)
  return rate.tiers.find(({ inputTokensAbove }) => totalInput > inputTokensAbove)?.rate ?? rate
}

/**
 * Adds the cost of other models used within the call, each at its own rate. An unexpected model is charged at the rate of the
 * call, so that it is not free.
 */
function withOtherModels(
  rate: Rate,
  { otherModels }: Usage,
  own: bigint | undefined,
  chargeOne: (rate: Rate, usage: Usage) => bigint | undefined,
): bigint | undefined {
  if (otherModels === undefined || own === undefined) return own
  let sum = own
  for (const { model, usage } of otherModels) {
    const amount = chargeOne(rate.otherModels?.get(model) ?? rate, usage)
    if (amount === undefined) return undefined
    sum += amount
  }
  return sum
}

function totalInputOf(usage: Usage): number {
  const { inputTokens, cachedInputTokens = 0, cacheWriteTokens = 0, inputImageTokens = 0, inputAudioTokens = 0 } = usage
  return inputTokens ?? cachedInputTokens + cacheWriteTokens + inputImageTokens + inputAudioTokens
}

function chargeFlat(ofTier: Rate, counted: Usage): bigint | undefined {
  const rate = ofTier.thinking !== undefined && (counted.reasoningTokens ?? 0) > 0 ? ofTier.thinking : ofTier
  const price = rate.numerators
  const usage = rate.minimums === undefined ? counted : withMinimums(counted, rate.minimums)
  const totalInput = totalInputOf(usage)
  const cached = priced(price.cached_input_token, usage.cachedInputTokens, totalInput)
  const allWritten = usage.cacheWriteTokens ?? 0
  const allWritten1h = Math.min(usage.cacheWrite1hTokens ?? 0, allWritten)
  const written1h = priced(price.cache_write_1h_token, allWritten1h, totalInput - cached)
  const written = priced(price.cache_write_token, allWritten - allWritten1h, totalInput - cached - written1h)
  const inputImage = priced(price.input_image_token, usage.inputImageTokens, totalInput - cached - written1h - written)
  const unheard = totalInput - cached - written1h - written - inputImage
  const inputAudio = priced(price.input_audio_token, usage.inputAudioTokens, unheard)
  const input = unheard - inputAudio

  const totalOutput = usage.outputTokens ?? (usage.outputImageTokens ?? 0) + (usage.reasoningTokens ?? 0)
  const outputImage = priced(price.output_image_token, usage.outputImageTokens, totalOutput)
  const reasoning = priced(price.reasoning_token, usage.reasoningTokens, totalOutput - outputImage)
  const output = totalOutput - outputImage - reasoning

  let isSoldByUnit = price.request !== undefined
  let hasUnpricedUnits = false
  let sum = plusCost(0, price.request, 1)
  let fractions = NO_FRACTIONS
  // Only the given counts are looked up, because most calls have tokens only.
  for (const field in usage) {
    const unit = UNIT_METERS.get(field)
    const count = unit === undefined ? 0 : (usage[unit.field] ?? 0)
    if (unit === undefined || count === 0) continue
    const amount = price[unit.meter]
    // No other price covers hook units.
    if (unit.meter === 'hook_unit' && amount === undefined) return undefined
    if (unit.isSoldByUnit === true && count > 0) {
      if (amount === undefined) hasUnpricedUnits = true
      else isSoldByUnit = true
    }
    if (unit.isFractional !== true) sum = plusCost(sum, amount, count)
    else if (amount !== undefined && count > 0) fractions = [...fractions, [amount, count]]
  }
  if (!rate.pricesTokens) {
    if ((input > 0 || output > 0) && !isSoldByUnit) return undefined
  } else if ((input > 0 && price.input_token === undefined) || (output > 0 && price.output_token === undefined)) {
    return undefined
  }
  const isSoldOtherwise = price.request !== undefined || (rate.pricesTokens && totalInput + totalOutput > 0)
  if (hasUnpricedUnits && !isSoldOtherwise) return undefined

  sum = plusCost(sum, price.input_token, input)
  sum = plusCost(sum, price.cached_input_token, cached)
  sum = plusCost(sum, price.cache_write_token, written)
  sum = plusCost(sum, price.cache_write_1h_token, written1h)
  sum = plusCost(sum, price.input_image_token, inputImage)
  sum = plusCost(sum, price.input_audio_token, inputAudio)
  sum = plusCost(sum, price.output_token, output)
  sum = plusCost(sum, price.output_image_token, outputImage)
  sum = plusCost(sum, price.reasoning_token, reasoning)
  sum = plusCost(sum, price.web_search, usage.webSearches ?? 1)
  let scale = 1n
  for (const [amount, count] of fractions) {
    const exact = exactDecimal(count)
    sum = BigInt(sum) * exact.denominator + amount * exact.numerator * scale
    scale *= exact.denominator
  }
  return divideRoundingUp(sum, scale === 1n ? rate.denominator : rate.denominator * scale)
}

const NO_FRACTIONS: readonly (readonly [price: bigint, count: number])[] = []

/**
 * Returns the maximum cost of a call whose usage stays within an estimate, in nano-dollars. Assumptions: a part of the input may
 * be smaller than estimated, and its price may be above or below the price of the rest; all output may be reasoning; the model
 * may think unless the request turns it off; the input may stay in a lower tier; the vendor may use another service tier.
 * Undefined under the conditions of {@link charge}.
 */
export function highestCharge(rate: Rate, estimate: Usage): bigint | undefined {
  let highest = highestOwnCharge(rate, estimate)
  for (const [name, served] of rate.serviceTiers ?? []) {
    if (rate.isTierAsked === true && name !== ORDINARY_TIER) continue
    const amount = highestOwnCharge(served, estimate)
    if (highest !== undefined && amount !== undefined && amount > highest) highest = amount
  }
  // The estimate names models that only some vendors run within a call.
  return rate.otherModels === undefined ? highest : withOtherModels(rate, estimate, highest, highestCharge)
}

function highestOwnCharge(rate: Rate, estimate: Usage): bigint | undefined {
  const isFlat = rate.tiers.length === 0 && rate.thinking === undefined
  if (isFlat && estimate.cacheWriteTokens === undefined && estimate.inputAudioTokens === undefined)
    return chargeFlat(rate, withDearestOutput(rate, estimate))
  const totalInput = totalInputOf(estimate)
  const usages = partings(estimate)
  const tiers = [rate, ...rate.tiers.filter((tier) => totalInput > tier.inputTokensAbove).map((tier) => tier.rate)]
  const modes = rate.isThinkingOff === true ? tiers : tiers.flatMap((tier) => [tier, tier.thinking ?? tier])
  let highest: bigint | undefined
  for (const flat of modes) {
    for (const usage of usages) {
      const amount = chargeFlat(flat, withDearestOutput(flat, usage))
      if (amount === undefined) return undefined
      if (highest === undefined || amount > highest) highest = amount
    }
  }
  return highest
}

/** All output may be reasoning. */
function withDearestOutput({ numerators: price }: Rate, estimate: Usage): Usage {
  const { reasoning_token: reasoning, output_token: output } = price
  if (reasoning === undefined || output === undefined || reasoning <= output) return estimate
  return { ...estimate, reasoningTokens: estimate.outputTokens ?? 0 }
}

/** The amount is linear in each part, so the maximum has all of the input in one part. */
function partings(estimate: Usage): readonly Usage[] {
  const { cacheWriteTokens, cacheWrite1hTokens, inputAudioTokens, ...fresh } = estimate
  const usages: Usage[] = [fresh]
  if (cacheWriteTokens !== undefined) usages.push({ ...fresh, cacheWriteTokens })
  if (cacheWriteTokens !== undefined && cacheWrite1hTokens !== undefined)
    usages.push({ ...fresh, cacheWriteTokens, cacheWrite1hTokens })
  if (inputAudioTokens !== undefined) usages.push({ ...fresh, inputAudioTokens })
  return usages
}

function nanoDollarsPerUnit({ amount, per }: MeterPrice): { numerator: bigint; denominator: bigint } {
  const dollars = parseDecimal(amount)
  const numerator = dollars.numerator * NANO_DOLLARS_PER_DOLLAR
  const denominator = dollars.denominator * BigInt(per)
  const divisor = greatestCommonDivisor(numerator, denominator)
  return { numerator: numerator / divisor, denominator: denominator / divisor }
}

function greatestCommonDivisor(left: bigint, right: bigint): bigint {
  return right === 0n ? left : greatestCommonDivisor(right, left % right)
}

function leastCommonMultiple(left: bigint, right: bigint): bigint {
  return (left / greatestCommonDivisor(left, right)) * right
}

/** Returns how much of a total is charged at its own price. */
function priced(price: bigint | undefined, part: number | undefined, left: number): number {
  return price === undefined || part === undefined ? 0 : Math.min(part, left)
}

/** Sum of costs, exact in both forms. A number suffices for nearly every call, and bigint operations allocate. */
type CostSum = number | bigint

/** Adds the cost of `count` units to a sum. */
function plusCost(sum: CostSum, price: bigint | undefined, count: number): CostSum {
  if (count === 0) return sum
  if (!(count > 0) || !Number.isInteger(count)) throw new RangeError(`not a count: ${count}`)
  if (price === undefined) return sum
  const exact = typeof sum === 'number' ? sum + Number(price) * count : Number.POSITIVE_INFINITY
  return exact <= Number.MAX_SAFE_INTEGER ? exact : BigInt(sum) + price * BigInt(count)
}
