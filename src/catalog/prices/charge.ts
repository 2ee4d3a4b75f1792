import { divideRoundingUp } from '../../core/money.ts'
import type { Usage } from '../../core/usage.ts'
import { exactDecimal } from './exact-decimal.ts'
import type { Rate } from './rate.ts'

/**
 * What a call costs, in nano-dollars: computed exactly and rounded up once, at the end. Parts of a total that have a price
 * of their own are taken out of the total in the order cached, cache-written, image (input) and image, reasoning (output),
 * and never make up more than the total.
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
  const written = priced(price.cache_write_token, usage.cacheWriteTokens, reported - cached)
  const seen = priced(price.input_image_token, usage.inputImageTokens, reported - cached - written)
  const input = reported - cached - written - seen

  const made = usage.outputTokens ?? (usage.outputImageTokens ?? 0) + (usage.reasoningTokens ?? 0)
  const drawn = priced(price.output_image_token, usage.outputImageTokens, made)
  const reasoned = priced(price.reasoning_token, usage.reasoningTokens, made - drawn)
  const output = made - drawn - reasoned

  const images = usage.images ?? 0
  const characters = usage.characters ?? 0
  const videoSeconds = usage.videoSeconds ?? 0

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
    cost(price.input_image_token, seen) +
    cost(price.output_token, output) +
    cost(price.output_image_token, drawn) +
    cost(price.reasoning_token, reasoned) +
    cost(price.image, images) +
    cost(price.character, characters)
  if (videoSeconds === 0 || price.video_second === undefined) return divideRoundingUp(sum, rate.denominator)
  const seconds = exactDecimal(videoSeconds)
  return divideRoundingUp(
    sum * seconds.denominator + price.video_second * seconds.numerator,
    rate.denominator * seconds.denominator,
  )
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
