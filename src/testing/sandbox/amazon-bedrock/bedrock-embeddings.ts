import { embeddingTokens, unitVector } from '../model/embedding.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven } from '../request-fields.ts'
import { jsonReply, type SandboxOperation } from '../sandbox-operation.ts'
import { checkAccess, checkModelId } from './bedrock-access.ts'
import { awsRefusal, BEDROCK_ERRORS, BEDROCK_HEADERS } from './bedrock-errors.ts'

const PATH = /^\/bedrock\/model\/([^/]+)\/invoke$/
const MAX_COHERE_TEXTS = 96

/** Amazon Bedrock by InvokeModel: embeddings of Titan, Nova and Cohere, each in its own layout. */
export const BEDROCK_EMBEDDINGS: SandboxOperation = {
  vendor: 'amazon-bedrock',
  operation: 'embeddings',
  errors: BEDROCK_ERRORS,
  matches: ({ method, path }) => method === 'POST' && PATH.test(path),
  promptText: (body) => textsOf(asObject(body)).join('\n'),
  answer(call, context) {
    checkAccess(call, context.nowMs)
    const id = decodeURIComponent(PATH.exec(call.path)?.[1] ?? '')
    checkModelId(id)
    const request = asObject(call.body)
    const texts = textsOf(request)
    if (texts.length === 0 || texts.some((text) => text === '')) refuse('#: a text is required')
    const tokens = context.usage({ count: embeddingTokens(texts) })?.count
    const counted =
      tokens === undefined ? BEDROCK_HEADERS : [...BEDROCK_HEADERS, 'x-amzn-bedrock-input-token-count', String(tokens)]
    if (/titan-embed/.test(id)) {
      const embedding = unitVector(texts[0]!, asNumber(request['dimensions']) ?? 1024)
      return jsonReply(200, BEDROCK_HEADERS, {
        embedding,
        ...(tokens === undefined ? {} : { inputTextTokenCount: tokens }),
      })
    }
    if (/cohere\.embed/.test(id)) {
      if (texts.length > MAX_COHERE_TEXTS) refuse('#/texts: expected maximum item count: 96')
      if (!isGiven(request['input_type'])) refuse('#: required key [input_type] not found')
      const isNewer = /embed-v4/.test(id)
      const vectors = texts.map((text) =>
        unitVector(text, asNumber(request['output_dimension']) ?? (isNewer ? 1536 : 1024)),
      )
      return jsonReply(200, counted, { id: 'sandbox', texts, embeddings: isNewer ? { float: vectors } : vectors })
    }
    const params = asObject(request['singleEmbeddingParams'])
    const embedding = unitVector(texts[0]!, asNumber(params['embeddingDimension']) ?? 3072)
    return jsonReply(200, counted, { embeddings: [{ embeddingType: 'TEXT', embedding }] })
  },
}

function textsOf(request: Fields): string[] {
  if (Array.isArray(request['texts'])) return asList(request['texts']).map(asText)
  const value = request['inputText'] ?? asObject(asObject(request['singleEmbeddingParams'])['text'])['value']
  return typeof value === 'string' ? [value] : []
}

function refuse(message: string): never {
  throw awsRefusal(
    400,
    'ValidationException',
    `Malformed input request: ${message}, please reformat your input and try again.`,
  )
}
