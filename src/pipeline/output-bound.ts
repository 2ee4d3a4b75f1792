// See docs/decisions/0004-holds.md.

import type { CatalogModel } from '../catalog/model.ts'
import { highestCharge } from '../catalog/prices/prices.ts'
import type { Usage } from '../core/usage.ts'
import { lesserOf, MAX_AMOUNT, type Reservation } from '../stores/ledger.ts'
import type { Admitted, OutputFit, Parsed } from './call-record.ts'
import { assumedOutputTokens, withOutputBound } from './estimate.ts'
import type { PipelineContext } from './pipeline-context.ts'
import type { PricedRequest } from './pricing.ts'

/** Minimum bound that the gateway chooses, in tokens. A shorter answer would be of little use. */
export const MIN_CHOSEN_TOKENS = 256

/** Share of the free money that the longest answer may cost: 1/50, or 2 %. */
export const FREE_MONEY_DIVISOR = 50n

/** Share of the free money that a shorter answer may cost: half, so that concurrent calls share it. */
export const SHARE_DIVISOR = 2n

/** Facts from which a bound is chosen. */
export interface OutputBoundFacts {
  /** Least of balance, rest of every applicable cap and rest of a credit limit, in nano-dollars. `undefined` if nothing limits it. */
  readonly freeMoney: bigint | undefined
  /** Longest answer that every model of the chain can write, in tokens. */
  readonly longestAnswer: number
  /** Bound of answers whose longest one is too expensive, in tokens. Default of the gateway: 16,384. */
  readonly defaultBound: number
  /** Cost of a call whose answers have this many tokens, in nano-dollars. It grows with the tokens. */
  costOf(tokens: number): bigint
}

/** A chosen bound, or the cost of the shortest useful answer if the free money does not pay for it. */
export type OutputBoundChoice =
  | { readonly tokens: number; readonly amount: bigint }
  | { readonly neededNanoDollars: bigint }

/**
 * Chooses the bound of a call that sets none: the longest answer if it costs at most 2 % of the free money; else `defaultBound`
 * if it costs at most half of it; else the number of tokens that half pays for. If that is below 256, the whole balance may
 * be spent on 256 tokens.
 */
export function chooseOutputBound(facts: OutputBoundFacts): OutputBoundChoice {
  const { freeMoney, longestAnswer, costOf } = facts
  const usual = Math.min(longestAnswer, facts.defaultBound)
  const longest = { tokens: longestAnswer, amount: costOf(longestAnswer) }
  if (freeMoney === undefined || longest.amount * FREE_MONEY_DIVISOR <= freeMoney) return longest
  const budget = freeMoney / SHARE_DIVISOR
  const fewest = Math.min(MIN_CHOSEN_TOKENS, usual)
  let best = { tokens: fewest, amount: costOf(fewest) }
  if (best.amount > freeMoney) return { neededNanoDollars: best.amount }
  let tooMany = usual + 1
  let tried = usual
  // The search begins with the default bound and halves the interval until it finds the longest answer within the budget.
  while (best.amount <= budget && tooMany - best.tokens > 1) {
    const amount = costOf(tried)
    if (amount <= budget) best = { tokens: tried, amount }
    else tooMany = tried
    tried = Math.floor((best.tokens + tooMany) / 2)
  }
  return best
}

/** Request whose output the gateway limits. */
export interface BoundedRequest {
  /** Maximum tokens of one answer. */
  readonly tokens: number
  readonly priced: PricedRequest
}

/** Request that sets no bound of its output, and the dependency of its price on the chosen bound. */
export interface UnboundedRequest {
  /** Returns the request with a bound. */
  bounded(tokens: number): BoundedRequest
  /** Bound that is tried first, and the condition under which the store reserves a longer answer. */
  readonly usual: BoundedRequest
  /** Longest answer, if it is longer than the usual bound. */
  readonly longest: BoundedRequest | undefined
  /** Chooses by free money; see {@link chooseOutputBound}. */
  choose(freeMoney: bigint | undefined): BoundedRequest | { readonly neededNanoDollars: bigint }
}

/** Returns the possible bounds of a request; `undefined` if it sets its own bound, accepts none, or costs nothing. */
export function unboundedRequest(
  context: PipelineContext,
  parsed: Parsed,
  priced: PricedRequest,
): UnboundedRequest | undefined {
  if (assumedOutputTokens(context, parsed, priced.chain[0]!) === undefined) return undefined
  const { defaultMaxOutputTokens: defaultBound } = context.outputBounds
  const limits = priced.chain.map(({ limits: { maxOutputTokens } }) => maxOutputTokens ?? defaultBound)
  const bounded = (tokens: number): BoundedRequest => ({
    tokens,
    priced: pricedFor(priced, limits, { tokens, defaultBound }),
  })
  // A vendor rejects a bound above its model's longest answer, and any model of the chain may get it.
  const longestAnswer = Math.min(
    ...priced.chain.map((model, index) => roomFor(model, priced.estimates[index]!, limits[index]!)),
  )
  const tokens = Math.min(longestAnswer, defaultBound)
  const isPriced = limits.every((limit) => Math.min(limit, defaultBound) === tokens)
  const usual = isPriced ? { tokens, priced } : bounded(tokens)
  const longest = longestAnswer > usual.tokens ? bounded(longestAnswer) : undefined
  if ((longest ?? usual).priced.amount === 0n) return undefined
  return {
    bounded,
    usual,
    longest,
    choose(freeMoney) {
      const costOf = (tokens: number): bigint => bounded(tokens).priced.amount
      const choice = chooseOutputBound({ freeMoney, longestAnswer, defaultBound, costOf })
      return 'tokens' in choice ? bounded(choice.tokens) : choice
    },
  }
}

/**
 * Returns the tokens of an answer that fit into the context window. Many vendors reject a prompt and a bound that exceed it
 * together. The estimate of a prompt is an upper one, so a short answer is always allowed.
 */
function roomFor({ limits: { contextTokens } }: CatalogModel, { inputTokens = 0 }: Usage, longest: number): number {
  if (contextTokens === undefined) return longest
  return Math.min(longest, Math.max(contextTokens - inputTokens, SHORT_ANSWER_TOKENS))
}

const SHORT_ANSWER_TOKENS = 4_096

/** Returns the amounts by which the store chooses between the usual bound and the longest answer. */
export function boundedAmounts({
  usual,
  longest,
}: UnboundedRequest): Pick<Reservation, 'amount' | 'requiredFree' | 'larger'> {
  const { amount } = usual.priced
  const requiredFree = lesserOf(amount * SHARE_DIVISOR, MAX_AMOUNT)
  if (longest === undefined) return { amount, requiredFree }
  const larger = longest.priced.amount
  return {
    amount,
    requiredFree,
    larger: { amount: larger, requiredFree: lesserOf(larger * FREE_MONEY_DIVISOR, MAX_AMOUNT) },
  }
}

/** Returns the request with the bound in its body, its bytes and its estimate. */
export function outputFit(admitted: Admitted, { tokens, priced }: BoundedRequest): OutputFit {
  // Charges of hooks are priced in addition to the call of the vendor.
  const { hookUnits: _hookUnits, ...estimate } = priced.estimates[0] ?? admitted.estimate
  return { ...withOutputBound(admitted, tokens), estimate, outputTokens: tokens }
}

/** Prices answers of this many tokens at the most expensive model of the chain. */
function pricedFor(
  priced: PricedRequest,
  limits: readonly number[],
  { tokens, defaultBound }: { readonly tokens: number; readonly defaultBound: number },
): PricedRequest {
  let amount = 0n
  const estimates: Usage[] = []
  for (const [index, rate] of priced.rates.entries()) {
    const estimate = priced.estimates[index]!
    // A request may ask for several answers, and each has the bound.
    const answers = (estimate.outputTokens ?? 0) / Math.min(limits[index]!, defaultBound)
    const bounded = { ...estimate, outputTokens: Math.round(answers * tokens) }
    const cost = highestCharge(rate, bounded) ?? priced.amount
    if (cost > amount) amount = cost
    estimates.push(bounded)
  }
  return { ...priced, amount, estimates }
}
