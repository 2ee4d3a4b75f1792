import { rankedTexts, ranking, rankingPromptText, rankingTokens } from '../model/embedding.ts'
import { asNumber, asText, isGiven } from '../request-fields.ts'
import { bearerAccess, jsonReply, type Refuse, refusals, vendorErrors, vendorOperations } from '../sandbox-operation.ts'

const DOCUMENTS_PER_UNIT = 100

/** Errors of Cohere: `{ id, message }`. */
const COHERE_ERRORS = vendorErrors(
  {
    400: ['invalid request'],
    401: ['invalid api token'],
    404: ["model 'unknown' not found, make sure the correct model ID was used and that you have access to the model."],
    429: ['Please wait and try again later'],
    500: ['internal server error'],
  },
  (status, message) => jsonReply(status, [], { id: 'c0ffee00-0000-4000-8000-000000000000', message }),
  { quota: () => COHERE_ERRORS.status(402, 'Please add or update your payment method to continue') },
)
const refuse: Refuse = refusals(COHERE_ERRORS)

const cohereOperation = vendorOperations({
  vendor: 'cohere',
  errors: COHERE_ERRORS,
  headers: ['x-trial-endpoint-call-limit', '10'],
  access: bearerAccess(COHERE_ERRORS),
})

/** Cohere: `POST /v2/rerank` (rerank v2 reference). Answers contain no documents, and search units instead of tokens. */
export const COHERE_RERANK = cohereOperation({
  operation: 'rerank',
  post: '/v2/rerank',
  prompt: rankingPromptText,
  json(_call, { id, usage }, { query, documents, top_n: top }) {
    if (asText(query) === '') refuse('invalid request: query must not be empty')
    const texts = rankedTexts(documents) ?? refuse('invalid request: list of documents must not be empty')
    if (isGiven(top) && !((asNumber(top) ?? 0) >= 1)) refuse('invalid request: top_n must be greater than 0')
    return {
      id: `${id.slice(0, 8)}-0000-4000-8000-${id.slice(0, 12)}`,
      results: ranking(asText(query), texts, top, false),
      meta: {
        api_version: { version: '2' },
        billed_units: usage({ search_units: Math.ceil(texts.length / DOCUMENTS_PER_UNIT) }),
        tokens: { input_tokens: rankingTokens(asText(query), texts) },
      },
    }
  },
})
