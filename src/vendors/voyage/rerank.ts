import { readRanking } from '../shared/rerank-answer.ts'
import { type RerankFields, rerankWire } from '../shared/rerank-body.ts'
import type { RerankOperation } from '../vendor.ts'

// Voyage, reranker reference: the most documents of one call.
const MAX_DOCUMENTS = 1000

/** Reranking at Voyage (Voyage, reranker reference). It is billed by the tokens of the query for each document, and of all documents. */
export function voyageRerank(path: string): RerankOperation {
  const fields: RerankFields = { path, topN: 'top_k', taken: new Set(['truncation']) }
  return {
    limits: () => ({ maxDocuments: MAX_DOCUMENTS, isPointwise: true }),
    toWire: (call, input) => rerankWire(call, input, fields),
    fromWire: (answer) => readRanking(answer, { results: 'data' }),
  }
}
