import { isJsonObject } from '../../core/json.ts'
import { exactDecimal, formatDecimal } from '../../core/money.ts'
import { type Catalog, createCatalog } from '../catalog.ts'
import type { CatalogModel } from '../model.ts'
import {
  BUILT_IN_MODELS,
  LITELLM_PROVIDERS,
  MODELS_DEV_PROVIDERS,
  PRICED_BY_THINKING_MODE,
} from '../models/built-in-models.ts'
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
interface EntryPrice {
  readonly field: string
  readonly meter: Meter
  /** Amount in dollars. */
  readonly dollars: number
  readonly when?: PriceConditions | undefined
}

/** Reason for skipping a price of something that has no meter. */
const NO_METER = 'there is no meter for it'

/** Prices in an entry of a foreign list. If several fields have a price for one meter and condition, the first one counts. */
class EntryPrices {
  readonly key: string
  /** Prices by meter and condition, such as `input_token `. */
  readonly bySlot = new Map<string, EntryPrice>()
  /** Fields without a usable price. */
  readonly unused: { readonly field: string; readonly reason: string }[] = []

  constructor(key: string) {
    this.key = key
  }

  /** @throws TypeError with entry and field of a price that is not an amount of dollars. */
  add(fields: Entry, name: string, meter: Meter, when?: PriceConditions, path = ''): void {
    const field = `${path}${name}`
    const dollars = dollarsOf(this.key, fields, name)
    const slot = `${meter} ${when === undefined ? '' : JSON.stringify(when)}`
    const taken = this.bySlot.get(slot)
    if (dollars === undefined || taken?.dollars === dollars) return
    if (taken === undefined) this.bySlot.set(slot, { field, meter, dollars, when })
    else this.skip(field, `${taken.field} has another value, which was used`)
  }

  skip(field: string, reason: string): void {
    this.unused.push({ field, reason })
  }
}

interface Candidate {
  readonly key: string
  readonly isExact: boolean
  readonly rows: readonly PriceRow[]
}

/** Power of ten of the units of token and character prices in price lists: millions. */
const MILLION_DIGITS = 6

/** Collects the entries of a foreign price list by model. */
class PriceImport {
  readonly #catalog: Catalog
  /** Providers of the list whose ids differ from those of their vendors: vendor id → provider ids. */
  readonly #providers: Readonly<Record<string, readonly string[]>>
  readonly #candidates = new Map<string, Candidate[]>()
  readonly #skipped: SkippedEntry[] = []
  readonly #reported: ReportedPrice[] = []
  /** Power of ten of the units of the list's token prices. */
  readonly #tokenDigits: number

  constructor(catalog: Catalog, providers: Readonly<Record<string, readonly string[]>>, tokenDigits: number) {
    this.#catalog = catalog
    this.#providers = providers
    this.#tokenDigits = tokenDigits
  }

  skip(key: string, reason: string): void {
    this.#skipped.push({ key, reason })
  }

  /**
   * Adds the prices of an entry to each model that the vendors of its provider serve under its name.
   * @param entry Key of the entry, and the id in it. An entry under the vendor's own id of a model takes precedence over entries under
   *   its other names.
   * @param read Returns the prices for a model, or the reason for skipping them.
   * @throws TypeError with entry and field of a price that is not an amount of dollars.
   */
  addEntry(
    entry: { readonly key: string; readonly provider: string; readonly id: string; readonly name?: string },
    read: (model: CatalogModel) => EntryPrices | string,
  ): void {
    const { key, provider, id, name = id } = entry
    const models = this.#catalog
      .list()
      .filter(({ vendor }) => vendor === provider || this.#providers[vendor]?.includes(provider) === true)
      .filter((model) => model.upstream === name || model.id === name || model.aliases.includes(name))
    if (models.length === 0) this.skip(key, 'not a model of the catalog at its vendor')
    for (const model of models) {
      const found = read(model)
      if (typeof found === 'string') this.skip(key, found)
      else this.#add(model, id, found)
    }
  }

  #add(model: CatalogModel, id: string, { key, bySlot, unused }: EntryPrices): void {
    const found = [...bySlot.values()]
    for (const { field, reason } of unused) this.#report(model.id, key, field, reason)
    const fault = faultOf(model, found)
    if (fault !== undefined) {
      this.skip(key, fault)
      return
    }
    const prices = PRICED_BY_THINKING_MODE.has(model.vendor) ? byMode(found) : found
    const rows = prices.map((price) => this.#row(model.id, key, price))
    const candidates = this.#candidates.get(model.id) ?? []
    candidates.push({ key, isExact: model.upstream === id, rows })
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
function dollarsOf(key: string, entry: Readonly<Record<string, unknown>>, field: string): number | undefined {
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
  if (!isJsonObject(value)) throw new TypeError(`${name}: must be an object`)
  return value
}

/** Returns the error for a price that is not an amount of dollars, with entry and field. */
function priceError(key: string, field: string, value: unknown): TypeError {
  return new TypeError(`${JSON.stringify(key)}.${field}: ${JSON.stringify(value)} is not a price in dollars`)
}

/** Price in the format of a price row. */
interface DecimalAmount {
  /** Dollars for `per` units, as a decimal string. */
  readonly amount: string
  /** A power of ten. */
  readonly per: number
}

/** Bounds of a price row's `amount` and `per`. */
const MAX_FRACTION_DIGITS = 18
const MAX_WHOLE_DIGITS = 15
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
  return whole.length > MAX_WHOLE_DIGITS || fraction.length > MAX_FRACTION_DIGITS ? undefined : text
}

type Entry = Readonly<Record<string, unknown>>

/** Fields whose meaning does not depend on the rest of the entry. If an entry has two fields for one meter, the first one counts. */
const LITELLM_FIELDS: readonly (readonly [field: string, meter: Meter])[] = [
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
const LITELLM_ABOVE_TOKENS = /^(.+)_above_(\d+)k_tokens$/

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
  const collected = new PriceImport(catalog, LITELLM_PROVIDERS, 0)
  for (const [key, value] of Object.entries(objectOf('prices', json))) {
    if (!isJsonObject(value)) {
      collected.skip(key, 'not an entry of a model')
      continue
    }
    const provider = String(value['litellm_provider'] ?? '')
    // `vertex_ai/…` for the provider `vertex_ai-language-models`.
    const prefix = [provider, provider.split('-')[0]].find((name) => key.startsWith(`${name}/`))
    const id = prefix === undefined ? key : key.slice(prefix.length + 1)
    collected.addEntry({ key, provider, id }, (model) => litellmPrices(key, value, model))
  }
  return collected.finish('imported from a price list in the format of LiteLLM')
}

function litellmPrices(key: string, entry: Entry, model: CatalogModel): EntryPrices {
  const prices = new EntryPrices(key)
  for (const [field, meter] of LITELLM_FIELDS) prices.add(entry, field, meter)
  const special = new Set(LITELLM_FIELDS.map(([field]) => field))
  const addSpecial = (field: string, meter: Meter, when?: PriceConditions): void => {
    prices.add(entry, field, meter, when)
    special.add(field)
  }
  for (const field of Object.keys(entry)) {
    const [, base, thousands] = LITELLM_ABOVE_TOKENS.exec(field) ?? []
    const meter = LITELLM_FIELDS.find(([name]) => name === base)?.[1]
    if (meter !== undefined) addSpecial(field, meter, { inputTokensAbove: Number(thousands) * 1000 })
  }
  for (const { path, fields, above } of tiersOf(entry)) {
    if (above === undefined) {
      prices.skip(path, UNKNOWN_CONDITION)
      continue
    }
    const when = above === 0 ? undefined : { inputTokensAbove: above }
    for (const [field, meter] of LITELLM_FIELDS) prices.add(fields, field, meter, when, `${path}.`)
    for (const name of Object.keys(fields))
      if (isPriceField(name) && !special.has(name)) prices.skip(`${path}.${name}`, reasonFor(name))
  }
  special.add('tiered_pricing')
  if (model.kinds.includes('video')) {
    addSpecial('output_cost_per_second', 'video_second')
    for (const field of Object.keys(entry)) {
      const resolution = SECONDS_BY_RESOLUTION.exec(field)?.[1]
      if (resolution !== undefined) addSpecial(field, 'video_second', { resolution })
    }
  }
  // The list prices a generated image by its request if the vendor sells images individually.
  if (
    makesPictures(model) &&
    !isGiven(entry, 'output_cost_per_image') &&
    !isGiven(entry, 'output_cost_per_image_token')
  )
    addSpecial('input_cost_per_image', 'image')
  const addOtherwise = (field: string, meter: Meter): void => {
    // A 0 next to another price means that there is no price.
    if (dollarsOf(key, entry, field) === 0) special.add(field)
    else addSpecial(field, meter)
  }
  if (model.kinds.includes('rerank') && !prices.bySlot.get('input_token ')?.dollars)
    addOtherwise('input_cost_per_query', 'search_unit')
  if (model.kinds.includes('transcription') && !model.kinds.includes('chat'))
    for (const field of ['input_cost_per_second', 'output_cost_per_second']) addOtherwise(field, 'audio_second')
  payPicturesOnce(prices)
  for (const field of Object.keys(entry))
    if (!special.has(field) && isPriceField(field) && isGiven(entry, field)) prices.skip(field, reasonFor(field))
  return prices
}

/** The list often has both a price per image and a price of its tokens, although only one of them is due. */
function payPicturesOnce({ bySlot, unused }: EntryPrices): void {
  const picture = bySlot.get('image ')
  if (picture === undefined) return
  const { field } = picture
  if (bySlot.has('output_image_token ')) {
    bySlot.delete('image ')
    unused.push({ field, reason: 'image tokens have a price, so the image would be charged twice' })
  } else if (bySlot.has('output_token ')) {
    bySlot.set('output_image_token ', { field, meter: 'output_image_token', dollars: 0 })
  }
}

const UNKNOWN_CONDITION = 'has a condition that cannot be expressed'

/** Entry of `tiered_pricing`: prices by the size of the prompt. */
interface PricedTier {
  readonly path: string
  readonly fields: Entry
  /** Number of input tokens above which it applies, from an entry of `range`; undefined if the entry has another form. */
  readonly above: number | undefined
}

function tiersOf({ tiered_pricing: tiers }: Entry): readonly PricedTier[] {
  return (Array.isArray(tiers) ? tiers : []).map((tier: unknown, index) => {
    const fields = isJsonObject(tier) ? tier : {}
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

/** Members of `cost`, in dollars per million tokens. */
const MODELS_DEV_FIELDS: Readonly<Record<string, Meter>> = {
  input: 'input_token',
  output: 'output_token',
  cache_read: 'cached_input_token',
  cache_write: 'cache_write_token',
  reasoning: 'reasoning_token',
  input_audio: 'input_audio_token',
}

/** Prices of all tokens of a call whose prompt is longer. */
const MODELS_DEV_ABOVE_TOKENS = /^context_over_(\d+)k$/

/**
 * Reads the `api.json` of models.dev: providers by id, each with `models` by id, each with `cost` in dollars per million tokens.
 * An entry applies to a model of the catalog if the provider is the model's vendor and the entry's id is the vendor's own id of
 * the model, its public id or an alias.
 *
 * Amounts keep every digit. Prices of long prompts (`tiers`, `context_over_200k`) become rows with `inputTokensAbove`. If the two
 * differ, the one in `tiers` counts and the other is reported. Prices of audio output are reported, too. At vendors that price
 * output by mode, `reasoning` becomes a row with `thinking: 'on'`. Models of video, speech and transcription are skipped, because
 * the list does not price them by token.
 *
 * @param json Parsed file.
 * @param catalog Catalog of the models to look for. Defaults to the built-in models.
 * @throws TypeError with the entry and the field of an invalid price.
 */
export function importModelsDevPrices(
  json: unknown,
  catalog: Catalog = createCatalog(BUILT_IN_MODELS),
): ImportedPrices {
  const collected = new PriceImport(catalog, MODELS_DEV_PROVIDERS, MILLION_DIGITS)
  for (const [provider, value] of Object.entries(objectOf('prices', json))) {
    const models = objectOf(`${JSON.stringify(provider)}.models`, objectOf(JSON.stringify(provider), value)['models'])
    for (const [id, row] of Object.entries(models)) {
      const key = `${provider}/${id}`
      collected.addEntry({ key, provider, id, name: withoutDefault(id) }, (model) =>
        isSoldByToken(model)
          ? modelsDevPrices(key, objectOf(JSON.stringify(key), row))
          : `${model.id} is not sold by the token`,
      )
    }
  }
  return collected.finish('imported from a price list in the format of models.dev')
}

/** Returns the id as its vendor documents it. `@default` names the version that an id without a version also means. */
export function withoutDefault(id: string): string {
  return id.replace(/@default$/, '')
}

const KINDS_NOT_PRICED_BY_TOKEN = ['video', 'speech', 'transcription']

function isSoldByToken(model: CatalogModel): boolean {
  return model.kinds.includes('chat') || !KINDS_NOT_PRICED_BY_TOKEN.some((kind) => model.kinds.includes(kind))
}

function modelsDevPrices(key: string, row: Entry): EntryPrices {
  const prices = new EntryPrices(key)
  const cost = objectOf(`${JSON.stringify(key)}.cost`, row['cost'] ?? {})
  const add = (path: string, fields: Entry, when?: PriceConditions): void => {
    for (const name of Object.keys(fields)) {
      if (name === 'tier' || name === 'tiers' || MODELS_DEV_ABOVE_TOKENS.test(name)) continue
      const meter = Object.hasOwn(MODELS_DEV_FIELDS, name) ? MODELS_DEV_FIELDS[name] : undefined
      if (meter === undefined) prices.skip(`${path}.${name}`, NO_METER)
      else prices.add(fields, name, meter, when, `${path}.`)
    }
  }
  add('cost', cost)
  const { tiers } = cost
  for (const [index, tier] of (Array.isArray(tiers) ? tiers : []).entries()) {
    const path = `cost.tiers[${index}]`
    const fields = objectOf(`${JSON.stringify(key)}.${path}`, tier)
    const { type, size } = isJsonObject(fields['tier']) ? fields['tier'] : {}
    if (type === 'context' && Number.isSafeInteger(size)) add(path, fields, { inputTokensAbove: size as number })
    else prices.skip(path, UNKNOWN_CONDITION)
  }
  for (const name of Object.keys(cost)) {
    const thousands = MODELS_DEV_ABOVE_TOKENS.exec(name)?.[1]
    if (thousands === undefined || cost[name] === null) continue
    const fields = objectOf(`${JSON.stringify(key)}.cost.${name}`, cost[name])
    add(`cost.${name}`, fields, { inputTokensAbove: Number(thousands) * 1000 })
  }
  return prices
}
