import { readRanking } from '../shared/rerank-answer.ts'
import { type RerankFields, rerankWire } from '../shared/rerank-body.ts'
import type { RerankInput, RerankLimits, RerankOperation } from '../vendor.ts'

// Maximum documents and tokens per call, and the tokens to which each text is truncated (Model Studio, text rerank).
const MAX_DOCUMENTS = 500
const MAX_TOKENS = 120_000
const OLD_MAX_TOKENS = 30_000
const MAX_TEXT_TOKENS = 4_000
// The model that also ranks images.
const MULTIMODAL = /^qwen3-vl-rerank/
const MAX_MULTIMODAL_DOCUMENTS = 100
const MAX_PICTURES = 40
const MAX_MULTIMODAL_TEXT_TOKENS = 8_000
const TAKEN = new Set(['instruct'])

/** Models with the compatible API and its flat fields. All others use the native API. */
const COMPATIBLE = /^qwen3-rerank/

/**
 * Creates reranking at DashScope (Model Studio, text rerank). `qwen3-rerank` scores each document separately; for the other models
 * this is unknown.
 * @param paths Paths of the compatible and the native API.
 */
export function dashscopeRerank(paths: { readonly compatible: string; readonly native: string }): RerankOperation {
  const compatible: RerankFields = { path: paths.compatible, topN: 'top_n', taken: TAKEN }
  const native: RerankFields = {
    ...compatible,
    path: paths.native,
    layout: ({ model, query, documents, ...parameters }) => ({
      model,
      input: { query, documents: nativeDocuments(documents) },
      parameters,
    }),
  }
  return {
    limits: limitsOf,
    toWire: (call, input) => rerankWire(call, input, COMPATIBLE.test(call.model.upstream) ? compatible : native),
    fromWire: (answer, { model }) =>
      COMPATIBLE.test(model.upstream)
        ? readRanking(answer)
        : readRanking(answer, { output: 'output', id: 'request_id' }),
  }
}

function limitsOf(upstream: string): RerankLimits {
  if (COMPATIBLE.test(upstream)) return { maxDocuments: MAX_DOCUMENTS, maxTokens: MAX_TOKENS, isPointwise: true }
  if (MULTIMODAL.test(upstream))
    return {
      ...{ maxDocuments: MAX_MULTIMODAL_DOCUMENTS, maxPictures: MAX_PICTURES },
      ...{ maxTokens: MAX_TOKENS, maxTextTokens: MAX_MULTIMODAL_TEXT_TOKENS },
    }
  if (!/^gte-rerank/.test(upstream)) return { maxDocuments: MAX_DOCUMENTS }
  return { maxDocuments: MAX_DOCUMENTS, maxTokens: OLD_MAX_TOKENS, maxTextTokens: MAX_TEXT_TOKENS }
}

/** If any document is an image, texts are objects too. */
function nativeDocuments(documents: RerankInput['documents']): readonly unknown[] {
  if (documents.every((document) => typeof document === 'string')) return documents
  return documents.map((document) => (typeof document === 'string' ? { text: document } : document))
}
