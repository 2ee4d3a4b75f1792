import { type Catalog, createCatalog } from '../catalog.ts'
import type { CatalogModel } from '../model.ts'
import { BUILT_IN_MODELS, MODELS_DEV_PROVIDERS } from '../models/built-in-models.ts'
import {
  ABOVE_SIZE,
  dollarsOf,
  type EntryPrice,
  type ImportedPrices,
  MILLION_DIGITS,
  NO_METER,
  objectOf,
  type PriceEntry,
  PriceImport,
  type UnusedField,
} from './price-import.ts'
import type { Meter } from './rate.ts'

/** Members of `cost`, in dollars for a million tokens. */
const FIELDS: Readonly<Record<string, Meter>> = {
  input: 'input_token',
  output: 'output_token',
  cache_read: 'cached_input_token',
  cache_write: 'cache_write_token',
  reasoning: 'reasoning_token',
}

const TIER_FIELD = /^(?:tiers|context_over_.+)$/

/**
 * Reads the `api.json` of models.dev: providers by id, each with `models` by id, each with `cost` in dollars for a million
 * tokens. An entry counts for a model of the catalog when the provider is the model's vendor and the entry's id is the
 * vendor's own id of the model, its public id or an alias.
 *
 * Amounts keep every digit. Prices by context size (`context_over_200k`, `tiers`) and of audio are reported and not used.
 * Models of video and speech are left out, because they are not sold by the token.
 *
 * @param json the parsed file.
 * @param catalog the models to look for; by default the built-in ones.
 * @throws TypeError naming entry and field of a price that is none.
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
      const known = collected.models(vendors, id)
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

function isSoldByToken(model: CatalogModel): boolean {
  return !model.kinds.includes('video') && !model.kinds.includes('speech')
}

function priceEntry(key: string, row: Readonly<Record<string, unknown>>): PriceEntry {
  const prices: EntryPrice[] = []
  const unused: UnusedField[] = []
  const cost =
    row['cost'] === undefined || row['cost'] === null ? {} : objectOf(`${JSON.stringify(key)}.cost`, row['cost'])
  for (const field of Object.keys(cost)) {
    const meter = Object.hasOwn(FIELDS, field) ? FIELDS[field] : undefined
    if (meter === undefined) {
      unused.push({ field: `cost.${field}`, reason: TIER_FIELD.test(field) ? ABOVE_SIZE : NO_METER })
      continue
    }
    const dollars = dollarsOf(key, cost, field)
    if (dollars !== undefined) prices.push({ field: `cost.${field}`, meter, dollars })
  }
  return { key, prices, unused }
}
