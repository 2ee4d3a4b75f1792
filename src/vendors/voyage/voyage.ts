import { memberNames } from '../../core/known-members.ts'
import type { EmbeddingsRequest } from '../../endpoints/embeddings/embeddings-request.ts'
import type { FieldRules } from '../shared/openai-chat-dialect.ts'
import { openaiEmbeddings } from '../shared/openai-embeddings.ts'
import { type ErrorWords, errorReader } from '../shared/openai-error.ts'
import { type RerankFields, readRanking, rerankWire } from '../shared/rerank.ts'
import { commonParts, vendorAddress } from '../shared/vendor-options.ts'
import type { RerankOperation, Vendor, VendorOptions } from '../vendor.ts'

const API_PATH = '/v1'
const VOYAGE_ORIGIN = 'https://api.voyageai.com'

// Prefix of keys sold through MongoDB Atlas, which belong to another host (Voyage, API key page).
const ATLAS_KEY_PREFIX = 'al-'
const ATLAS_ORIGIN = 'https://ai.mongodb.com'

/** Options of {@link voyage}. */
export interface VoyageOptions extends VendorOptions {
  /** Origin, with or without a path prefix and `/v1`. Defaults to the host for the kind of key. */
  readonly baseURL?: string | undefined
}

/** Maximum tokens per call of models with more than 120,000 (Voyage, text embeddings reference). */
const MAX_CALL_TOKENS: Readonly<Record<string, number>> = {
  'voyage-4': 320_000,
  'voyage-3.5': 320_000,
  'voyage-4-lite': 1_000_000,
  'voyage-3.5-lite': 1_000_000,
}

const VOYAGE_OPTIONS = memberNames<Omit<VoyageOptions, keyof VendorOptions>>()('baseURL')

/**
 * Voyage's embedding fields (Voyage, text embeddings reference). It rejects unknown arguments and the value `float`; without
 * `encoding_format`, it returns floats.
 */
export const VOYAGE_RULES: FieldRules<EmbeddingsRequest> = {
  model: 'pass',
  input: 'pass',
  dimensions: {
    needed: () => true,
    apply: (body, value) => {
      delete body['dimensions']
      if (value !== null) body['output_dimension'] = value
    },
  },
  encoding_format: {
    needed: (value) => value !== 'base64',
    apply: (body) => {
      delete body['encoding_format']
    },
  },
  user: 'drop',
}

// The model id is the operator's, because callers write public ids.
const OTHER_MODEL = /^Model \S{1,200} is not supported\. Supported models are\b/

const ERROR_WORDS: ErrorWords = {
  messages: [[OTHER_MODEL, 'operator']],
  concernMessages: [[OTHER_MODEL, 'model']],
}

/**
 * Creates the vendor Voyage AI: embeddings and reranking.
 * @throws TypeError if `baseURL` is not an http(s) URL without query and credentials, or if it is absent and the keys belong to
 *   different hosts.
 */
export function voyage(options: VoyageOptions = {}): Vendor {
  const common = commonParts('voyage', options, VOYAGE_OPTIONS, { id: 'voyage', displayName: 'Voyage AI' })
  const { apiKeys } = common
  const { origin, prefix } = vendorAddress(options.baseURL ?? originOf(apiKeys), API_PATH)
  const errors = errorReader(ERROR_WORDS, apiKeys)
  return {
    ...common,
    origin,
    configuredBy: 'VOYAGE_API_KEY or voyage({ apiKey })',
    claims: ['voyage-*', 'rerank-2*'],
    embeddings: openaiEmbeddings({
      path: `${prefix}${API_PATH}/embeddings`,
      maxInputs: 1000,
      maxTokens: (upstream) => MAX_CALL_TOKENS[upstream] ?? 120_000,
      takesTokens: false,
      rules: VOYAGE_RULES,
      givesBase64: true,
      // For other types, base64 holds bytes or bits (Voyage, text embeddings reference, `output_dtype`).
      prefersBase64: ({ output_dtype: type }) => type === undefined || type === null || type === 'float',
    }),
    rerank: voyageRerank(`${prefix}${API_PATH}/rerank`),
    errorFrom: errors.fromAnswer,
  }
}

function originOf(apiKeys: readonly string[]): string {
  const atlasKeys = apiKeys.filter((key) => key.startsWith(ATLAS_KEY_PREFIX)).length
  if (atlasKeys !== 0 && atlasKeys !== apiKeys.length) {
    throw new TypeError(
      'keys beginning with "al-" belong to another host than the others: configure two vendors or one kind',
    )
  }
  return atlasKeys > 0 ? ATLAS_ORIGIN : VOYAGE_ORIGIN
}

// Voyage, reranker reference: the most documents of one call, and the most tokens, by the age of the model.
const MAX_DOCUMENTS = 1000
const MAX_TOKENS = 600_000
const OLD_MODELS = /^rerank-(?:lite-)?1$/
const OLD_MAX_TOKENS = 300_000

/** Reranking at Voyage (Voyage, reranker reference). It is billed by the tokens of the query for each document, and of all documents. */
function voyageRerank(path: string): RerankOperation {
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
