import type { BillingFields } from '../../endpoints/endpoint.ts'
import type { Meter } from './meter.ts'
import type { PriceRow } from './price-file.ts'
import type { MeterPrice } from './rate.ts'

/** A row of a price list with its index there. */
export interface PriceRule {
  readonly index: number
  readonly meter: Meter
  readonly price: MeterPrice
  /** Name and value of every condition. */
  readonly conditions: ReadonlyMap<string, string>
}

/**
 * Reads a row as a rule.
 * @throws TypeError for a price of searches in calls that cannot search.
 */
export function priceRule(row: PriceRow, index: number): PriceRule {
  const price = { meter: row.meter, amount: row.amount, per: row.per ?? 1 }
  const conditions = new Map(Object.entries(row.when ?? {}))
  // Only a call that may search is charged for searches, and the row is a price for such a call.
  if (row.meter === 'web_search') {
    if ((conditions.get('web_search') ?? 'true') !== 'true')
      throw new TypeError(`prices[${index}]: a price of searches can hold only when web_search is "true"`)
    conditions.set('web_search', 'true')
  }
  return { index, meter: row.meter, price, conditions }
}

/** The rule among those of one meter that holds for the fields and has the most conditions; undefined when none holds. */
export function mostSpecificRule(rules: readonly PriceRule[], fields: BillingFields): PriceRule | undefined {
  let best: PriceRule | undefined
  for (const rule of rules) {
    if (holds(rule, fields) && (best === undefined || rule.conditions.size > best.conditions.size)) best = rule
  }
  return best
}

function holds(rule: PriceRule, fields: BillingFields): boolean {
  for (const [name, value] of rule.conditions) {
    if (!Object.hasOwn(fields, name) || fields[name] !== value) return false
  }
  return true
}

/**
 * Refuses rules of one model and meter among which a request could not decide.
 * @throws TypeError naming both rows.
 */
export function checkRules(model: string, rules: readonly PriceRule[]): void {
  rules.forEach((rule, position) => {
    for (const earlier of rules.slice(0, position)) {
      const both = union(rule.conditions, earlier.conditions)
      if (both === undefined) continue
      const { size } = rule.conditions
      if (both.size === size && both.size === earlier.conditions.size) throw rulesError(model, rule, earlier, 'repeats')
      const isAmbiguous = size === earlier.conditions.size && !rules.some((other) => isEqual(other.conditions, both))
      if (isAmbiguous)
        throw rulesError(model, rule, earlier, 'can hold at the same time as, and is no more specific than,')
    }
  })
}

function rulesError(model: string, rule: PriceRule, earlier: PriceRule, relation: string): TypeError {
  return new TypeError(
    `prices[${rule.index}]: the ${rule.meter} price of ${JSON.stringify(model)} ${relation} prices[${earlier.index}]`,
  )
}

/** All conditions of both; undefined when no request can meet both. */
function union(left: ReadonlyMap<string, string>, right: ReadonlyMap<string, string>): Map<string, string> | undefined {
  const both = new Map(left)
  for (const [name, value] of right) {
    if (both.has(name) && both.get(name) !== value) return undefined
    both.set(name, value)
  }
  return both
}

function isEqual(left: ReadonlyMap<string, string>, right: ReadonlyMap<string, string>): boolean {
  return left.size === right.size && union(left, right)?.size === left.size
}
