import type { RerankRequest } from '../../endpoints/rerank/rerank-request.ts'
import type { RerankInput, VendorCall, WireRequest } from '../vendor.ts'
import { bearerHeaders } from './bearer-headers.ts'

/** Fields that every translator takes, or that the gateway answers by itself. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  ...['model', 'query', 'documents', 'top_n', 'top_k', 'return_documents'],
])

/** What a vendor's API of reranking takes beside the query and the documents. */
export interface RerankFields {
  readonly path: string
  /** The vendor's name of `top_n`. */
  readonly topN: 'top_n' | 'top_k'
  /** Further fields that it takes, under the same name; absent: all. */
  readonly taken?: ReadonlySet<string>
  /** The layout of the body; absent: all fields beside each other. */
  layout?(fields: FlatRerank): object
}

/** A body of fields beside each other. */
export interface FlatRerank {
  readonly model: string
  readonly query: string
  readonly documents: RerankInput['documents']
  readonly [field: string]: unknown
}

/**
 * The request of a call. Documents are never asked back: the gateway has them. Fields that the vendor lacks are dropped and
 * reported.
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
