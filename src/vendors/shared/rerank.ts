import { isJsonObject, objectOf, parseVendorJson } from '../../core/json.ts'
import type { RankedDocuments, RerankRequest, RerankResult } from '../../endpoints/rerank/rerank-request.ts'
import { asBuffer } from '../../wire/chunks.ts'
import type { RerankInput, RerankLimits, RerankOperation, VendorCall, WireAnswer, WireRequest } from '../vendor.ts'
import { bearerHeaders } from './vendor-options.ts'

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
  const counts = objectOf(usage)
  const units = objectOf(objectOf(meta)['billed_units'])
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

/** Fields that every translator supports, or that the gateway handles itself. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  ...['model', 'query', 'documents', 'top_n', 'top_k', 'return_documents'],
])

/** Fields of a vendor's rerank API other than query and documents. */
export interface RerankFields {
  readonly path: string
  /** The vendor's name of `top_n`. */
  readonly topN: 'top_n' | 'top_k'
  /** Other supported fields, under the same name. If omitted, all are supported. */
  readonly taken?: ReadonlySet<string>
  /** Returns the body in the vendor's layout. By default, the body is flat. */
  layout?(fields: FlatRerank): object
}

/** A flat body. */
export interface FlatRerank {
  readonly model: string
  readonly query: string
  readonly documents: RerankInput['documents']
  readonly [field: string]: unknown
}

/**
 * Writes the request of a call. Documents are never requested back, because the gateway has them. Fields that the vendor lacks are
 * dropped and reported.
 */
export function rerankWire(
  call: VendorCall<RerankRequest>,
  { documents, topN }: RerankInput,
  { path, topN: topNName, taken, layout = (fields) => fields }: RerankFields,
): WireRequest {
  const { request, model } = call
  const further: Record<string, unknown> = {}
  const dropped: string[] = []
  for (const name of Object.keys(request)) {
    const value = request[name]
    if (OWN_FIELDS.has(name) || value === undefined || value === null) continue
    if (taken === undefined || taken.has(name)) further[name] = value
    else dropped.push(name)
  }
  const limit = topN === undefined ? {} : { [topNName]: topN }
  const fields: FlatRerank = { ...further, model: model.upstream, query: request.query, documents, ...limit }
  return {
    path,
    headers: bearerHeaders(call.apiKey, 'application/json'),
    body: JSON.stringify(layout(fields)),
    dropped,
  }
}

/** Reranking at a server of the shape that most servers share. All fields of the request reach it. */
export function compatibleRerank(path: string, limits: RerankLimits = {}): RerankOperation {
  return {
    limits: () => limits,
    toWire: (call, input) => rerankWire(call, input, { path, topN: 'top_n' }),
    fromWire: (answer) => readRanking(answer),
  }
}
