import { type Catalog, createCatalog } from '../catalog.ts'
import type { CatalogModel } from '../model.ts'
import { BUILT_IN_MODELS, LITELLM_PROVIDERS } from '../models/built-in-models.ts'
import type { PriceConditions } from './price-file.ts'
import {
  dollarsOf,
  type EntryPrice,
  type ImportedPrices,
  isObject,
  NO_METER,
  objectOf,
  type PriceEntry,
  PriceImport,
  type UnusedField,
} from './price-import.ts'
import type { Meter } from './rate.ts'

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
