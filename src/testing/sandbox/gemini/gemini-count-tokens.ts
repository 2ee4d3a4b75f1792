import { asObject, isGiven } from '../model/loose-json.ts'
import { countTokens } from '../model/words.ts'
import { jsonReply, type SandboxOperation } from '../sandbox-operation.ts'
import { checkGeminiContents } from './gemini-content-checks.ts'
import { checkGeminiKey, GEMINI_ERRORS, GEMINI_HEADERS } from './gemini-errors.ts'
import { field, modelMethod } from './gemini-fields.ts'
import { readContentsPrompt } from './read-contents-prompt.ts'

/** Gemini: `POST /v1beta/models/{model}:countTokens`, with `contents` or a whole `generateContentRequest`. */
export const GEMINI_COUNT_TOKENS: SandboxOperation = {
  vendor: 'gemini',
  operation: 'count-tokens',
  errors: GEMINI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && modelMethod(path)?.method === 'countTokens',
  promptText: (body) => readContentsPrompt(requestOf(body)).lastUserText,
  answer(call) {
    checkGeminiKey(call)
    const request = requestOf(call.body)
    checkGeminiContents(request, modelMethod(call.path)?.model ?? '')
    const totalTokens = countTokens(readContentsPrompt(request).texts)
    const promptTokensDetails = [{ modality: 'TEXT', tokenCount: totalTokens }]
    return jsonReply(200, GEMINI_HEADERS, { totalTokens, promptTokensDetails }, 2)
  },
}

function requestOf(body: unknown): unknown {
  const inner = field(body, 'generateContentRequest')
  return isGiven(inner) ? inner : asObject(body)
}
