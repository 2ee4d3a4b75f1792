import {
  embeddingAnswer,
  embeddingTokens,
  inputPromptText,
  inputWords,
  rankedTexts,
  ranking,
  rankingPromptText,
  rankingTokens,
} from '../model/embedding.ts'
import {
  asNumber,
  asObject,
  asText,
  checkFields,
  type FieldRule,
  type Fields,
  isGiven,
  names,
  oneOf,
  rule,
} from '../request-fields.ts'
import {
  bearerAccess,
  jsonReply,
  type Refuse,
  RefusedCall,
  refusals,
  type SandboxOperation,
  vendorErrors,
  vendorOperations,
} from '../sandbox-operation.ts'

const HEADERS = ['server', 'uvicorn']

/** Errors of Voyage: `{ detail }`. */
const VOYAGE_ERRORS = vendorErrors(
  {
    400: ['The request is invalid.'],
    401: ['Provided API key is invalid.'],
    403: ['Forbidden.'],
    429: ['You have exceeded your rate limit of requests per minute. Please try again later.'],
    500: ['The server had an error while processing your request.'],
  },
  (status, detail) => jsonReply(status, HEADERS, { detail }),
  {
    quota: () =>
      VOYAGE_ERRORS.status(
        429,
        'You have not yet added your payment method in the billing page and will have reduced rate limits.',
      ),
  },
)
const refuse: Refuse = refusals(VOYAGE_ERRORS)
const checkBearer = bearerAccess(VOYAGE_ERRORS)

/** Arguments are checked before the key (Voyage's API documentation and clients' reports), so each row checks the key itself. */
const voyageOperation = vendorOperations({ vendor: 'voyage', errors: VOYAGE_ERRORS, headers: HEADERS })

function checkArguments(request: Fields, known: ReadonlySet<string>): void {
  const unknown = Object.keys(request).find((name) => !known.has(name))
  if (unknown !== undefined) refuse(`Argument '${unknown}' is not supported by our API.`)
}

const EMBEDDING_ARGUMENTS = names('input model input_type truncation output_dimension output_dtype encoding_format')
const DIMENSIONS = [256, 512, 1024, 2048]
const DEFAULT_DIMENSIONS = 1024
const MAX_INPUTS = 1000
const DEFAULT_MAX_TOKENS = 120_000
const MAX_EMBEDDING_TOKENS: Readonly<Record<string, number>> = { 'voyage-4': 320_000, 'voyage-4-lite': 1_000_000 }

const EMBEDDING_RULES: readonly FieldRule[] = [
  rule('encoding_format', oneOf('base64'), invalidValue('encoding_format', "'base64', null")),
  rule('input_type', oneOf('query', 'document'), invalidValue('input_type', "'query', 'document', null")),
  rule(
    'output_dimension',
    (value) => DIMENSIONS.includes(Number(value)),
    invalidValue('output_dimension', DIMENSIONS.join(', ')),
  ),
  rule('output_dtype', oneOf('float'), "The stand-in answers with output_dtype 'float' only."),
]

function invalidValue(field: string, valid: string): FieldRule['text'] {
  return (value) =>
    `Value '${String(value)}' provided for argument '${field}' is not valid. Valid values are [${valid}].`
}

/** Voyage: `POST /v1/embeddings`, the same path as OpenAI's; the model's name distinguishes them. */
const VOYAGE_EMBEDDINGS = voyageOperation({
  operation: 'embeddings',
  post: '/v1/embeddings',
  when: ({ body }) => asText(asObject(body)['model']).startsWith('voyage-'),
  prompt: inputPromptText,
  json(call, context, request) {
    checkArguments(request, EMBEDDING_ARGUMENTS)
    const texts = inputWords(request['input']) ?? []
    if (texts.length === 0 || texts.includes(''))
      refuse("Argument 'input' must be a non-empty string or a list of non-empty strings.")
    if (texts.length > MAX_INPUTS) refuse(`The batch size limit is ${MAX_INPUTS}. Your batch size is ${texts.length}.`)
    checkFields(request, EMBEDDING_RULES, (text) => refuse(text))
    checkBearer(call)
    const model = asText(request['model'])
    checkTokens(model, embeddingTokens(texts))
    const dimensions = Number(request['output_dimension'] ?? DEFAULT_DIMENSIONS)
    const isBase64 = request['encoding_format'] === 'base64'
    return embeddingAnswer(texts, { model, dimensions, nativeDimensions: 2048, isBase64 }, (tokens) =>
      context.usage({ total_tokens: tokens }),
    )
  },
})

function checkTokens(model: string, tokens: number): void {
  const most = MAX_EMBEDDING_TOKENS[model] ?? DEFAULT_MAX_TOKENS
  if (tokens <= most) return
  const detail = `Request to model '${model}' failed. The max allowed tokens per submitted batch is ${most}. Your batch has ${tokens} tokens after truncation.`
  throw new RefusedCall(jsonReply(400, HEADERS, { detail, error_code: 'TOO_MANY_TOKENS_IN_BATCH' }))
}

const RERANK_ARGUMENTS = names('query documents model top_k return_documents truncation')
const MAX_DOCUMENTS = 1000
const MAX_RERANK_TOKENS = 600_000

/** Voyage: `POST /v1/rerank` (reranker reference). */
const VOYAGE_RERANK = voyageOperation({
  operation: 'rerank',
  post: '/v1/rerank',
  prompt: rankingPromptText,
  json(call, context, request) {
    checkArguments(request, RERANK_ARGUMENTS)
    const query = asText(request['query'])
    const texts =
      rankedTexts(request['documents']) ?? refuse("Argument 'documents' must be a list of non-empty strings.")
    if (query === '') refuse("Argument 'query' must be a non-empty string.")
    if (texts.length > MAX_DOCUMENTS)
      refuse(`The number of documents must not exceed ${MAX_DOCUMENTS}. You have ${texts.length}.`)
    const top = request['top_k']
    if (isGiven(top) && !(Number.isInteger(top) && (asNumber(top) ?? 0) > 0))
      refuse("Argument 'top_k' must be a positive integer.")
    checkBearer(call)
    const tokens = rankingTokens(query, texts)
    if (tokens > MAX_RERANK_TOKENS)
      refuse(`The number of tokens of query and documents must not exceed ${MAX_RERANK_TOKENS}. Yours have ${tokens}.`)
    return {
      object: 'list',
      data: ranking(query, texts, top, request['return_documents'] === true),
      model: asText(request['model']),
      usage: context.usage({ total_tokens: tokens }),
    }
  },
})

/** Operations of Voyage. */
export const VOYAGE_OPERATIONS: readonly SandboxOperation[] = [VOYAGE_EMBEDDINGS, VOYAGE_RERANK]
