import {
  embeddingData,
  embeddingTokens,
  inputPromptText,
  inputTexts,
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
  isGiven,
  names,
  oneOf,
  rule,
} from '../request-fields.ts'
import {
  checkBearer,
  jsonReply,
  RefusedCall,
  type SandboxOperation,
  type SandboxReply,
  type VendorErrors,
} from '../sandbox-operation.ts'

const EMBEDDING_ARGUMENTS = names('input model input_type truncation output_dimension output_dtype encoding_format')
const DIMENSIONS = [256, 512, 1024, 2048]
const USUAL_DIMENSIONS = 1024
const MAX_INPUTS = 1000
const USUAL_MAX_TOKENS = 120_000
const MAX_EMBEDDING_TOKENS: Readonly<Record<string, number>> = { 'voyage-4': 320_000, 'voyage-4-lite': 1_000_000 }

const USUAL: Readonly<Record<number, string>> = {
  401: 'Provided API key is invalid.',
  403: 'Forbidden.',
  429: 'You have exceeded your rate limit of requests per minute. Please try again later.',
}

/** Errors of Voyage: `{ detail }`. */
const VOYAGE_ERRORS: VendorErrors = {
  status(status, message, retryAfterSeconds) {
    const usual =
      USUAL[status] ??
      (status >= 500 ? 'The server had an error while processing your request.' : 'The request is invalid.')
    const wait = retryAfterSeconds === undefined ? [] : ['retry-after', String(retryAfterSeconds)]
    return jsonReply(status, ['server', 'uvicorn', ...wait], { detail: message ?? usual })
  },
  quota: () =>
    VOYAGE_ERRORS.status(
      429,
      'You have not yet added your payment method in the billing page and will have reduced rate limits.',
    ),
  badKey: () => VOYAGE_ERRORS.status(401),
  // Embeddings are never streamed.
  streamEvent: () => '',
}

/**
 * Voyage: `POST /v1/embeddings`, the same path as OpenAI's; the model's name distinguishes them. Unknown arguments and the value
 * `float` are rejected before the key is checked (Voyage's API documentation and clients' reports).
 */
export const VOYAGE_EMBEDDINGS: SandboxOperation = {
  vendor: 'voyage',
  operation: 'embeddings',
  errors: VOYAGE_ERRORS,
  matches: ({ method, path, body }) =>
    method === 'POST' && path === '/v1/embeddings' && asText(asObject(body)['model']).startsWith('voyage-'),
  promptText: (body) => inputPromptText(asObject(body)),
  answer(call, context) {
    const request = asObject(call.body)
    const texts = checkedTexts(request)
    const dimensions = isGiven(request['output_dimension']) ? Number(request['output_dimension']) : USUAL_DIMENSIONS
    checkFields(request, RULES, (text) => {
      throw refusal(text)
    })
    checkBearer(call, VOYAGE_ERRORS)
    const model = asText(request['model'])
    const tokens = embeddingTokens(texts)
    checkTokens(model, tokens)
    const format = { dimensions, nativeDimensions: 2048, base64: request['encoding_format'] === 'base64' }
    return jsonReply(200, ['server', 'uvicorn'], {
      object: 'list',
      data: embeddingData(texts, format),
      model,
      usage: context.usage({ total_tokens: tokens }),
    })
  },
}

function checkedTexts(request: Readonly<Record<string, unknown>>): readonly string[] {
  for (const name of Object.keys(request)) {
    if (!EMBEDDING_ARGUMENTS.has(name)) throw refusal(`Argument '${name}' is not supported by our API.`)
  }
  const input = request['input']
  const areWords =
    typeof input === 'string' || (Array.isArray(input) && input.every((entry) => typeof entry === 'string'))
  const texts = areWords ? (inputTexts(input) ?? []) : []
  if (texts.length === 0 || texts.includes(''))
    throw refusal("Argument 'input' must be a non-empty string or a list of non-empty strings.")
  if (texts.length > MAX_INPUTS)
    throw refusal(`The batch size limit is ${MAX_INPUTS}. Your batch size is ${texts.length}.`)
  return texts
}

function invalidValue(field: string, valid: string): FieldRule['text'] {
  return (value) =>
    `Value '${String(value)}' provided for argument '${field}' is not valid. Valid values are [${valid}].`
}

const RULES: readonly FieldRule[] = [
  rule('encoding_format', oneOf('base64'), invalidValue('encoding_format', "'base64', null")),
  rule('input_type', oneOf('query', 'document'), invalidValue('input_type', "'query', 'document', null")),
  rule(
    'output_dimension',
    (value) => DIMENSIONS.includes(Number(value)),
    invalidValue('output_dimension', DIMENSIONS.join(', ')),
  ),
  rule('output_dtype', oneOf('float'), "The stand-in answers with output_dtype 'float' only."),
]

function checkTokens(model: string, tokens: number): void {
  const most = MAX_EMBEDDING_TOKENS[model] ?? USUAL_MAX_TOKENS
  if (tokens <= most) return
  const detail = `Request to model '${model}' failed. The max allowed tokens per submitted batch is ${most}. Your batch has ${tokens} tokens after truncation.`
  throw new RefusedCall(jsonReply(400, ['server', 'uvicorn'], { detail, error_code: 'TOO_MANY_TOKENS_IN_BATCH' }))
}

function refusal(detail: string): RefusedCall {
  const reply: SandboxReply = VOYAGE_ERRORS.status(400, detail)
  return new RefusedCall(reply)
}

const RERANK_ARGUMENTS = names('query documents model top_k return_documents truncation')
const MAX_DOCUMENTS = 1000
const MAX_RERANK_TOKENS = 600_000

/** Voyage: `POST /v1/rerank` (reranker reference). Unknown arguments are rejected before the key is checked. */
export const VOYAGE_RERANK: SandboxOperation = {
  vendor: 'voyage',
  operation: 'rerank',
  errors: VOYAGE_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/rerank',
  promptText: (body) => rankingPromptText(asObject(body)),
  answer(call, context) {
    const request = asObject(call.body)
    const refuse = (detail: string): never => {
      throw new RefusedCall(VOYAGE_ERRORS.status(400, detail))
    }
    for (const name of Object.keys(request))
      if (!RERANK_ARGUMENTS.has(name)) refuse(`Argument '${name}' is not supported by our API.`)
    const query = asText(request['query'])
    const texts =
      rankedTexts(request['documents']) ?? refuse("Argument 'documents' must be a list of non-empty strings.")
    if (query === '') refuse("Argument 'query' must be a non-empty string.")
    if (texts.length > MAX_DOCUMENTS)
      refuse(`The number of documents must not exceed ${MAX_DOCUMENTS}. You have ${texts.length}.`)
    const top = request['top_k']
    if (isGiven(top) && !(Number.isInteger(top) && (asNumber(top) ?? 0) > 0))
      refuse("Argument 'top_k' must be a positive integer.")
    checkBearer(call, VOYAGE_ERRORS)
    const tokens = rankingTokens(query, texts)
    if (tokens > MAX_RERANK_TOKENS)
      refuse(`The number of tokens of query and documents must not exceed ${MAX_RERANK_TOKENS}. Yours have ${tokens}.`)
    return jsonReply(200, ['server', 'uvicorn'], {
      object: 'list',
      data: ranking(query, texts, top, request['return_documents'] === true),
      model: asText(request['model']),
      usage: context.usage({ total_tokens: tokens }),
    })
  },
}
