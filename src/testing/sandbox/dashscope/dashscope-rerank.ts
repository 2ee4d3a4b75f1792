import { rankedTexts, ranking, rankingPromptText, rankingTokens } from '../model/ranking.ts'
import { asObject, asText, type Fields } from '../request-fields.ts'
import { checkBearer, jsonReply, RefusedCall, type SandboxOperation } from '../sandbox-operation.ts'
import {
  DASHSCOPE_ERRORS,
  DASHSCOPE_HEADERS,
  DASHSCOPE_NATIVE_ERRORS,
  DASHSCOPE_REQUEST_ID,
  dashscopeInvalid,
  refuseNative,
} from './dashscope-errors.ts'

const MAX_DOCUMENTS = 500
const MAX_TOKENS = 120_000
const NATIVE_MAX_TOKENS = 30_000

/** DashScope: `POST /compatible-api/v1/reranks`, for `qwen3-rerank` (Model Studio, text rerank). */
export const DASHSCOPE_RERANK: SandboxOperation = {
  vendor: 'dashscope',
  operation: 'rerank',
  errors: DASHSCOPE_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/compatible-api/v1/reranks',
  promptText: (body) => rankingPromptText(asObject(body)),
  answer(call, context) {
    checkBearer(call, DASHSCOPE_ERRORS)
    const request = asObject(call.body)
    const { query, texts } = checked(request, MAX_TOKENS, (message) => {
      throw new RefusedCall(dashscopeInvalid(message))
    })
    return jsonReply(200, DASHSCOPE_HEADERS, {
      object: 'list',
      results: ranking(query, texts, request['top_n'], false),
      model: asText(request['model']),
      id: DASHSCOPE_REQUEST_ID,
      usage: context.usage({ total_tokens: rankingTokens(query, texts) }),
    })
  },
}

/** DashScope: `POST /api/v1/services/rerank/text-rerank/text-rerank`, the native API of the older models. */
export const DASHSCOPE_NATIVE_RERANK: SandboxOperation = {
  vendor: 'dashscope',
  operation: 'rerank',
  errors: DASHSCOPE_NATIVE_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/api/v1/services/rerank/text-rerank/text-rerank',
  promptText: (body) => rankingPromptText(asObject(asObject(body)['input'])),
  answer(call, context) {
    checkBearer(call, DASHSCOPE_NATIVE_ERRORS)
    const request = asObject(call.body)
    const parameters = asObject(request['parameters'])
    const { query, texts } = checked(asObject(request['input']), NATIVE_MAX_TOKENS, refuseNative)
    return jsonReply(200, DASHSCOPE_HEADERS, {
      output: { results: ranking(query, texts, parameters['top_n'], parameters['return_documents'] === true) },
      usage: context.usage({ total_tokens: rankingTokens(query, texts) }),
      request_id: DASHSCOPE_REQUEST_ID,
    })
  },
}

function checked(
  input: Fields,
  maxTokens: number,
  refuse: (message: string) => never,
): { readonly query: string; readonly texts: readonly string[] } {
  const query = asText(input['query'])
  const texts = rankedTexts(input['documents'])
  if (query === '' || texts === undefined) return refuse('query and documents must not be empty')
  if (texts.length > MAX_DOCUMENTS) return refuse(`at most ${MAX_DOCUMENTS} documents are allowed`)
  if (rankingTokens(query, texts) > maxTokens) return refuse(`at most ${maxTokens} tokens are allowed`)
  return { query, texts }
}
