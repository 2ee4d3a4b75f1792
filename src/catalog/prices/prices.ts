import { ORDINARY_TIER } from '../../core/usage.ts'
import { isPattern, starOf } from '../id-pattern.ts'
import { checkPriceFile, type PriceFile, type PriceRow } from './price-file.ts'
import { createRate, type Meter, type MeterPrice, type Rate } from './rate.ts'

export type { PriceConditions, PriceFile, PriceRow } from './price-file.ts'
export { charge, highestCharge, hookUnitRate, type Meter, type MeterPrice, type Rate } from './rate.ts'

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
  const { prices: rows } = checkPriceFile(file)
  const rules = rows.map(priceRule)
  const calls = quotesOf(rules.filter((rule) => !isOfHits(rule) && !isOfBatches(rule)))
  const batches = quotesOf(rules.filter((rule) => !isOfHits(rule) && isOfBatches(rule)))
  const hits = quotesOf(rules.filter(isOfHits))
  return {
    quote(model, billingFields, surcharges = NO_SURCHARGES) {
      if (billingFields[CACHE_FIELD] === CACHE_HIT) return hits(model, billingFields, surcharges)
      return (billingFields[BATCH_FIELD] === IN_BATCH ? batches : calls)(model, billingFields, surcharges)
    },
    rows: () => rows,
  }
}

/** The condition of prices for answers from the cache: `when: { cache: 'hit' }`. Such an answer is charged by these rows alone. */
export const CACHE_FIELD = 'cache'
export const CACHE_HIT = 'hit'

/** The condition of prices for requests of batches: `when: { batch: 'true' }`. They are charged by these rows alone. */
export const BATCH_FIELD = 'batch'
export const IN_BATCH = 'true'

/**
 * The condition of prices for calls in which the model thinks: `when: { thinking: 'on' }`. The vendor's report decides: it counts
 * reasoning tokens. A request that turns thinking on is charged by these prices anyway.
 */
export const THINKING_FIELD = 'thinking'
export const THINKING_ON = 'on'
export const THINKING_OFF = 'off'

/**
 * Price field of the tier of service. Requests name the ordinary tier explicitly as {@link ORDINARY_TIER}, which needs no row; a
 * request without the field may be served at any tier.
 */
export const TIER_FIELD = 'service_tier'

/** Is a row for calls of their own, and not for requests of batches or answers from the cache alone? */
export function isOfCalls({ when }: PriceRow): boolean {
  return String(when?.[BATCH_FIELD]) !== IN_BATCH && String(when?.[CACHE_FIELD]) !== CACHE_HIT
}

function isOfBatches({ conditions }: PriceRule): boolean {
  return conditions.get(BATCH_FIELD) === IN_BATCH
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
  readonly model: string
  readonly meter: Meter
  readonly price: MeterPrice
  /** Name and value of every condition on billing fields. */
  readonly conditions: ReadonlyMap<string, string>
  /** Input tokens above which it holds; 0: always. */
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
    // Only values that the list names stand in the key, so callers cannot make keys without end.
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
    // A call that cannot search needs no price of searches.
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
 * Reads a row as a rule.
 * @throws TypeError for a price of searches in calls that cannot search, and for another mode than thinking.
 */
function priceRule(row: PriceRow, index: number): PriceRule {
  const { meter, amount, per = 1, minimum } = row
  const price: MeterPrice = minimum === undefined ? { meter, amount, per } : { meter, amount, per, minimum }
  const { inputTokensAbove: above = 0, ...named } = row.when ?? {}
  const conditions = new Map(Object.entries(named).map(([name, value]) => [name, String(value)]))
  if ((conditions.get(THINKING_FIELD) ?? THINKING_ON) !== THINKING_ON)
    throw new TypeError(`prices[${index}]: thinking can only be "on"; a row without it holds for all other calls`)
  // Only a call that may search is charged for searches, and the row is a price for such a call.
  if (row.meter === 'web_search') {
    if ((conditions.get('web_search') ?? 'true') !== 'true')
      throw new TypeError(`prices[${index}]: a price of searches can hold only when web_search is "true"`)
    conditions.set('web_search', 'true')
  }
  return { index, model: row.model, meter: row.meter, price, conditions, above }
}

/** The rule with the most conditions among those that hold above so many input tokens, of equals that of the highest tier. */
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
 * Refuses rules of one model and meter among which a request could not decide.
 * @throws TypeError naming both rows.
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
        throw rulesError(model, rule, earlier, 'can hold at the same time as, and is no more specific than,')
    }
  })
}

function rulesError(model: string, rule: PriceRule, earlier: PriceRule, relation: string): TypeError {
  return new TypeError(
    `prices[${rule.index}]: the ${rule.meter} price of ${JSON.stringify(model)} ${relation} prices[${earlier.index}]`,
  )
}

type Conditions = Pick<PriceRule, 'conditions' | 'above'>

/** All conditions of both; undefined when no request can meet both. */
function unionOf(left: Conditions, right: Conditions): Conditions | undefined {
  const conditions = new Map(left.conditions)
  for (const [name, value] of right.conditions) {
    if (conditions.has(name) && conditions.get(name) !== value) return undefined
    conditions.set(name, value)
  }
  return { conditions, above: Math.max(left.above, right.above) }
}

/** Is a rule the one for these conditions, which hold all of its own? */
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
