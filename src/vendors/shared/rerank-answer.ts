import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { RankedDocuments, RerankResult } from '../../endpoints/rerank/rerank-request.ts'
import { asBuffer } from '../../wire/join-chunks.ts'
import type { WireAnswer } from '../vendor.ts'

/** Places of the relevant data in an answer. */
export interface RerankLayout {
  /** Object that holds the results. Default: the body itself. */
  readonly output?: string
  /** Member that holds the list. Default `results`. */
  readonly results?: 'results' | 'data'
  /** Member with the answer's id. Default `id`. */
  readonly id?: string
}

/**
 * Reads an answer with results of `index` and `relevance_score`. Usage is `usage.total_tokens` or `usage.prompt_tokens`, with
 * `usage.image_tokens` as a part of it, or `meta.billed_units`. Returns `undefined` for any other answer.
 */
export function readRanking(answer: WireAnswer, layout: RerankLayout = {}): RankedDocuments | undefined {
  const body = parseVendorJson(asBuffer(answer.body).toString('utf8'))
  if (!isJsonObject(body)) return undefined
  const holder = layout.output === undefined ? body : body[layout.output]
  const list = isJsonObject(holder) ? holder[layout.results ?? 'results'] : undefined
  if (!Array.isArray(list)) return undefined
  const results: RerankResult[] = []
  for (const item of list) {
    if (!isJsonObject(item)) return undefined
    const { index, relevance_score } = item
    if (typeof index !== 'number' || typeof relevance_score !== 'number') return undefined
    results.push({ index, relevance_score })
  }
  const id = body[layout.id ?? 'id']
  return { id: typeof id === 'string' && id !== '' ? id : undefined, results, usage: usageOf(body) }
}

function usageOf({ usage, meta }: Record<string, unknown>): RankedDocuments['usage'] {
  const counts = isJsonObject(usage) ? usage : {}
  const units = isJsonObject(meta) && isJsonObject(meta['billed_units']) ? meta['billed_units'] : {}
  const tokens =
    numberOf(counts['total_tokens']) ?? numberOf(counts['prompt_tokens']) ?? numberOf(units['input_tokens'])
  const imageTokens = numberOf(counts['image_tokens'])
  const billedUnits = numberOf(units['search_units'])
  // Vendors that bill by tokens send 0 search units, so ignore that 0.
  const searchUnits = billedUnits === 0 && tokens !== undefined ? undefined : billedUnits
  if (tokens === undefined && searchUnits === undefined) return undefined
  return {
    ...(tokens === undefined ? {} : { inputTokens: tokens }),
    ...(tokens === undefined || imageTokens === undefined ? {} : { inputImageTokens: imageTokens }),
    ...(searchUnits === undefined ? {} : { searchUnits }),
  }
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
