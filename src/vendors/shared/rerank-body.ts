import type { RerankRequest } from '../../endpoints/rerank/rerank-request.ts'
import type { RerankInput, VendorCall, WireRequest } from '../vendor.ts'
import { bearerHeaders } from './bearer-headers.ts'

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
