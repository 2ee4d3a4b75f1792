import type { Usage } from '../../core/usage.ts'
import { ESTIMATED_BYTES_PER_TOKEN, estimateTokens } from '../token-estimate.ts'
import {
  pictureOf,
  type RankedDocuments,
  type RerankDocument,
  type RerankRequest,
  textOfDocument,
} from './rerank-request.ts'

// Cohere, "How does Cohere's pricing work": documents of one search unit, and tokens above which a document is cut into several.
const DOCUMENTS_PER_UNIT = 100
const TOKENS_PER_PIECE = 500
// Cohere, rerank v2 reference: the default of `max_tokens_per_doc`.
const DEFAULT_TOKENS_PER_DOCUMENT = 4096
/** No vendor takes fewer documents in one call; each call of a split list is rounded up to whole units. */
const DOCUMENTS_PER_CALL = 500

type RankedTexts = Pick<RerankRequest, 'query' | 'documents' | 'max_tokens_per_doc'>

/**
 * Bytes of text that a vendor reads: the query once for each document, and the documents. Each reading of the query is rounded up to
 * whole tokens.
 */
export function rerankTextBytes({ query, documents }: RankedTexts): number {
  const queryBytes = estimateTokens(Buffer.byteLength(query)) * ESTIMATED_BYTES_PER_TOKEN
  let bytes = queryBytes * documents.length
  for (const document of documents) bytes += Buffer.byteLength(textOfDocument(document))
  return bytes
}

/**
 * Search units as their vendors count them: one for each 100 documents. A document that is longer than 500 tokens together with the
 * query counts as several. A lower `max_tokens_per_doc` than the default does not count: many vendors never get it, and those that do
 * report their own count.
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

/** Usage of a rerank call. It has both counts, so that a model can be sold by either. */
export interface RerankUsage extends Usage {
  readonly inputTokens: number
  readonly outputTokens: 0
  /** Absent where no document is a picture. */
  readonly inputImageTokens?: number
  readonly searchUnits: number
}

/** What a request is held for, and charged for where its vendor reports nothing. */
export function rerankEstimate(
  request: RankedTexts,
  inputTokens = estimateTokens(rerankTextBytes(request)),
): RerankUsage {
  const furtherCalls = Math.ceil(request.documents.length / DOCUMENTS_PER_CALL) - 1
  return { inputTokens, outputTokens: 0, searchUnits: searchUnits(request) + furtherCalls }
}

/** What a vendor reported of the documents of one call; undefined: nothing. */
export interface PartReport {
  readonly request: RankedTexts
  readonly reported: RankedDocuments['usage']
}

/**
 * The reports of the calls of one request together, with the count that they lack: vendors report tokens or search units. Units that are
 * counted here are those of all documents together, so that they do not depend on how a list was split. Tokens of pictures that a
 * vendor does not tell apart are those above the estimate of the texts.
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
