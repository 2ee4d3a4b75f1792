import { exactDecimal, formatDecimal } from '../../core/money.ts'
import { type Catalog, createCatalog } from '../catalog.ts'
import type { CatalogModel } from '../model.ts'
import { BUILT_IN_MODELS, LITELLM_PROVIDERS, PRICED_BY_THINKING_MODE } from '../models/built-in-models.ts'
import type { PriceConditions, PriceFile, PriceRow } from './price-file.ts'
import { THINKING_FIELD, THINKING_ON } from './prices.ts'
import type { Meter } from './rate.ts'

/** Entry of a foreign price list without a usable price. */
export interface SkippedEntry {
  /** Name of the entry in that list. */
  readonly key: string
  /** Reason as readable text. */
  readonly reason: string
}

/** Price of a known model that a price file cannot express, or that was not used for another reason. */
export interface ReportedPrice {
  /** Public id of the model. */
  readonly model: string
  /** Name of the entry in the foreign list. */
  readonly key: string
  /** Field of the entry, as written there. */
  readonly field: string
  /** Reason as readable text. */
  readonly reason: string
}

/** Result of the import of a foreign price list. Check `reported` before you charge by `file`. */
export interface ImportedPrices {
  /** Price file for the option `prices` of `createGateway`. */
  readonly file: PriceFile
  /** Skipped entries: models that the catalog does not have, other providers' offers, entries without a usable price. */
  readonly skipped: readonly SkippedEntry[]
  /** Skipped prices of models that are, or could be, in `file`. */
  readonly reported: readonly ReportedPrice[]
}

/** Price of an entry before it is assigned to a model. */
export interface EntryPrice {
  readonly field: string
  readonly meter: Meter
  /** Amount in dollars. */
  readonly dollars: number
  readonly when?: PriceConditions | undefined
}

/** Field of an entry without a usable price, and the reason. */
export interface UnusedField {
  readonly field: string
  readonly reason: string
}

/** Reason for skipping a price of something that has no meter. */
export const NO_METER = 'there is no meter for it'

/** Entry of a foreign list for one model of the catalog. */
export interface PriceEntry {
  readonly key: string
  readonly prices: readonly EntryPrice[]
  readonly unused: readonly UnusedField[]
}

interface Candidate {
  readonly key: string
  readonly isExact: boolean
  readonly rows: readonly PriceRow[]
}

/** Power of ten of the units of token and character prices in price lists: millions. */
export const MILLION_DIGITS = 6

/** Collects the entries of a foreign price list by model. */
export class PriceImport {
  readonly #catalog: Catalog
  readonly #candidates = new Map<string, Candidate[]>()
  readonly #skipped: SkippedEntry[] = []
  readonly #reported: ReportedPrice[] = []
  /** Power of ten of the units of the list's token prices. */
  readonly #tokenDigits: number

  constructor(catalog: Catalog, tokenDigits: number) {
    this.#catalog = catalog
    this.#tokenDigits = tokenDigits
  }

  /** Returns the models that one of these vendors serves under this id. */
  models(vendors: readonly string[], id: string): CatalogModel[] {
    const names = (model: CatalogModel) => model.upstream === id || model.id === id || model.aliases.includes(id)
    return this.#catalog.list().filter((model) => vendors.includes(model.vendor) && names(model))
  }

  skip(key: string, reason: string): void {
    this.#skipped.push({ key, reason })
  }

  /**
   * Adds an entry for a model.
   * @param id Name of the model in the list, without provider. An entry under the vendor's own id of a model takes precedence
   *   over entries under its other names.
   * @throws TypeError with entry and field of a price that is not an amount of dollars.
   */
  add(model: CatalogModel, id: string, entry: PriceEntry): void {
    for (const { field, reason } of entry.unused) this.#report(model.id, entry.key, field, reason)
    const fault = faultOf(model, entry.prices)
    if (fault !== undefined) {
      this.skip(entry.key, fault)
      return
    }
    const prices = PRICED_BY_THINKING_MODE.has(model.vendor) ? byMode(entry.prices) : entry.prices
    const rows = prices.map((price) => this.#row(model.id, entry.key, price))
    const candidates = this.#candidates.get(model.id) ?? []
    candidates.push({ key: entry.key, isExact: model.upstream === id, rows })
    this.#candidates.set(model.id, candidates)
  }

  /** Returns the price file, with models in the catalog's order. */
  finish(comment: string): ImportedPrices {
    const prices = this.#catalog.list().flatMap(({ id }) => this.#chosen(id, this.#candidates.get(id) ?? []))
    return { file: { currency: 'USD', comment, prices }, skipped: this.#skipped, reported: this.#reported }
  }

  #chosen(model: string, candidates: readonly Candidate[]): readonly PriceRow[] {
    const exact = candidates.filter(({ isExact }) => isExact)
    const [first, ...others] = exact.length > 0 ? exact : candidates
    if (first === undefined) return []
    const rows = JSON.stringify(first.rows)
    const rival = others.find((other) => JSON.stringify(other.rows) !== rows)
    if (rival === undefined) return first.rows
    for (const { key } of [first, ...others]) {
      this.#report(model, key, '', `${first.key} and ${rival.key} differ, so neither was used`)
    }
    return []
  }

  #row(model: string, key: string, { field, meter, dollars, when }: EntryPrice): PriceRow {
    const isSmall = meter.endsWith('_token') || meter === 'character'
    const from = meter.endsWith('_token') ? this.#tokenDigits : 0
    try {
      const { amount, per } = decimalAmount(dollars, from, isSmall ? MILLION_DIGITS : 0)
      return { model, meter, amount, ...(per === 1 ? {} : { per }), ...(when === undefined ? {} : { when }) }
    } catch {
      throw priceError(key, field, dollars)
    }
  }

  #report(model: string, key: string, field: string, reason: string): void {
    this.#reported.push({ model, key, field, reason })
  }
}

/** Converts prices of a vendor that prices all output by mode, which lists write as a price of reasoning tokens. */
function byMode(prices: readonly EntryPrice[]): EntryPrice[] {
  const thinks = prices.some(({ meter }) => meter === 'reasoning_token')
  return prices.flatMap((price) => {
    const { meter, when } = price
    const inThinking: EntryPrice = { ...price, meter: 'output_token', when: { ...when, [THINKING_FIELD]: THINKING_ON } }
    if (meter === 'reasoning_token') return [inThinking]
    const isListed = (other: EntryPrice): boolean =>
      other.meter === 'reasoning_token' && other.when?.inputTokensAbove === when?.inputTokensAbove
    // A tier with one price of output uses it for both modes.
    return meter === 'output_token' && thinks && !prices.some(isListed) ? [price, inThinking] : [price]
  })
}

/** Returns the reason why these prices are unusable, or undefined if they are usable. */
function faultOf(model: CatalogModel, prices: readonly EntryPrice[]): string | undefined {
  if (prices.length === 0) return `no price that can be used for ${model.id}`
  // Lists also write 0 for an unknown price.
  if (prices.every(({ dollars }) => dollars === 0))
    return `every price is 0; if ${model.id} is free, add a price of 0 yourself`
  const has = (meter: Meter) => prices.some((price) => price.meter === meter)
  if (!model.kinds.includes('chat') || has('request') || (has('input_token') && has('output_token'))) return undefined
  return `${model.id} needs a price of input and of output`
}

/**
 * Reads an amount of dollars; undefined if the field is absent or null.
 * @throws TypeError with entry and field.
 */
export function dollarsOf(key: string, entry: Readonly<Record<string, unknown>>, field: string): number | undefined {
  const value = entry[field]
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) throw priceError(key, field, value)
  return value
}

/**
 * Reads a JSON object.
 * @throws TypeError with the name if it is not an object.
 */
export function objectOf(name: string, value: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(value)) throw new TypeError(`${name}: must be an object`)
  return value
}

/** Whether a value is a JSON object, and neither list nor null. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the error for a price that is not an amount of dollars, with entry and field. */
function priceError(key: string, field: string, value: unknown): TypeError {
  return new TypeError(`${JSON.stringify(key)}.${field}: ${JSON.stringify(value)} is not a price in dollars`)
}

/** Price in the format of a price row. */
export interface DecimalAmount {
  /** Dollars for `per` units, as a decimal string. */
  readonly amount: string
  /** A power of ten. */
  readonly per: number
}

/** Bounds of a price row's `amount` and `per`. */
const MOST_FRACTION_DIGITS = 18
const MOST_WHOLE_DIGITS = 15
const LARGEST_PER_DIGITS = 12

/**
 * Converts a price that JSON holds as a number, such as `3e-06` dollars per token, to dollars per `10^perDigits` units: `{
 * amount: '3', per: 1000000 }`. The shortest decimal of the number counts, which the file's author wrote, and it is only shifted:
 * nothing is rounded. `per` grows if the digits would not fit otherwise.
 *
 * @param fromDigits Power of ten of the units that `dollars` is for: 0 for one, 6 for a million.
 * @param perDigits Requested power of ten for `per`; not below `fromDigits`.
 * @throws RangeError for negative or infinite numbers, and for numbers that do not fit into a price row.
 */
export function decimalAmount(dollars: number, fromDigits: number, perDigits: number): DecimalAmount {
  const { numerator, denominator } = exactDecimal(dollars)
  const scale = denominator.toString().length - 1
  for (let digits = perDigits; digits <= LARGEST_PER_DIGITS; digits++) {
    const amount = shiftedText(numerator, scale - (digits - fromDigits))
    if (amount !== undefined) return { amount, per: 10 ** digits }
  }
  throw new RangeError(`price out of range: ${dollars}`)
}

/** Returns `numerator / 10^scale` without trailing zeros, or undefined if it has too many digits. */
function shiftedText(numerator: bigint, scale: number): string | undefined {
  const text = formatDecimal({
    numerator: scale < 0 ? numerator * 10n ** BigInt(-scale) : numerator,
    denominator: 10n ** BigInt(Math.max(scale, 0)),
  })
  const [whole = '', fraction = ''] = text.split('.')
  return whole.length > MOST_WHOLE_DIGITS || fraction.length > MOST_FRACTION_DIGITS ? undefined : text
}

type Entry = Readonly<Record<string, unknown>>

/** Fields whose meaning does not depend on the rest of the entry. If an entry has two fields for one meter, the first one counts. */
const FIELDS: readonly (readonly [field: string, meter: Meter])[] = [
  ['input_cost_per_token', 'input_token'],
  ['output_cost_per_token', 'output_token'],
  ['cache_read_input_token_cost', 'cached_input_token'],
  ['input_cost_per_token_cache_hit', 'cached_input_token'],
  ['cache_creation_input_token_cost', 'cache_write_token'],
  ['cache_creation_input_token_cost_above_1hr', 'cache_write_1h_token'],
  ['output_cost_per_reasoning_token', 'reasoning_token'],
  ['input_cost_per_image_token', 'input_image_token'],
  ['input_cost_per_audio_token', 'input_audio_token'],
  ['output_cost_per_image_token', 'output_image_token'],
  ['output_cost_per_image', 'image'],
  ['input_cost_per_character', 'character'],
  ['input_cost_per_request', 'request'],
  ['output_cost_per_video_per_second', 'video_second'],
]

/** Price of all tokens of a call whose prompt is longer. */
const ABOVE_TOKENS = /^(.+)_above_(\d+)k_tokens$/

const SECONDS_BY_RESOLUTION = /^output_cost_per_second_(\d{3,4}p|\dk)$/

/**
 * Reads LiteLLM's `model_prices_and_context_window.json`: an object of entries by model, with `input_cost_per_token` and similar
 * fields in dollars per unit. An entry applies to a model of the catalog if its `litellm_provider` is the model's vendor,
 * possibly under another id (`azure` for `azure-openai`), and its name, without `provider/`, is the vendor's own id of the model,
 * its public id or an alias. The price of the same model at another provider is skipped.
 *
 * Amounts keep every digit. Prices of long prompts (`…_above_200k_tokens`, `tiered_pricing`) become rows with `inputTokensAbove`.
 * At vendors that price output by mode, `output_cost_per_reasoning_token` becomes a row with `thinking: 'on'`. Prices that a
 * price file cannot express are reported and not used: batch, flex and priority prices, audio output, web search (whose price
 * depends on its size there).
 *
 * @param json Parsed file.
 * @param catalog Catalog of the models to look for. Defaults to the built-in models.
 * @throws TypeError with the entry and the field of an invalid price.
 */
export function importLitellmPrices(json: unknown, catalog: Catalog = createCatalog(BUILT_IN_MODELS)): ImportedPrices {
  const collected = new PriceImport(catalog, 0)
  for (const [key, value] of Object.entries(objectOf('prices', json))) {
    if (!isObject(value)) {
      collected.skip(key, 'not an entry of a model')
      continue
    }
    const provider = String(value['litellm_provider'] ?? '')
    // `vertex_ai/…` for the provider `vertex_ai-language-models`.
    const prefix = [provider, provider.split('-')[0]].find((name) => key.startsWith(`${name}/`))
    const id = prefix === undefined ? key : key.slice(prefix.length + 1)
    const models = collected.models(vendorsOf(provider), id)
    if (models.length === 0) collected.skip(key, 'not a model of the catalog at its vendor')
    for (const model of models) collected.add(model, id, priceEntry(key, value, model))
  }
  return collected.finish('imported from a price list in the format of LiteLLM')
}

function vendorsOf(provider: string): string[] {
  const renamed = Object.entries(LITELLM_PROVIDERS).filter(([, ids]) => ids.includes(provider))
  return [provider, ...renamed.map(([vendor]) => vendor)]
}

function priceEntry(key: string, entry: Entry, model: CatalogModel): PriceEntry {
  const prices = new Map<string, EntryPrice>()
  const unused: UnusedField[] = []
  const add = (name: string, meter: Meter, when?: PriceConditions, tier?: PricedTier): void => {
    const field = tier === undefined ? name : `${tier.path}.${name}`
    const dollars = dollarsOf(key, tier?.fields ?? entry, name)
    const slot = `${meter} ${when === undefined ? '' : JSON.stringify(when)}`
    const taken = prices.get(slot)
    if (dollars === undefined || taken?.dollars === dollars) return
    if (taken === undefined) prices.set(slot, { field, meter, dollars, when })
    else unused.push({ field, reason: `${taken.field} has another value, which was used` })
  }

  for (const [field, meter] of FIELDS) add(field, meter)
  const special = new Set(FIELDS.map(([field]) => field))
  for (const field of Object.keys(entry)) {
    const [, base, thousands] = ABOVE_TOKENS.exec(field) ?? []
    const meter = FIELDS.find(([name]) => name === base)?.[1]
    if (meter === undefined) continue
    add(field, meter, { inputTokensAbove: Number(thousands) * 1000 })
    special.add(field)
  }
  for (const tier of tiersOf(entry)) {
    const { path, fields, above } = tier
    if (above === undefined) {
      unused.push({ field: path, reason: 'has a condition that cannot be expressed' })
      continue
    }
    const when = above === 0 ? undefined : { inputTokensAbove: above }
    for (const [field, meter] of FIELDS) add(field, meter, when, tier)
    for (const name of Object.keys(fields))
      if (isPriceField(name) && !special.has(name)) unused.push({ field: `${path}.${name}`, reason: reasonFor(name) })
  }
  special.add('tiered_pricing')
  if (model.kinds.includes('video')) {
    add('output_cost_per_second', 'video_second')
    special.add('output_cost_per_second')
    for (const field of Object.keys(entry)) {
      const resolution = SECONDS_BY_RESOLUTION.exec(field)?.[1]
      if (resolution === undefined) continue
      add(field, 'video_second', { resolution })
      special.add(field)
    }
  }
  if (
    makesPictures(model) &&
    !isGiven(entry, 'output_cost_per_image') &&
    !isGiven(entry, 'output_cost_per_image_token')
  ) {
    // The list prices a generated image by its request if the vendor sells images individually.
    add('input_cost_per_image', 'image')
    special.add('input_cost_per_image')
  }
  const addOtherwise = (field: string, meter: Meter): void => {
    // A 0 next to another price means that there is no price.
    if (dollarsOf(key, entry, field) !== 0) add(field, meter)
    special.add(field)
  }
  if (model.kinds.includes('rerank') && !prices.get('input_token ')?.dollars)
    addOtherwise('input_cost_per_query', 'search_unit')
  if (model.kinds.includes('transcription') && !model.kinds.includes('chat'))
    for (const field of ['input_cost_per_second', 'output_cost_per_second']) addOtherwise(field, 'audio_second')
  payPicturesOnce(prices, unused)
  for (const field of Object.keys(entry)) {
    if (!special.has(field) && isPriceField(field) && isGiven(entry, field)) {
      unused.push({ field, reason: reasonFor(field) })
    }
  }
  return { key, prices: [...prices.values()], unused }
}

/** The list often has both a price per image and a price of its tokens, although only one of them is due. */
function payPicturesOnce(prices: Map<string, EntryPrice>, unused: UnusedField[]): void {
  const picture = prices.get('image ')
  if (picture === undefined) return
  if (prices.has('output_image_token ')) {
    prices.delete('image ')
    unused.push({
      field: picture.field,
      reason: 'image tokens have a price, so the image would be charged twice',
    })
  } else if (prices.has('output_token ')) {
    prices.set('output_image_token ', { field: picture.field, meter: 'output_image_token', dollars: 0 })
  }
}

/** Entry of `tiered_pricing`: prices by the size of the prompt. */
interface PricedTier {
  readonly path: string
  readonly fields: Entry
  /** Number of input tokens above which it applies, from an entry of `range`; undefined if the entry has another form. */
  readonly above: number | undefined
}

function tiersOf({ tiered_pricing: tiers }: Entry): readonly PricedTier[] {
  return (Array.isArray(tiers) ? tiers : []).map((tier: unknown, index) => {
    const fields = isObject(tier) ? tier : {}
    const { range } = fields
    const above: unknown = Array.isArray(range) ? range[0] : undefined
    const isSize = Number.isSafeInteger(above) && (above as number) >= 0
    return { path: `tiered_pricing[${index}]`, fields, above: isSize ? (above as number) : undefined }
  })
}

function makesPictures(model: CatalogModel): boolean {
  return model.kinds.includes('image') || model.kinds.includes('image_edit')
}

function isGiven(entry: Entry, field: string): boolean {
  return entry[field] !== undefined && entry[field] !== null
}

function isPriceField(field: string): boolean {
  return /(?:^|_)(?:cost|price|prices|pricing)(?:_|$)/.test(field)
}

function reasonFor(field: string): string {
  if (/_(?:batches|flex|priority)$/.test(field)) return 'applies only to another service tier'
  if (field === 'search_context_cost_per_query') return 'prices by the size of a search cannot be expressed'
  return NO_METER
}
