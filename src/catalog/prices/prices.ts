import { ORDINARY_TIER } from '../../core/usage.ts'
import { isPattern, starOf } from '../model.ts'
import { checkPriceFile, type PriceFile, type PriceRow } from './price-file.ts'
import { createRate, type Meter, type MeterPrice, type Rate } from './rate.ts'

export type { PriceConditions, PriceFile, PriceRow } from './price-file.ts'
export { charge, highestCharge, hookUnitRate, type Meter, type MeterPrice, type Rate } from './rate.ts'

/** Parameters that a price may depend on, such as `{ resolution: '720p' }`. */
export type BillingFields = Readonly<Record<string, string>>

/** A price list ready for use. */
export interface Prices {
  /**
   * Returns all prices that apply to a call, by the model's public id. Undefined if the model has no price at all, if it has
   * prices of some meter but none applies to these fields, or if no price names one of the surcharges.
   * @param surcharges Names of fields for which the vendor charges extra: a call that has one needs a row that names it.
   */
  quote(model: string, billingFields: BillingFields, surcharges?: readonly string[]): Rate | undefined
  /**
   * Returns the rows as written. If several rows of one model and meter match, the one with the most conditions counts. Without
   * this method, the gateway's price list shows quotes for the sizes and tiers in the catalog.
   */
  rows?(): readonly PriceRow[]
}

/** Price list that can be replaced while the gateway runs. */
export interface ReloadablePrices extends Required<Prices> {
  /**
   * Replaces the whole list atomically: a call is charged by either the old list or the new one. Calls in progress keep the
   * prices of their hold.
   * @throws TypeError with row and field if the new list is invalid; the previous list then stays in use.
   */
  reload(file: PriceFile): void
}

// Limits the memory of a list whose conditions have very many combinations of values.
const MAX_RATES_KEPT = 1000

/**
 * Checks a price list completely, so the parsed JSON of a file may be passed directly.
 * @throws TypeError with index and field: unknown meters or members, amounts that are not decimal strings, a row that repeats
 *   another's model, meter and conditions, and two rows that match the same call with equal specificity.
 */
export function definePrices(file: PriceFile): Required<Prices> {
  const { prices: rows } = checkPriceFile(file)
  const rules = rows.map(priceRule)
  const calls = quotesOf(rules.filter((rule) => !isOfHits(rule) && !isOfBatches(rule)))
  const batches = quotesOf(rules.filter((rule) => !isOfHits(rule) && isOfBatches(rule)))
  const hits = quotesOf(rules.filter(isOfHits))
  return {
    quote(model, billingFields, surcharges = NO_SURCHARGES) {
      if (billingFields[CACHE_FIELD] === CACHE_HIT) return hits(model, billingFields, surcharges)
      return (billingFields[BATCH_FIELD] === BATCH_VALUE ? batches : calls)(model, billingFields, surcharges)
    },
    rows: () => rows,
  }
}

/** Condition of prices for answers from the cache: `when: { cache: 'hit' }`. Only these rows apply to such an answer. */
export const CACHE_FIELD = 'cache'
export const CACHE_HIT = 'hit'

/** Condition of prices for requests of batches: `when: { batch: 'true' }`. Only these rows apply to such requests. */
export const BATCH_FIELD = 'batch'
export const BATCH_VALUE = 'true'

/**
 * Condition of prices for calls in which the model thinks: `when: { thinking: 'on' }`. It applies if the vendor's report counts
 * reasoning tokens, and always if the request turns thinking on.
 */
export const THINKING_FIELD = 'thinking'
export const THINKING_ON = 'on'
export const THINKING_OFF = 'off'

/**
 * Price field of the service tier. Requests name the ordinary tier explicitly as {@link ORDINARY_TIER}, which needs no row; a
 * request without the field may be served at any tier.
 */
const TIER_FIELD = 'service_tier'

/** Whether a row applies to ordinary calls, and not only to batch requests or answers from the cache. */
export function isOfCalls({ when }: PriceRow): boolean {
  return String(when?.[BATCH_FIELD]) !== BATCH_VALUE && String(when?.[CACHE_FIELD]) !== CACHE_HIT
}

function isOfBatches({ conditions }: PriceRule): boolean {
  return conditions.get(BATCH_FIELD) === BATCH_VALUE
}

function isOfHits({ conditions }: PriceRule): boolean {
  return conditions.get(CACHE_FIELD) === CACHE_HIT
}

function quotesOf(rules: readonly PriceRule[]): Prices['quote'] {
  const byModel = new Map<string, Map<Meter, PriceRule[]>>()
  for (const rule of rules) {
    const ofModel = getOrAdd(byModel, rule.model, () => new Map<Meter, PriceRule[]>())
    getOrAdd(ofModel, rule.meter, () => []).push(rule)
  }
  const quotes = new Map<string, Quote>()
  const patterns: (readonly [pattern: string, rules: readonly (readonly PriceRule[])[]])[] = []
  for (const [model, rules] of byModel) {
    for (const rulesOfMeter of rules.values()) checkRules(model, rulesOfMeter)
    if (isPattern(model)) patterns.push([model, [...rules.values()]])
    else quotes.set(model, quoteOf(model, [...rules.values()]))
  }
  patterns.sort(([one], [other]) => other.length - one.length)
  const matched = new Map<string, Quote>()
  const match = (model: string): Quote | undefined => {
    const known = matched.get(model)
    if (known !== undefined) return known
    const found = patterns.find(([pattern]) => starOf(pattern, model) !== undefined)
    if (found === undefined) return undefined
    const quote = quoteOf(model, found[1])
    if (matched.size >= MAX_RATES_KEPT) matched.clear()
    matched.set(model, quote)
    return quote
  }
  return (model, billingFields, surcharges = NO_SURCHARGES) => {
    const quote = quotes.get(model) ?? (patterns.length === 0 ? undefined : match(model))
    return quote?.(billingFields, surcharges)
  }
}

/**
 * Creates prices for `createGateway({ prices })` that may change without a restart.
 * @throws TypeError under the conditions of {@link definePrices}.
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

/** Row of a price list with its index. */
interface PriceRule {
  readonly index: number
  readonly model: string
  readonly meter: Meter
  readonly price: MeterPrice
  /** Name and value of every condition on billing fields. */
  readonly conditions: ReadonlyMap<string, string>
  /** Number of input tokens above which the rule applies; 0 for all calls. */
  readonly above: number
}

type Quote = (fields: BillingFields, surcharges: readonly string[]) => Rate | undefined

const NO_SURCHARGES: readonly string[] = []

function quoteOf(model: string, rulesByMeter: readonly (readonly PriceRule[])[]): Quote {
  const values = new Map<string, Set<string>>()
  for (const rule of rulesByMeter.flat()) {
    for (const [name, value] of rule.conditions) getOrAdd(values, name, () => new Set<string>()).add(value)
  }
  values.get(THINKING_FIELD)?.add(THINKING_OFF)
  values.get(TIER_FIELD)?.add(ORDINARY_TIER)
  const rates = new Map<string, Rate | undefined>()
  const named = [...values]
  const isCovered = (fields: BillingFields, surcharges: readonly string[]): boolean => {
    for (const name of surcharges) {
      const value = fields[name]
      if (value === undefined || (name === TIER_FIELD && value === ORDINARY_TIER)) continue
      if (values.get(name)?.has(value) !== true) return false
    }
    return true
  }
  if (named.length === 0) {
    const rate = rateOf(model, rulesByMeter, {})
    return (fields, surcharges) => (isCovered(fields, surcharges) ? rate : undefined)
  }
  return (fields, surcharges) => {
    if (!isCovered(fields, surcharges)) return undefined
    // The key contains only values that the list names, so callers cannot create an unlimited number of keys.
    let key = ''
    for (const [name, known] of named) {
      const value = Object.hasOwn(fields, name) ? fields[name] : undefined
      key += value !== undefined && known.has(value) ? `${value}\0` : '\0'
    }
    const kept = rates.get(key)
    if (kept !== undefined || rates.has(key)) return kept
    const rate = rateOf(model, rulesByMeter, fields, values.get(TIER_FIELD))
    if (rates.size < MAX_RATES_KEPT) rates.set(key, rate)
    return rate
  }
}

function rateOf(
  model: string,
  rulesByMeter: readonly (readonly PriceRule[])[],
  fields: BillingFields,
  serviceTiers: ReadonlySet<string> = NO_TIERS,
): Rate | undefined {
  const prices = pricesFor(rulesByMeter, fields)
  if (prices === undefined) return undefined
  const ofTiers = [...serviceTiers].flatMap((serviceTier) =>
    (pricesFor(rulesByMeter, { ...fields, [TIER_FIELD]: serviceTier }) ?? []).map((price) => ({
      ...price,
      serviceTier,
    })),
  )
  const isTierAsked = ofTiers.length > 0 && fields[TIER_FIELD] !== undefined
  return {
    ...createRate(model, [...prices, ...ofTiers]),
    ...(isTierAsked ? { isTierAsked } : {}),
    ...(fields[THINKING_FIELD] === THINKING_OFF ? { isThinkingOff: true } : {}),
  }
}

const NO_TIERS: ReadonlySet<string> = new Set()

/** Returns the prices that apply to a call, or `undefined` if a meter has prices but none applies. */
function pricesFor(
  rulesByMeter: readonly (readonly PriceRule[])[],
  fields: BillingFields,
): readonly MeterPrice[] | undefined {
  const prices: MeterPrice[] = []
  for (const rules of rulesByMeter) {
    const held = rules.filter((rule) => holds(rule, fields))
    // A call that cannot search needs no search price.
    if (held.length === 0) {
      if (rules[0]?.meter !== 'web_search' || fields['web_search'] === 'true') return undefined
      continue
    }
    prices.push(...pricesByTier(held))
    if (fields[THINKING_FIELD] === THINKING_ON || !rules.some(({ conditions }) => conditions.has(THINKING_FIELD)))
      continue
    const inThinking = rules.filter((rule) => holds(rule, { ...fields, [THINKING_FIELD]: THINKING_ON }))
    prices.push(...pricesByTier(inThinking).map((price): MeterPrice => ({ ...price, thinking: true })))
  }
  return prices
}

function pricesByTier(held: readonly PriceRule[]): readonly MeterPrice[] {
  const prices: MeterPrice[] = []
  let last: PriceRule | undefined
  for (const above of new Set([0, ...held.map((rule) => rule.above).sort((left, right) => left - right)])) {
    const rule = mostSpecificRule(held, above)
    if (rule === undefined || rule === last) continue
    last = rule
    prices.push(above === 0 ? rule.price : { ...rule.price, inputTokensAbove: above })
  }
  return prices
}

/**
 * Converts a row to a rule.
 * @throws TypeError for a search price in calls that cannot search, and for a mode other than thinking.
 */
function priceRule(row: PriceRow, index: number): PriceRule {
  const { meter, amount, per = 1, minimum } = row
  const price: MeterPrice = minimum === undefined ? { meter, amount, per } : { meter, amount, per, minimum }
  const { inputTokensAbove: above = 0, ...named } = row.when ?? {}
  const conditions = new Map(Object.entries(named).map(([name, value]) => [name, String(value)]))
  if ((conditions.get(THINKING_FIELD) ?? THINKING_ON) !== THINKING_ON)
    throw new TypeError(`prices[${index}]: thinking can only be "on"; a row without it applies to all other calls`)
  // Search charges apply only to calls that may search, so the row requires such a call.
  if (row.meter === 'web_search') {
    if ((conditions.get('web_search') ?? 'true') !== 'true')
      throw new TypeError(`prices[${index}]: a search price can apply only when web_search is "true"`)
    conditions.set('web_search', 'true')
  }
  return { index, model: row.model, meter: row.meter, price, conditions, above }
}

/** Returns the rule with the most conditions among those that apply above this number of input tokens. The highest tier wins a tie. */
function mostSpecificRule(rules: readonly PriceRule[], above: number): PriceRule | undefined {
  let best: PriceRule | undefined
  for (const rule of rules) {
    if (rule.above > above) continue
    if (best === undefined || conditionCount(rule) > conditionCount(best)) best = rule
    else if (conditionCount(rule) === conditionCount(best) && rule.above > best.above) best = rule
  }
  return best
}

function conditionCount({ conditions, above }: Pick<PriceRule, 'conditions' | 'above'>): number {
  return conditions.size + (above > 0 ? 1 : 0)
}

function holds(rule: PriceRule, fields: BillingFields): boolean {
  for (const [name, value] of rule.conditions) {
    if (!Object.hasOwn(fields, name) || fields[name] !== value) return false
  }
  return true
}

/**
 * Rejects ambiguous rules of one model and meter.
 * @throws TypeError with both rows.
 */
function checkRules(model: string, rules: readonly PriceRule[]): void {
  rules.forEach((rule, position) => {
    for (const earlier of rules.slice(0, position)) {
      const both = unionOf(rule, earlier)
      if (both === undefined) continue
      const [isRule, isEarlier] = [isSame(rule, both), isSame(earlier, both)]
      if (isRule && isEarlier) throw rulesError(model, rule, earlier, 'repeats')
      const isUndecided = !isRule && !isEarlier && conditionCount(rule) === conditionCount(earlier)
      if (isUndecided && !rules.some((other) => isSame(other, both)))
        throw rulesError(model, rule, earlier, 'can apply at the same time as, and is not more specific than,')
    }
  })
}

function rulesError(model: string, rule: PriceRule, earlier: PriceRule, relation: string): TypeError {
  return new TypeError(
    `prices[${rule.index}]: the ${rule.meter} price of ${JSON.stringify(model)} ${relation} prices[${earlier.index}]`,
  )
}

type Conditions = Pick<PriceRule, 'conditions' | 'above'>

/** Returns all conditions of both; undefined if no request can meet both. */
function unionOf(left: Conditions, right: Conditions): Conditions | undefined {
  const conditions = new Map(left.conditions)
  for (const [name, value] of right.conditions) {
    if (conditions.has(name) && conditions.get(name) !== value) return undefined
    conditions.set(name, value)
  }
  return { conditions, above: Math.max(left.above, right.above) }
}

/** Whether a rule has exactly these conditions, which include all of its own. */
function isSame(rule: Conditions, { conditions, above }: Conditions): boolean {
  if (rule.above !== above || rule.conditions.size !== conditions.size) return false
  return [...rule.conditions].every(([name, value]) => conditions.get(name) === value)
}

function getOrAdd<Key, Value>(map: Map<Key, Value>, key: Key, create: () => Value): Value {
  const found = map.get(key)
  if (found !== undefined) return found
  const created = create()
  map.set(key, created)
  return created
}
