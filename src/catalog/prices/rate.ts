import { NANO_DOLLARS_PER_DOLLAR, parseDecimal } from '../../core/money.ts'
import type { Meter } from './meter.ts'

/** The price of one meter. */
export interface MeterPrice {
  readonly meter: Meter
  /** Dollars for `per` units, as a decimal string. */
  readonly amount: string
  readonly per: number
}

/** All prices of one call, ready to charge with: nano-dollars a unit as exact fractions over one common denominator. */
export interface Rate {
  /** Public id of the model. */
  readonly model: string
  /** The prices as they were written. Plain data: a long job keeps them, and {@link createRate} makes the rate again. */
  readonly prices: readonly MeterPrice[]
  /** Undefined where there is no price; zero where the price is zero. */
  readonly numerators: Readonly<Record<Meter, bigint | undefined>>
  readonly denominator: bigint
  /** Is any kind of token priced? */
  readonly pricesTokens: boolean
}

/**
 * Brings the prices of a model over one denominator. Without a price of their own, tokens written to a cache for an hour cost
 * 1.6 times those written for minutes.
 * @throws RangeError when an amount is not a decimal string.
 */
export function createRate(model: string, prices: readonly MeterPrice[]): Rate {
  const fractions = prices.map((price) => ({ meter: price.meter, ...nanoDollarsPerUnit(price) }))
  const written = fractions.find(({ meter }) => meter === 'cache_write_token')
  if (written !== undefined && !prices.some(({ meter }) => meter === 'cache_write_1h_token')) {
    // Price lists often name one price of writing only, and vendors sell an hour at 2 times and minutes at 1.25 times input.
    const { numerator, denominator } = written
    fractions.push({ meter: 'cache_write_1h_token', numerator: numerator * 8n, denominator: denominator * 5n })
  }
  const denominator = fractions.reduce((common, fraction) => leastCommonMultiple(common, fraction.denominator), 1n)
  const numerators: Record<Meter, bigint | undefined> = {
    input_token: undefined,
    output_token: undefined,
    cached_input_token: undefined,
    cache_write_token: undefined,
    cache_write_1h_token: undefined,
    reasoning_token: undefined,
    image: undefined,
    input_image_token: undefined,
    output_image_token: undefined,
    video_second: undefined,
    character: undefined,
    web_search: undefined,
    request: undefined,
  }
  for (const fraction of fractions) {
    numerators[fraction.meter] = fraction.numerator * (denominator / fraction.denominator)
  }
  const pricesTokens = prices.some((price) => price.meter.endsWith('_token'))
  return { model, prices, numerators, denominator, pricesTokens }
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
