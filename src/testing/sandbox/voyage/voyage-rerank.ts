import { rankedTexts, ranking, rankingPromptText, rankingTokens } from '../model/ranking.ts'
import { asNumber, asObject, asText, isGiven, names } from '../request-fields.ts'
import { checkBearer, jsonReply, RefusedCall, type SandboxOperation } from '../sandbox-operation.ts'
import { VOYAGE_ERRORS } from './voyage-embeddings.ts'

const ARGUMENTS = names('query documents model top_k return_documents truncation')
const MAX_DOCUMENTS = 1000
const MAX_TOKENS = 600_000

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
      if (!ARGUMENTS.has(name)) refuse(`Argument '${name}' is not supported by our API.`)
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
    if (tokens > MAX_TOKENS)
      refuse(`The number of tokens of query and documents must not exceed ${MAX_TOKENS}. Yours have ${tokens}.`)
    return jsonReply(200, ['server', 'uvicorn'], {
      object: 'list',
      data: ranking(query, texts, top, request['return_documents'] === true),
      model: asText(request['model']),
      usage: context.usage({ total_tokens: tokens }),
    })
  },
}
