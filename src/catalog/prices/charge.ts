import { divideRoundingUp } from '../../core/money.ts'
import type { Usage } from '../../core/usage.ts'
import { exactDecimal } from './exact-decimal.ts'
import type { Rate } from './rate.ts'

/**
 * What a call costs, in nano-dollars: computed exactly and rounded up once, at the end. Parts of a total that have a price
 * of their own are taken out of the total in the order cached, cache-written, image (input) and image, reasoning (output),
 * and never make up more than the total. A rate has a price of searches only for a call that may search; where their number
 * is not known they count as one.
 *
 * Undefined when the call used something that has no price: then there is no right amount, and none is made up. Tokens need
 * no price of their own where the model is sold by the request, picture, second or character and no kind of token is
 * priced; pictures, seconds and characters need none where there is a price by the request, or tokens that are priced.
 * @throws RangeError for counts that are negative, fractional or not finite; vendors' reports go through
 *   `plausibleUsage` first.
 */
export function charge(rate: Rate, usage: Usage): bigint | undefined {
  const price = rate.numerators
  const reported =
    usage.inputTokens ?? (usage.cachedInputTokens ?? 0) + (usage.cacheWriteTokens ?? 0) + (usage.inputImageTokens ?? 0)
  const cached = priced(price.cached_input_token, usage.cachedInputTokens, reported)
  const kept = usage.cacheWriteTokens ?? 0
  const keptLong = Math.min(usage.cacheWrite1hTokens ?? 0, kept)
  const writtenLong = priced(price.cache_write_1h_token, keptLong, reported - cached)
  const written = priced(price.cache_write_token, kept - keptLong, reported - cached - writtenLong)
  const seen = priced(price.input_image_token, usage.inputImageTokens, reported - cached - writtenLong - written)
  const input = reported - cached - writtenLong - written - seen

  const made = usage.outputTokens ?? (usage.outputImageTokens ?? 0) + (usage.reasoningTokens ?? 0)
  const drawn = priced(price.output_image_token, usage.outputImageTokens, made)
  const reasoned = priced(price.reasoning_token, usage.reasoningTokens, made - drawn)
  const output = made - drawn - reasoned

  const images = usage.images ?? 0
  const characters = usage.characters ?? 0
  const videoSeconds = usage.videoSeconds ?? 0
  const webSearches = usage.webSearches ?? 1

  if (!rate.pricesTokens) {
    const isSoldByUnit =
      price.request !== undefined ||
      (price.image !== undefined && images > 0) ||
      (price.video_second !== undefined && videoSeconds > 0) ||
      (price.character !== undefined && characters > 0)
    if ((input > 0 || output > 0) && !isSoldByUnit) return undefined
  } else if ((input > 0 && price.input_token === undefined) || (output > 0 && price.output_token === undefined)) {
    return undefined
  }
  if (images > 0 || characters > 0 || videoSeconds > 0) {
    const isSoldOtherwise = price.request !== undefined || (rate.pricesTokens && reported + made > 0)
    if (images > 0 && price.image === undefined && !isSoldOtherwise) return undefined
    if (videoSeconds > 0 && price.video_second === undefined && !isSoldOtherwise) return undefined
    if (characters > 0 && price.character === undefined && !isSoldOtherwise) return undefined
  }

  const sum =
    (price.request ?? 0n) +
    cost(price.input_token, input) +
    cost(price.cached_input_token, cached) +
    cost(price.cache_write_token, written) +
    cost(price.cache_write_1h_token, writtenLong) +
    cost(price.input_image_token, seen) +
    cost(price.output_token, output) +
    cost(price.output_image_token, drawn) +
    cost(price.reasoning_token, reasoned) +
    cost(price.image, images) +
    cost(price.character, characters) +
    cost(price.web_search, webSearches)
  if (videoSeconds === 0 || price.video_second === undefined) return divideRoundingUp(sum, rate.denominator)
  const seconds = exactDecimal(videoSeconds)
  return divideRoundingUp(
    sum * seconds.denominator + price.video_second * seconds.numerator,
    rate.denominator * seconds.denominator,
  )
}

/**
 * The most that a call can cost whose usage stays within an estimate, in nano-dollars: a part of the input that the estimate
 * names may turn out to be smaller, and its price may be above or below that of the rest. Undefined as {@link charge} is.
 */
export function highestCharge(rate: Rate, estimate: Usage): bigint | undefined {
  if (estimate.cacheWriteTokens === undefined) return charge(rate, estimate)
  const { cacheWriteTokens, cacheWrite1hTokens, ...fresh } = estimate
  // An amount grows evenly with each part, so the highest has all of the input in one of them.
  const usages: Usage[] = [fresh, { ...fresh, cacheWriteTokens }]
  if (cacheWrite1hTokens !== undefined) usages.push(estimate)
  let highest = 0n
  for (const usage of usages) {
    const amount = charge(rate, usage)
    if (amount === undefined) return undefined
    if (amount > highest) highest = amount
  }
  return highest
}

/** How much of a total is charged at a price of its own. */
function priced(price: bigint | undefined, part: number | undefined, left: number): number {
  return price === undefined || part === undefined ? 0 : Math.min(part, left)
}

function cost(price: bigint | undefined, count: number): bigint {
  if (count === 0) return 0n
  if (!(count > 0)) throw new RangeError(`not a count: ${count}`)
  const whole = BigInt(count)
  return price === undefined ? 0n : price * whole
}
