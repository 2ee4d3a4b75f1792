import type { ModelDefinition } from '../../catalog/model.ts'
import { memberNames } from '../../core/known-members.ts'
import { errorReader } from '../shared/openai-error.ts'
import { type RerankFields, readRanking, rerankWire } from '../shared/rerank.ts'
import { commonParts, vendorAddress } from '../shared/vendor-options.ts'
import type { RerankOperation, Vendor, VendorOptions } from '../vendor.ts'

const COHERE_ORIGIN = 'https://api.cohere.com'
const API_PATH = '/v2'

// Cohere, rerank v2 reference: more than 1,000 documents in one call are advised against.
const MAX_DOCUMENTS = 1000

/** Options of {@link cohere}. */
export interface CohereOptions extends VendorOptions {
  /** Origin, with or without a path prefix and `/v2`; `https://api.cohere.com` by default. */
  readonly baseURL?: string | undefined
}

const COHERE_OPTIONS = memberNames<Omit<CohereOptions, keyof VendorOptions>>()('baseURL')

/** `contextTokens` limits the query with one document. */
const COHERE_MODELS: readonly ModelDefinition[] = [
  rerankModel('4.0-pro', 32_768, 'Rerank 4 Pro'),
  rerankModel('4.0-fast', 32_768, 'Rerank 4 Fast'),
  rerankModel('3.5', 4096, 'Rerank 3.5'),
]

function rerankModel(version: string, contextTokens: number, displayName: string): ModelDefinition {
  return { id: `rerank-v${version}`, kind: 'rerank', vendor: 'cohere', limits: { contextTokens }, displayName }
}

/**
 * Cohere: reranking, by version 2 of its API. It is billed by search units.
 * @throws TypeError when `baseURL` is not an http(s) URL without query and credentials.
 */
export function cohere(options: CohereOptions = {}): Vendor {
  const common = commonParts('cohere', options, COHERE_OPTIONS, { id: 'cohere', displayName: 'Cohere' })
  const { origin, prefix } = vendorAddress(options.baseURL ?? COHERE_ORIGIN, API_PATH)
  const errors = errorReader({}, common.apiKeys)
  return {
    ...common,
    origin,
    configuredBy: 'COHERE_API_KEY or cohere({ apiKey })',
    models: COHERE_MODELS,
    hasBuiltInModels: true,
    claims: ['command-*', 'c4ai-*', 'embed-*', 'rerank-v*'],
    rerank: rerankOperation(`${prefix}${API_PATH}/rerank`),
    errorFrom: errors.fromAnswer,
  }
}

function rerankOperation(path: string): RerankOperation {
  const fields: RerankFields = { path, topN: 'top_n', taken: new Set(['max_tokens_per_doc', 'priority']) }
  return {
    limits: () => ({ maxDocuments: MAX_DOCUMENTS, isPointwise: true }),
    toWire: (call, input) => rerankWire(call, input, fields),
    fromWire: (answer) => readRanking(answer),
  }
}
