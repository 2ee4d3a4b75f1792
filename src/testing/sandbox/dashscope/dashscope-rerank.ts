import { rankedTexts, ranking, rankingPromptText, rankingTokens } from '../model/embedding.ts'
import { asList, asObject, asText, type Fields } from '../request-fields.ts'
import {
  compatibleOperation,
  DASHSCOPE_REQUEST_ID,
  nativeOperation,
  refuseDashscope,
  refuseNative,
} from './dashscope-errors.ts'

const MAX_DOCUMENTS = 500
const MAX_TOKENS = 120_000
const NATIVE_MAX_TOKENS = 30_000
const MAX_PICTURES = 40
const PICTURE_TOKENS = 250

/** DashScope: `POST /compatible-api/v1/reranks`, for `qwen3-rerank` (Model Studio, text rerank). */
export const DASHSCOPE_RERANK = compatibleOperation({
  operation: 'rerank',
  post: '/compatible-api/v1/reranks',
  prompt: rankingPromptText,
  json(_call, context, request) {
    const { query, texts, tokens } = checked(request, MAX_TOKENS, (message) => refuseDashscope(message, null))
    return {
      object: 'list',
      results: ranking(query, texts, request['top_n'], false),
      model: asText(request['model']),
      id: DASHSCOPE_REQUEST_ID,
      usage: context.usage({ total_tokens: tokens }),
    }
  },
})

/** DashScope: `POST /api/v1/services/rerank/text-rerank/text-rerank`, the native API of the older models. */
export const DASHSCOPE_NATIVE_RERANK = nativeOperation({
  operation: 'rerank',
  post: '/api/v1/services/rerank/text-rerank/text-rerank',
  prompt: ({ input }) => rankingPromptText(asObject(input)),
  json(_call, context, { model, input, parameters }) {
    const { top_n: top, return_documents: showsDocuments } = asObject(parameters)
    const given = asObject(input)
    const isMultimodal = asText(model).startsWith('qwen3-vl-rerank')
    const { documents, pictures } = isMultimodal
      ? withoutPictures(given)
      : { documents: given['documents'], pictures: 0 }
    if (pictures > MAX_PICTURES) refuseNative(`at most ${MAX_PICTURES} images are allowed`)
    const maxTokens = isMultimodal ? MAX_TOKENS : NATIVE_MAX_TOKENS
    const { query, texts, tokens } = checked({ ...given, documents }, maxTokens, refuseNative)
    const imageTokens = pictures * PICTURE_TOKENS
    const usage = { total_tokens: tokens + imageTokens, ...(isMultimodal ? { image_tokens: imageTokens } : {}) }
    return {
      output: { results: ranking(query, texts, top, showsDocuments === true) },
      usage: context.usage(usage),
      request_id: DASHSCOPE_REQUEST_ID,
    }
  },
})

/** Converts multimodal documents to texts. An image is ranked by its address, or not at all if given as data. */
function withoutPictures(input: Fields): { readonly documents: unknown; readonly pictures: number } {
  let pictures = 0
  const documents = asList(input['documents']).map((document) => {
    if (typeof document === 'string') return document
    const { text, image, ...others } = asObject(document)
    if (Object.keys(others).length > 0 || (text === undefined) === (image === undefined)) return undefined
    if (image === undefined) return text
    pictures += 1
    return asText(image).replace(/^data:.*/s, 'data')
  })
  return { documents, pictures }
}

function checked({ query: asked, documents }: Fields, maxTokens: number, refuse: (message: string) => never) {
  const query = asText(asked)
  const texts = rankedTexts(documents)
  if (query === '' || texts === undefined) return refuse('query and documents must not be empty')
  if (texts.length > MAX_DOCUMENTS) return refuse(`at most ${MAX_DOCUMENTS} documents are allowed`)
  const tokens = rankingTokens(query, texts)
  return tokens > maxTokens ? refuse(`at most ${maxTokens} tokens are allowed`) : { query, texts, tokens }
}
