import type { Admitted } from '../../pipeline/call-record.ts'
import {
  FREE_MONEY_DIVISOR,
  MIN_CHOSEN_TOKENS,
  outputFit,
  partOf,
  type UnboundedRequest,
} from '../../pipeline/output-bound.ts'
import type { PricedRequest } from '../../pipeline/pricing.ts'

/**
 * Output limit of batch requests that set none: each model's longest answer, or a number of tokens from 0, the shortest useful
 * answer, to 1,000,000, the usual limit.
 */
export type BatchBound = 'longest' | number

const USUAL = 1_000_000

/** Cost of requests at three output limits, in nano-dollars. Requests with their own limit cost the same at each. */
export interface BoundCosts {
  readonly shortest: bigint
  readonly usual: bigint
  readonly longest: bigint
}

export const NO_COSTS: BoundCosts = { shortest: 0n, usual: 0n, longest: 0n }

/** Returns the costs of one request. */
export function boundCosts({ amount }: PricedRequest, unbounded: UnboundedRequest | undefined): BoundCosts {
  if (unbounded === undefined) return { shortest: amount, usual: amount, longest: amount }
  const { usual, longest = usual } = unbounded
  const shortest = unbounded.bounded(shortestOf(unbounded))
  return { shortest: shortest.priced.amount, usual: usual.priced.amount, longest: longest.priced.amount }
}

/** Costs in the form that the plan of a batch stores: one string if all are equal. */
export function writtenCosts({ shortest, usual, longest }: BoundCosts): readonly string[] {
  return shortest === longest ? [`${usual}`] : [`${shortest}`, `${usual}`, `${longest}`]
}

export function readCosts([shortest = '0', usual = shortest, longest = usual]: readonly string[]): BoundCosts {
  return { shortest: BigInt(shortest), usual: BigInt(usual), longest: BigInt(longest) }
}

export function addCosts(one: BoundCosts, other: BoundCosts): BoundCosts {
  return {
    shortest: one.shortest + other.shortest,
    usual: one.usual + other.usual,
    longest: one.longest + other.longest,
  }
}

/**
 * Chooses one output limit for a batch by the rules of a single call: the longest answers if they cost at most 2 % of the free
 * money, else the usual limit if it costs at most `share` of that money, else what `share` of it pays for. The shortest answers
 * may cost more than the free money; then the hold is rejected.
 */
export function chooseBatchBound(costs: BoundCosts, freeMoney: bigint | undefined, share: number): BatchBound {
  const { shortest, usual, longest } = costs
  if (freeMoney === undefined || longest * FREE_MONEY_DIVISOR <= freeMoney) return 'longest'
  const budget = partOf(freeMoney, share)
  if (usual <= budget) return USUAL
  return shortest >= budget ? 0 : Number(((budget - shortest) * BigInt(USUAL)) / (usual - shortest))
}

/** Cost at a limit. The price of an answer grows linearly with its tokens, so this is the maximum cost of a limit in between. */
export function costAtBound({ shortest, usual, longest }: BoundCosts, bound: BatchBound): bigint {
  if (bound === 'longest') return longest
  return shortest + ((usual - shortest) * BigInt(bound) + BigInt(USUAL) - 1n) / BigInt(USUAL)
}

/** Limits the answer of a batch request. Returns the price of the request with that limit. */
export function applyBatchBound(admitted: Admitted, unbounded: UnboundedRequest, bound: BatchBound): PricedRequest {
  const { usual, longest = usual } = unbounded
  const shortest = shortestOf(unbounded)
  const bounded =
    bound === 'longest'
      ? longest
      : unbounded.bounded(shortest + Math.floor(((usual.tokens - shortest) * bound) / USUAL))
  admitted.fitted(outputFit(admitted, bounded))
  return bounded.priced
}

function shortestOf({ usual }: UnboundedRequest): number {
  return Math.min(MIN_CHOSEN_TOKENS, usual.tokens)
}
