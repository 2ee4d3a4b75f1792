import { readRanking } from '../shared/rerank-answer.ts'
import { type RerankFields, rerankWire } from '../shared/rerank-body.ts'
import type { RerankOperation } from '../vendor.ts'

// Voyage, reranker reference: the most documents of one call, and the most tokens, by the age of the model.
const MAX_DOCUMENTS = 1000
const MAX_TOKENS = 600_000
const OLD_MODELS = /^rerank-(?:lite-)?1$/
const OLD_MAX_TOKENS = 300_000

/** Reranking at Voyage (Voyage, reranker reference). It is billed by the tokens of the query for each document, and of all documents. */
export function voyageRerank(path: string): RerankOperation {
  const fields: RerankFields = { path, topN: 'top_k', taken: new Set(['truncation']) }
  return {
    limits: (upstream) => ({
      maxDocuments: MAX_DOCUMENTS,
      maxTokens: OLD_MODELS.test(upstream) ? OLD_MAX_TOKENS : MAX_TOKENS,
      isPointwise: true,
    }),
    toWire: (call, input) => rerankWire(call, input, fields),
    fromWire: (answer) => readRanking(answer, { results: 'data' }),
  }
}
