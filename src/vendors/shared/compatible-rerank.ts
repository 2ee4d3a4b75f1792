import type { RerankLimits, RerankOperation } from '../vendor.ts'
import { readRanking } from './rerank-answer.ts'
import { rerankWire } from './rerank-body.ts'

/** Reranking at a server of the shape that most servers share. All fields of the request reach it. */
export function compatibleRerank(path: string, limits: RerankLimits = {}): RerankOperation {
  return {
    limits: () => limits,
    toWire: (call, input) => rerankWire(call, input, { path, topN: 'top_n' }),
    fromWire: (answer) => readRanking(answer),
  }
}
