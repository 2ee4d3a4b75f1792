import { presets } from '../../../vendors/presets/presets.ts'
import { rankedTexts, ranking, rankingPromptText, rankingTokens } from '../model/ranking.ts'
import { OPENAI_ERRORS, openaiInvalid } from '../openai/openai-errors.ts'
import { asObject, asText } from '../request-fields.ts'
import { checkBearer, jsonReply, RefusedCall, type SandboxOperation } from '../sandbox-operation.ts'

const PATH = /^\/presets\/([a-z0-9-]+)(?:\/v\d+)?\/rerank$/

/** The servers of `signalbox/presets` that rerank: `POST /presets/ID/v1/rerank`. */
export const PRESET_RERANK: SandboxOperation = {
  vendor: 'presets',
  operation: 'rerank',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && Object.hasOwn(presets, PATH.exec(path)?.[1] ?? ''),
  promptText: (body) => rankingPromptText(asObject(body)),
  answer(call, context) {
    checkBearer(call, OPENAI_ERRORS)
    const request = asObject(call.body)
    const query = asText(request['query'])
    const texts = rankedTexts(request['documents'])
    if (query === '' || texts === undefined)
      throw new RefusedCall(openaiInvalid('query and documents must not be empty', 'documents'))
    return jsonReply(200, [], {
      model: asText(request['model']),
      object: 'list',
      usage: context.usage({ total_tokens: rankingTokens(query, texts) }),
      // By default these servers repeat the documents.
      results: ranking(query, texts, request['top_n'], request['return_documents'] !== false),
    })
  },
}
