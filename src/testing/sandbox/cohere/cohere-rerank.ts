import { rankedTexts, ranking, rankingPromptText, rankingTokens } from '../model/embedding.ts'
import { asNumber, asObject, asText, isGiven } from '../request-fields.ts'
import { checkBearer, jsonReply, RefusedCall, type SandboxOperation, type VendorErrors } from '../sandbox-operation.ts'

const USUAL: Readonly<Record<number, string>> = {
  401: 'invalid api token',
  404: "model 'unknown' not found, make sure the correct model ID was used and that you have access to the model.",
  429: 'Please wait and try again later',
}
const DOCUMENTS_PER_UNIT = 100

/** Errors of Cohere: `{ id, message }`. */
const COHERE_ERRORS: VendorErrors = {
  status(status, message, retryAfterSeconds) {
    const usual = USUAL[status] ?? (status >= 500 ? 'internal server error' : 'invalid request')
    const wait = retryAfterSeconds === undefined ? [] : ['retry-after', String(retryAfterSeconds)]
    return jsonReply(status, wait, { id: 'c0ffee00-0000-4000-8000-000000000000', message: message ?? usual })
  },
  quota: () => COHERE_ERRORS.status(402, 'Please add or update your payment method to continue'),
  badKey: () => COHERE_ERRORS.status(401),
  // Rankings are never streamed.
  streamEvent: () => '',
}

/** Cohere: `POST /v2/rerank` (rerank v2 reference). Answers contain no documents, and search units instead of tokens. */
export const COHERE_RERANK: SandboxOperation = {
  vendor: 'cohere',
  operation: 'rerank',
  errors: COHERE_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/v2/rerank',
  promptText: (body) => rankingPromptText(asObject(body)),
  answer(call, context) {
    checkBearer(call, COHERE_ERRORS)
    const request = asObject(call.body)
    const refuse = (message: string): never => {
      throw new RefusedCall(COHERE_ERRORS.status(400, message))
    }
    const query = asText(request['query'])
    if (query === '') refuse('invalid request: query must not be empty')
    const texts = rankedTexts(request['documents']) ?? refuse('invalid request: list of documents must not be empty')
    const top = request['top_n']
    if (isGiven(top) && !((asNumber(top) ?? 0) >= 1)) refuse('invalid request: top_n must be greater than 0')
    const units = Math.ceil(texts.length / DOCUMENTS_PER_UNIT)
    return jsonReply(200, ['x-trial-endpoint-call-limit', '10'], {
      id: `${context.id.slice(0, 8)}-0000-4000-8000-${context.id.slice(0, 12)}`,
      results: ranking(query, texts, top, false),
      meta: {
        api_version: { version: '2' },
        billed_units: context.usage({ search_units: units }),
        tokens: { input_tokens: rankingTokens(query, texts) },
      },
    })
  },
}
