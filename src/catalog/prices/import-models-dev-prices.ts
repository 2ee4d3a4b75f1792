import { type Catalog, createCatalog } from '../catalog.ts'
import type { CatalogModel } from '../model.ts'
import { BUILT_IN_MODELS, MODELS_DEV_PROVIDERS } from '../models/built-in-models.ts'
import { withoutDefault } from '../vendor-models/from-models-dev.ts'
import type { PriceConditions } from './price-file.ts'
import {
  dollarsOf,
  type EntryPrice,
  type ImportedPrices,
  isObject,
  MILLION_DIGITS,
  NO_METER,
  objectOf,
  type PriceEntry,
  PriceImport,
  type UnusedField,
} from './price-import.ts'
import type { Meter } from './rate.ts'

/** Members of `cost`, in dollars per million tokens. */
const FIELDS: Readonly<Record<string, Meter>> = {
  input: 'input_token',
  output: 'output_token',
  cache_read: 'cached_input_token',
  cache_write: 'cache_write_token',
  reasoning: 'reasoning_token',
  input_audio: 'input_audio_token',
}

/** Prices of all tokens of a call whose prompt is longer. */
const ABOVE_TOKENS = /^context_over_(\d+)k$/

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
  const collected = new PriceImport(catalog, MILLION_DIGITS)
  for (const [provider, value] of Object.entries(objectOf('prices', json))) {
    const vendors = vendorsOf(provider)
    const models = objectOf(`${JSON.stringify(provider)}.models`, objectOf(JSON.stringify(provider), value)['models'])
    for (const [id, row] of Object.entries(models)) {
      const key = `${provider}/${id}`
      const known = collected.models(vendors, withoutDefault(id))
      if (known.length === 0) collected.skip(key, 'not a model of the catalog at its vendor')
      for (const model of known) {
        if (isSoldByToken(model)) collected.add(model, id, priceEntry(key, objectOf(JSON.stringify(key), row)))
        else collected.skip(key, `${model.id} is not sold by the token`)
      }
    }
  }
  return collected.finish('imported from a price list in the format of models.dev')
}

function vendorsOf(provider: string): string[] {
  const renamed = Object.entries(MODELS_DEV_PROVIDERS).flatMap(([vendor, ids]) =>
    ids.includes(provider) ? [vendor] : [],
  )
  return [provider, ...renamed]
}

const OTHERWISE_SOLD = ['video', 'speech', 'transcription']

function isSoldByToken(model: CatalogModel): boolean {
  return model.kinds.includes('chat') || !OTHERWISE_SOLD.some((kind) => model.kinds.includes(kind))
}

function priceEntry(key: string, row: Readonly<Record<string, unknown>>): PriceEntry {
  const prices: EntryPrice[] = []
  const unused: UnusedField[] = []
  const cost =
    row['cost'] === undefined || row['cost'] === null ? {} : objectOf(`${JSON.stringify(key)}.cost`, row['cost'])
  const add = (field: string, fields: Readonly<Record<string, unknown>>, when?: PriceConditions): void => {
    for (const name of Object.keys(fields)) {
      if (name === 'tier' || name === 'tiers' || ABOVE_TOKENS.test(name)) continue
      const meter = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined
      const path = `${field}.${name}`
      if (meter === undefined) {
        unused.push({ field: path, reason: NO_METER })
        continue
      }
      const dollars = dollarsOf(key, fields, name)
      if (dollars === undefined) continue
      const taken = prices.find((one) => one.meter === meter && one.when?.inputTokensAbove === when?.inputTokensAbove)
      if (taken === undefined) prices.push({ field: path, meter, dollars, when })
      else if (taken.dollars !== dollars)
        unused.push({ field: path, reason: `${taken.field} has another value, which was used` })
    }
  }
  add('cost', cost)
  const { tiers } = cost
  for (const [index, tier] of (Array.isArray(tiers) ? tiers : []).entries()) {
    const field = `cost.tiers[${index}]`
    const tierPrices = objectOf(`${JSON.stringify(key)}.${field}`, tier)
    const size: unknown = isObject(tierPrices['tier']) ? tierPrices['tier']['size'] : undefined
    const isOfPrompt = isObject(tierPrices['tier']) && tierPrices['tier']['type'] === 'context'
    if (isOfPrompt && Number.isSafeInteger(size)) add(field, tierPrices, { inputTokensAbove: size as number })
    else unused.push({ field, reason: 'has a condition that cannot be expressed' })
  }
  for (const name of Object.keys(cost)) {
    const thousands = ABOVE_TOKENS.exec(name)?.[1]
    if (thousands === undefined || cost[name] === null) continue
    const field = `cost.${name}`
    const above = objectOf(`${JSON.stringify(key)}.${field}`, cost[name])
    add(field, above, { inputTokensAbove: Number(thousands) * 1000 })
  }
  return { key, prices, unused }
}
