import { highestCharge } from '../catalog/prices/prices.ts'
import type { Usage } from '../core/usage.ts'
import type { Admitted, OutputFit } from './call-record.ts'
import type { PipelineContext } from './pipeline-context.ts'
import type { PricedRequest } from './pricing.ts'
import { assumedOutputTokens, withOutputBound } from './usage-estimate.ts'

/** An answer that the balance bounds has at least so many tokens; a shorter one would be of little use. */
export const FEWEST_FITTED_TOKENS = 256

/** A request that fits a balance. */
export interface FittedRequest {
  readonly fit: OutputFit
  readonly priced: PricedRequest
}

/** What the least useful answer of a request costs, where even that is too much. */
export interface TooDear {
  readonly neededNanoDollars: bigint
}

/**
 * Bounds the output of a request that sets no bound by what the free balance pays: a share of it, or all of it where the share
 * pays for fewer than 256 tokens. Undefined: the request sets its own bound, or has none.
 */
export function fitToBalance(
  context: PipelineContext,
  admitted: Admitted,
  priced: PricedRequest,
  freeNanoDollars: bigint,
): FittedRequest | TooDear | undefined {
  const assumed: number[] = []
  for (const model of priced.chain) {
    const tokens = assumedOutputTokens(context, admitted, model)
    if (tokens === undefined) return undefined
    assumed.push(tokens)
  }
  // A vendor refuses a bound that is above what its model can give, and any model of the chain may get it.
  const longest = Math.min(...assumed)
  const bounded = (tokens: number): PricedRequest | undefined => boundedTo(priced, assumed, tokens)
  const fewest = Math.min(FEWEST_FITTED_TOKENS, longest)
  const least = bounded(fewest)
  if (least === undefined) return undefined
  if (least.amount > freeNanoDollars) return { neededNanoDollars: least.amount }
  const budget = shareOf(freeNanoDollars, context.outputBounds.balanceSharePerCall)
  let outputTokens = fewest
  let fitting = least
  // What a call costs grows with its output, so the longest answer that the budget pays is found by halving.
  let tooMany = longest + 1
  while (least.amount <= budget && tooMany - outputTokens > 1) {
    const middle = Math.floor((outputTokens + tooMany) / 2)
    const tried = bounded(middle)
    if (tried !== undefined && tried.amount <= budget) {
      outputTokens = middle
      fitting = tried
    } else tooMany = middle
  }
  // What hooks charge is priced beside the estimate of what a vendor is asked for.
  const { hookUnits: _hookUnits, ...estimate } = fitting.estimates[0] ?? admitted.estimate
  return { fit: { ...withOutputBound(admitted, outputTokens), estimate, outputTokens }, priced: fitting }
}

/** The same request with answers of so many tokens at most; undefined: it has no price. */
function boundedTo(priced: PricedRequest, assumed: readonly number[], tokens: number): PricedRequest | undefined {
  let amount = 0n
  const estimates: Usage[] = []
  for (const [index, rate] of priced.rates.entries()) {
    const estimate = priced.estimates[index]!
    const perAnswer = assumed[index]!
    // A request may ask for several answers, and each has the bound.
    const answers = (estimate.outputTokens ?? 0) / perAnswer
    const shorter = { ...estimate, outputTokens: Math.round(answers * Math.min(tokens, perAnswer)) }
    const cost = highestCharge(rate, shorter)
    if (cost === undefined) return undefined
    if (cost > amount) amount = cost
    estimates.push(shorter)
  }
  return { ...priced, amount, estimates }
}

const SHARE_UNITS = 1_000_000

function shareOf(amount: bigint, share: number): bigint {
  return (amount * BigInt(Math.round(share * SHARE_UNITS))) / BigInt(SHARE_UNITS)
}
