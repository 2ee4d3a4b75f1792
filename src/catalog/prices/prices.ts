import { checkPriceFile, type PriceFile, type PriceRow } from './price-file.ts'
import { createRate, type Meter, type MeterPrice, type Rate } from './rate.ts'

export type { PriceFile, PriceRow } from './price-file.ts'
export { charge, highestCharge, type Meter, type MeterPrice, type Rate } from './rate.ts'

/** Parameters that a price may depend on, such as `{ resolution: '720p' }`. */
export type BillingFields = Readonly<Record<string, string>>

/** A price list ready for use. */
export interface Prices {
  /**
   * All prices that hold for a call, by the model's public id. Undefined when the model has no price at all, or has prices
   * of some meter of which none holds for these fields, or no price that names a surcharge among them.
   * @param surcharges Names of fields for which the vendor charges extra: a call that has one needs a row that names it.
   */
  quote(model: string, billingFields: BillingFields, surcharges?: readonly string[]): Rate | undefined
  /**
   * The rows as written; of one model and meter the matching row with the most conditions counts. Without this method the
   * gateway's price list shows quotes for the sizes and tiers that the catalog has.
   */
  rows?(): readonly PriceRow[]
}

/** A price list that can be replaced while the gateway runs. */
export interface ReloadablePrices extends Required<Prices> {
  /**
   * Replaces the whole list at once: a call is charged by the old list or by the new one. Calls in progress keep the prices
   * of their hold.
   * @throws TypeError naming row and field when the new list is invalid; the previous list then stays in force.
   */
  reload(file: PriceFile): void
}

// Bounds the memory of a list whose conditions have very many combinations of values.
const MAX_RATES_KEPT = 1000

/**
 * Reads a price list. It is checked in full, so the parsed JSON of a file may be passed as it is.
 * @throws TypeError naming index and field: unknown meters or members, amounts that are no decimal strings, a row that
 *   repeats another's model, meter and conditions, and two rows that could hold for the same call with equal claim.
 */
export function definePrices(file: PriceFile): Required<Prices> {
  const byModel = new Map<string, Map<Meter, PriceRule[]>>()
  const { prices: rows } = checkPriceFile(file)
  rows.forEach((row, index) => {
    const rules = getOrAdd(byModel, row.model, () => new Map<Meter, PriceRule[]>())
    getOrAdd(rules, row.meter, () => []).push(priceRule(row, index))
  })
  const quotes = new Map<string, Quote>()
  for (const [model, rules] of byModel) {
    for (const rulesOfMeter of rules.values()) checkRules(model, rulesOfMeter)
    quotes.set(model, quoteOf(model, [...rules.values()]))
  }
  return {
    quote: (model, billingFields, surcharges = NO_SURCHARGES) => quotes.get(model)?.(billingFields, surcharges),
    rows: () => rows,
  }
}

/**
 * Prices for `createGateway({ prices })` that may change without a restart.
 * @throws TypeError as {@link definePrices} does.
 */
export function reloadablePrices(initial: PriceFile): ReloadablePrices {
  let current = definePrices(initial)
  return {
    quote: (model, billingFields, surcharges) => current.quote(model, billingFields, surcharges),
    rows: () => current.rows(),
    reload(file) {
      current = definePrices(file)
    },
  }
}

/** A row of a price list with its index there. */
interface PriceRule {
  readonly index: number
  readonly meter: Meter
  readonly price: MeterPrice
  /** Name and value of every condition. */
  readonly conditions: ReadonlyMap<string, string>
}

type Quote = (fields: BillingFields, surcharges: readonly string[]) => Rate | undefined

const NO_SURCHARGES: readonly string[] = []

function quoteOf(model: string, rulesByMeter: readonly (readonly PriceRule[])[]): Quote {
  const values = new Map<string, Set<string>>()
  for (const rule of rulesByMeter.flat()) {
    for (const [name, value] of rule.conditions) getOrAdd(values, name, () => new Set<string>()).add(value)
  }
  const rates = new Map<string, Rate | undefined>()
  const named = [...values]
  const isCovered = (fields: BillingFields, surcharges: readonly string[]): boolean => {
    for (const name of surcharges) {
      const value = fields[name]
      if (value !== undefined && values.get(name)?.has(value) !== true) return false
    }
    return true
  }
  if (named.length === 0) {
    const rate = rateOf(model, rulesByMeter, {})
    return (fields, surcharges) => (isCovered(fields, surcharges) ? rate : undefined)
  }
  return (fields, surcharges) => {
    if (!isCovered(fields, surcharges)) return undefined
    // Only values that the list names stand in the key, so callers cannot make keys without end.
    let key = ''
    for (const [name, known] of named) {
      const value = Object.hasOwn(fields, name) ? fields[name] : undefined
      key += value !== undefined && known.has(value) ? `${value}\0` : '\0'
    }
    const kept = rates.get(key)
    if (kept !== undefined || rates.has(key)) return kept
    const rate = rateOf(model, rulesByMeter, fields)
    if (rates.size < MAX_RATES_KEPT) rates.set(key, rate)
    return rate
  }
}

function rateOf(
  model: string,
  rulesByMeter: readonly (readonly PriceRule[])[],
  fields: BillingFields,
): Rate | undefined {
  const prices: MeterPrice[] = []
  for (const rules of rulesByMeter) {
    const rule = mostSpecificRule(rules, fields)
    if (rule !== undefined) prices.push(rule.price)
    // A call that cannot search needs no price of searches.
    else if (rules[0]?.meter !== 'web_search' || fields['web_search'] === 'true') return undefined
  }
  return createRate(model, prices)
}

/**
 * Reads a row as a rule.
 * @throws TypeError for a price of searches in calls that cannot search.
 */
function priceRule(row: PriceRow, index: number): PriceRule {
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
function mostSpecificRule(rules: readonly PriceRule[], fields: BillingFields): PriceRule | undefined {
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
function checkRules(model: string, rules: readonly PriceRule[]): void {
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

function getOrAdd<Key, Value>(map: Map<Key, Value>, key: Key, create: () => Value): Value {
  const found = map.get(key)
  if (found !== undefined) return found
  const created = create()
  map.set(key, created)
  return created
}
