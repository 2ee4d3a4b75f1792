import { asNumber, asObject, asText, isGiven } from '../model/loose-json.ts'
import { checkBearer } from '../openai-dialect/bearer-check.ts'
import { embeddingData, embeddingTokens, inputPromptText, inputTexts } from '../openai-dialect/embeddings-answer.ts'
import { jsonReply, RefusedCall, type SandboxOperation } from '../sandbox-operation.ts'
import { DASHSCOPE_ERRORS, DASHSCOPE_HEADERS, dashscopeInvalid } from './dashscope-errors.ts'

const MAX_INPUTS = 10
const USUAL_DIMENSIONS = 1024
const LARGEST_DIMENSIONS = 2048
const DIMENSIONS: Readonly<Record<string, readonly number[]>> = {
  'text-embedding-v4': [2048, 1536, 1024, 768, 512, 256, 128, 64],
  'text-embedding-v3': [1024, 768, 512],
}

/** DashScope: `POST /compatible-mode/v1/embeddings`. At most ten inputs, floats only. */
export const DASHSCOPE_EMBEDDINGS: SandboxOperation = {
  vendor: 'dashscope',
  operation: 'embeddings',
  errors: DASHSCOPE_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/compatible-mode/v1/embeddings',
  promptText: (body) => inputPromptText(asObject(body)),
  answer(call, context) {
    checkBearer(call, DASHSCOPE_ERRORS)
    const request = asObject(call.body)
    const model = asText(request['model'])
    if (model === '') throw new RefusedCall(dashscopeInvalid('you must provide a model parameter', 'model'))
    const texts = checkedTexts(request['input'])
    if (isGiven(request['encoding_format']) && request['encoding_format'] !== 'float') {
      refuse("encoding_format must be 'float'")
    }
    const dimensions = asNumber(request['dimensions']) ?? USUAL_DIMENSIONS
    const offered = DIMENSIONS[model] ?? [USUAL_DIMENSIONS]
    if (!offered.includes(dimensions))
      refuse(`Value error, dimension ${dimensions} is invalid, it should be in [${offered.join(', ')}].`)
    const tokens = embeddingTokens(texts)
    return jsonReply(200, DASHSCOPE_HEADERS, {
      data: embeddingData(texts, { dimensions, nativeDimensions: LARGEST_DIMENSIONS, base64: false }),
      model,
      object: 'list',
      usage: context.usage({ prompt_tokens: tokens, total_tokens: tokens }),
      id: `${context.id.slice(0, 8)}-${context.id.slice(8, 12)}`,
    })
  },
}

function checkedTexts(input: unknown): readonly string[] {
  const texts = inputTexts(input)
  const areWords =
    typeof input === 'string' || (Array.isArray(input) && input.every((entry) => typeof entry === 'string'))
  if (texts === undefined || texts.length === 0 || !areWords)
    return refuse('Value error, contents is neither str nor list of str.: input.contents')
  if (texts.length > MAX_INPUTS) {
    refuse(`Value error, batch size is invalid, it should not be larger than ${MAX_INPUTS}.: input.contents`)
  }
  return texts
}

function refuse(message: string): never {
  const text = `<400> InternalError.Algo.InvalidParameter: ${message}`
  throw new RefusedCall(dashscopeInvalid(text, null, 'InvalidParameter'))
}
