import { embeddingData, embeddingTokens, inputPromptText, inputTexts } from '../model/embedding.ts'
import { asNumber, asObject, asText, isGiven } from '../request-fields.ts'
import { checkBearer, jsonReply, RefusedCall, type SandboxOperation } from '../sandbox-operation.ts'
import { OPENAI_ERRORS, OPENAI_HEADERS, openaiInvalid } from './openai-errors.ts'

const NATIVE_DIMENSIONS: Readonly<Record<string, number>> = { 'text-embedding-3-large': 3072 }
const USUAL_DIMENSIONS = 1536
const MAX_INPUTS = 2048

/** OpenAI: `POST /v1/embeddings`. Floats unless base64 is requested; `dimensions` on the third generation only. */
export const OPENAI_EMBEDDINGS: SandboxOperation = {
  vendor: 'openai',
  operation: 'embeddings',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/embeddings',
  promptText: (body) => inputPromptText(asObject(body)),
  answer(call, context) {
    checkBearer(call, OPENAI_ERRORS)
    const request = asObject(call.body)
    const model = asText(request['model'])
    if (model === '') throw new RefusedCall(openaiInvalid('you must provide a model parameter', 'model'))
    const texts = checkedTexts(request['input'])
    const nativeDimensions = NATIVE_DIMENSIONS[model] ?? USUAL_DIMENSIONS
    const dimensions = checkedDimensions(request['dimensions'], model, nativeDimensions)
    const format = checkedFormat(request['encoding_format'])
    const tokens = embeddingTokens(texts)
    return jsonReply(200, OPENAI_HEADERS, {
      object: 'list',
      data: embeddingData(texts, { dimensions, nativeDimensions, base64: format === 'base64' }),
      model,
      usage: context.usage({ prompt_tokens: tokens, total_tokens: tokens }),
    })
  },
}

function checkedTexts(input: unknown): readonly string[] {
  const texts = inputTexts(input)
  if (texts === undefined || texts.length === 0 || texts.length > MAX_INPUTS || texts.includes('')) {
    throw new RefusedCall(openaiInvalid("'$.input' is invalid. Please check the API reference.", null))
  }
  return texts
}

function checkedDimensions(value: unknown, model: string, native: number): number {
  if (!isGiven(value)) return native
  if (!model.startsWith('text-embedding-3')) {
    throw new RefusedCall(openaiInvalid('This model does not support specifying dimensions.', null))
  }
  const dimensions = asNumber(value) ?? 0
  if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > native) {
    throw new RefusedCall(
      openaiInvalid(
        `Invalid value for 'dimensions' = ${JSON.stringify(value)}. Must be between 1 and ${native}.`,
        'dimensions',
      ),
    )
  }
  return dimensions
}

function checkedFormat(value: unknown): string {
  if (!isGiven(value)) return 'float'
  if (value === 'float' || value === 'base64') return value
  throw new RefusedCall(
    openaiInvalid("Invalid 'encoding_format': must be 'float' or 'base64'.", 'encoding_format', 'invalid_value'),
  )
}
