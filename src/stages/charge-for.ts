import { plausibleUsage } from '../catalog/prices/plausible-usage.ts'
import { charge } from '../catalog/prices/prices.ts'
import { formatDollars } from '../core/money.ts'
import type { Usage } from '../core/usage.ts'
import type { Candidate, Reserved } from './records.ts'

/**
 * What usage costs at the model that answered, in nano-dollars. Undefined when billing is off, or when the usage holds
 * something without a price.
 */
export function chargeFor(reserved: Reserved, candidate: Candidate, usage: Usage): bigint | undefined {
  const rate = reserved.hold?.rates.find(({ model }) => model === candidate.model.id)
  return rate === undefined ? undefined : charge(rate, usage)
}

/** The cost of reported usage as callers read it, before the call is settled: decimal dollars. */
export function quotedCost(reserved: Reserved, candidate: Candidate, reported: Usage): string | undefined {
  const { usage } = plausibleUsage(reported, { hold: reserved.estimate, limits: candidate.model.limits })
  const cost = chargeFor(reserved, candidate, usage)
  return cost === undefined ? undefined : formatDollars(cost)
}
