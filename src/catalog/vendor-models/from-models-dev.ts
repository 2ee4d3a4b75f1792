import { isJsonObject } from '../../core/json.ts'
import { kindFacts, MODEL_KINDS } from '../../core/model-kind.ts'
import { PRICED_BY_THINKING_MODE } from '../models/built-in-models.ts'
import { objectOf, withoutDefault } from '../prices/price-import.ts'
import {
  ABILITIES,
  dateSeconds,
  type ListPrice,
  type ListPriceTier,
  MODALITIES,
  type Modality,
  type VendorModel,
} from './vendor-model.ts'

type CostFields = Readonly<Record<string, keyof ListPrice>>

/** Members of `cost` at models.dev, in dollars per million tokens. */
const COST_FIELDS: CostFields = {
  input: 'input',
  output: 'output',
  cache_read: 'cachedInput',
  cache_write: 'cacheWrite',
  reasoning: 'reasoning',
  input_audio: 'inputAudio',
}

/** Members of `cost` at vendors that price output by thinking mode. */
const MODE_COST_FIELDS: CostFields = { ...COST_FIELDS, reasoning: 'thinkingOutput' }

/**
 * Reads one provider of the `api.json` of models.dev and returns its models in the order of their ids. Skips models whose output
 * no endpoint serves, such as video. An amount of 0 next to other amounts counts. A model with only zeros has no price, because
 * such lists also write 0 for an unknown price.
 * @throws TypeError with the entry that does not have this format.
 */
export function modelsFromModelsDev(provider: string, json: unknown): VendorModel[] {
  const entries = objectOf(`${provider}.models`, objectOf(provider, json)['models'])
  return Object.entries(entries)
    .map(([id, entry]) => [withoutDefault(id), entry] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([id, entry]) => {
      const fields = PRICED_BY_THINKING_MODE.has(provider) ? MODE_COST_FIELDS : COST_FIELDS
      const model = modelOf(id, objectOf(`${provider}/${id}`, entry), fields)
      return model === undefined ? [] : [model]
    })
}

function modelOf(id: string, entry: Readonly<Record<string, unknown>>, fields: CostFields): VendorModel | undefined {
  const modalities = isJsonObject(entry['modalities']) ? entry['modalities'] : {}
  const inputModalities = modalitiesOf(modalities['input'])
  const outputModalities = modalitiesOf(modalities['output'])
  const kinds = kindsOf(id, entry, inputModalities, outputModalities)
  if (kinds === undefined) return undefined
  const limit = isJsonObject(entry['limit']) ? entry['limit'] : {}
  const cost = isJsonObject(entry['cost']) ? entry['cost'] : {}
  const price = priceOf(cost, fields)
  const isChat = kinds[0] === 'chat'
  const contextTokens = countOf(limit['context'])
  const output = countOf(limit['output'])
  return {
    id,
    displayName: typeof entry['name'] === 'string' ? entry['name'] : id,
    kinds,
    limits: {
      ...(contextTokens === undefined ? {} : { contextTokens }),
      ...(output === undefined || !isChat ? {} : { maxOutputTokens: output }),
      // Some entries contain 1, which is not a vector size.
      ...(output === undefined || output === 1 || kinds[0] !== 'embedding' ? {} : { dimensions: output }),
    },
    inputModalities,
    outputModalities,
    abilities: ABILITIES.filter((ability) => isChat && entry[ability] === true),
    created: typeof entry['release_date'] === 'string' ? dateSeconds(entry['release_date']) : 0,
    ...(price === undefined ? {} : { price }),
    tiers: price === undefined ? [] : tiersOf(cost, fields),
  }
}

/** Returns the kinds of a model, or `undefined` if no endpoint serves it. */
function kindsOf(
  id: string,
  entry: Readonly<Record<string, unknown>>,
  reads: readonly Modality[],
  writes: readonly Modality[],
): VendorModel['kinds'] | undefined {
  const name = `${id} ${String(entry['family'] ?? '')}`.toLowerCase()
  if (/realtime|-live|livetranslate/.test(name)) return undefined
  const named = MODEL_KINDS.find((kind) => kindFacts(kind)?.names?.test(name))
  if (named !== undefined) return [named]
  if (writes.includes('video')) return undefined
  if (writes.includes('image')) return reads.includes('image') ? ['image', 'image_edit'] : ['image']
  if (!writes.includes('text')) return writes.includes('audio') ? ['speech'] : undefined
  if (/whisper|transcri|-asr/.test(name) || (reads.includes('audio') && !reads.includes('text')))
    return ['transcription']
  return ['chat']
}

function modalitiesOf(value: unknown): readonly Modality[] {
  return Array.isArray(value) ? MODALITIES.filter((modality) => value.includes(modality)) : []
}

function countOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined
}

/** Returns the price, or `undefined` if there is none or only zeros. */
function priceOf(cost: Readonly<Record<string, unknown>>, fields: CostFields): ListPrice | undefined {
  const price: Partial<Record<keyof ListPrice, string>> = {}
  for (const [name, field] of Object.entries(fields)) {
    const amount = cost[name]
    if (typeof amount === 'number' && Number.isFinite(amount) && amount >= 0) price[field] = decimalText(amount)
  }
  return Object.values(price).some((amount) => amount !== '0') ? price : undefined
}

/** Returns the shortest decimal of a number, which the list's author wrote. */
export function decimalText(amount: number): string {
  const text = String(amount)
  return text.includes('e') ? amount.toFixed(18).replace(/0+$/, '') : text
}

function tiersOf(cost: Readonly<Record<string, unknown>>, fields: CostFields): ListPriceTier[] {
  const tiers: ListPriceTier[] = []
  for (const tier of Array.isArray(cost['tiers']) ? cost['tiers'] : []) {
    if (!isJsonObject(tier) || !isJsonObject(tier['tier']) || tier['tier']['type'] !== 'context') continue
    const inputTokensAbove = countOf(tier['tier']['size'])
    const price = priceOf(tier, fields)
    if (inputTokensAbove !== undefined && price !== undefined) tiers.push({ inputTokensAbove, ...price })
  }
  return tiers.sort((one, other) => one.inputTokensAbove - other.inputTokensAbove)
}
