import type { Usage } from '../../core/usage.ts'
import { ESTIMATED_BYTES_PER_TOKEN, estimateTokens } from '../token-estimate.ts'
import {
  pictureOf,
  type RankedDocuments,
  type RerankDocument,
  type RerankRequest,
  textOfDocument,
} from './rerank-request.ts'

// Documents per search unit, and tokens above which a document is split (Cohere, "How does Cohere's pricing work").
const DOCUMENTS_PER_UNIT = 100
const TOKENS_PER_PIECE = 500
// Default of `max_tokens_per_doc` (Cohere, rerank v2 reference).
const DEFAULT_TOKENS_PER_DOCUMENT = 4096
/** Smallest document limit of any vendor. Each call of a split list is rounded up to whole units. */
const DOCUMENTS_PER_CALL = 500

type RankedTexts = Pick<RerankRequest, 'query' | 'documents' | 'max_tokens_per_doc'>

/**
 * Returns the bytes of text that a vendor reads: the query once per document, and the documents. Each reading of the query is
 * rounded up to whole tokens.
 */
export function rerankTextBytes({ query, documents }: RankedTexts): number {
  const queryBytes = estimateTokens(Buffer.byteLength(query)) * ESTIMATED_BYTES_PER_TOKEN
  let bytes = queryBytes * documents.length
  for (const document of documents) bytes += Buffer.byteLength(textOfDocument(document))
  return bytes
}

/**
 * Returns search units as vendors count them: one per 100 documents. A document that exceeds 500 tokens together with the query
 * counts as several. A lower `max_tokens_per_doc` is ignored: many vendors never receive it, and the others report their own count.
 */
export function searchUnits({ query, documents, max_tokens_per_doc }: RankedTexts): number {
  const queryTokens = estimateTokens(Buffer.byteLength(query))
  const mostTokens = Math.max(max_tokens_per_doc ?? 0, DEFAULT_TOKENS_PER_DOCUMENT)
  let pieces = 0
  for (const document of documents) {
    const tokens = Math.min(estimateTokens(Buffer.byteLength(textOfDocument(document))), mostTokens)
    pieces += Math.ceil((queryTokens + tokens) / TOKENS_PER_PIECE)
  }
  return Math.ceil(pieces / DOCUMENTS_PER_UNIT)
}

/** Usage of a rerank call. It has both counts, so that a model can be priced by either. */
export interface RerankUsage extends Usage {
  readonly inputTokens: number
  readonly outputTokens: 0
  /** Omitted if no document is an image. */
  readonly inputImageTokens?: number
  readonly searchUnits: number
}

/** Returns the usage to hold for a request, and to charge if its vendor reports nothing. */
export function rerankEstimate(
  request: RankedTexts,
  inputTokens = estimateTokens(rerankTextBytes(request)),
): RerankUsage {
  const furtherCalls = Math.ceil(request.documents.length / DOCUMENTS_PER_CALL) - 1
  return { inputTokens, outputTokens: 0, searchUnits: searchUnits(request) + furtherCalls }
}

/** A vendor's report on the documents of one call, if any. */
export interface PartReport {
  readonly request: RankedTexts
  readonly reported: RankedDocuments['usage']
}

/**
 * Adds up the reports of all calls of one request and adds the missing count: vendors report tokens or search units. Units are
 * counted for all documents together, so that they do not depend on the split. If a vendor does not report image tokens separately,
 * they are the tokens above the estimate of the texts.
 */
export function usageOfParts(parts: readonly PartReport[]): RerankUsage {
  let [inputTokens, units] = [0, 0]
  let inputImageTokens: number | undefined
  const uncounted: RerankDocument[] = []
  for (const { request, reported } of parts) {
    const textTokens = estimateTokens(rerankTextBytes(request))
    const total = reported?.inputTokens ?? textTokens
    inputTokens += total
    if (request.documents.some((document) => pictureOf(document) !== undefined))
      inputImageTokens = (inputImageTokens ?? 0) + (reported?.inputImageTokens ?? Math.max(0, total - textTokens))
    if (reported?.searchUnits === undefined) uncounted.push(...request.documents)
    else units += reported.searchUnits
  }
  const [first] = parts
  if (first !== undefined && uncounted.length > 0) units += searchUnits({ ...first.request, documents: uncounted })
  return {
    inputTokens,
    outputTokens: 0,
    ...(inputImageTokens === undefined ? {} : { inputImageTokens }),
    searchUnits: units,
  }
}
