import type { BillingFields } from '../../endpoints/endpoint.ts'
import { SURCHARGE_FIELDS } from '../../endpoints/surcharge-fields.ts'
import type { Meter } from './meter.ts'
import { checkPriceFile, type PriceFile, type PriceRow } from './price-file.ts'
import { checkRules, mostSpecificRule, type PriceRule, priceRule } from './price-rules.ts'
import { createRate, type MeterPrice, type Rate } from './rate.ts'

export { charge, highestCharge } from './charge.ts'
export type { Meter } from './meter.ts'
export type { PriceFile, PriceRow } from './price-file.ts'
export type { MeterPrice, Rate } from './rate.ts'

/** A price list ready for use. */
export interface Prices {
  /**
   * All prices that hold for a call, by the model's public id. Undefined when the model has no price at all, or has prices
   * of some meter of which none holds for these fields, or no price that names a surcharge among them.
   */
  quote(model: string, billingFields: BillingFields): Rate | undefined
  /**
   * The list as it was written, for those who want to read it: of one model and meter the row with the most conditions that
   * hold counts. A list that does not tell its rows is shown by its quotes for the sizes and tiers that the catalog knows.
   */
  rows?(): readonly PriceRow[]
}

// One rate for each combination of values that a list names is small; lists with very many combinations are cut off here.
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
  const quotes = new Map<string, (fields: BillingFields) => Rate | undefined>()
  for (const [model, rules] of byModel) {
    for (const rulesOfMeter of rules.values()) checkRules(model, rulesOfMeter)
    quotes.set(model, quoteOf(model, [...rules.values()]))
  }
  return { quote: (model, billingFields) => quotes.get(model)?.(billingFields), rows: () => rows }
}

function quoteOf(
  model: string,
  rulesByMeter: readonly (readonly PriceRule[])[],
): (fields: BillingFields) => Rate | undefined {
  const values = new Map<string, Set<string>>()
  for (const rule of rulesByMeter.flat()) {
    for (const [name, value] of rule.conditions) getOrAdd(values, name, () => new Set<string>()).add(value)
  }
  const rates = new Map<string, Rate | undefined>()
  const named = [...values]
  const isCovered = (fields: BillingFields): boolean => {
    for (const name in fields) {
      if (SURCHARGE_FIELDS.has(name) && values.get(name)?.has(fields[name] ?? '') !== true) return false
    }
    return true
  }
  if (named.length === 0) {
    const rate = rateOf(model, rulesByMeter, {})
    return (fields) => (isCovered(fields) ? rate : undefined)
  }
  return (fields) => {
    if (!isCovered(fields)) return undefined
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

function getOrAdd<Key, Value>(map: Map<Key, Value>, key: Key, create: () => Value): Value {
  const found = map.get(key)
  if (found !== undefined) return found
  const created = create()
  map.set(key, created)
  return created
}
