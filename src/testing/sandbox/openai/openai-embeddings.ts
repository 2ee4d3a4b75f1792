import type { BatchRun, BatchTimes } from '../batches/vendor-batches.ts'
import { embeddingAnswer, inputPromptText, inputTexts } from '../model/embedding.ts'
import { batchOperations } from '../openai-dialect/batch-operations.ts'
import { asList, asObject, asText, type Fields, isGiven } from '../request-fields.ts'
import type { AnswerContext, SandboxOperation } from '../sandbox-operation.ts'
import { OPENAI_ERRORS, OPENAI_HEADERS, openaiOperation, refuseOpenai } from './openai-models.ts'

const NATIVE_DIMENSIONS: Readonly<Record<string, number>> = { 'text-embedding-3-large': 3072 }
const DEFAULT_DIMENSIONS = 1536
const MAX_INPUTS = 2048

/** OpenAI: `POST /v1/embeddings`. Floats unless base64 is requested; `dimensions` on the third generation only. */
export const OPENAI_EMBEDDINGS = openaiOperation({
  operation: 'embeddings',
  post: '/v1/embeddings',
  prompt: inputPromptText,
  json(_call, context, request) {
    const model = asText(request['model'])
    if (model === '') refuseOpenai('you must provide a model parameter', 'model')
    const texts = inputTexts(request['input']) ?? []
    if (texts.length === 0 || texts.length > MAX_INPUTS || texts.includes('')) refuseInput()
    const nativeDimensions = NATIVE_DIMENSIONS[model] ?? DEFAULT_DIMENSIONS
    const dimensions = checkedDimensions(request['dimensions'], model, nativeDimensions)
    const format = request['encoding_format'] ?? 'float'
    if (format !== 'float' && format !== 'base64') {
      const message = "Invalid 'encoding_format': must be 'float' or 'base64'."
      refuseOpenai(message, 'encoding_format', 'invalid_value')
    }
    return embeddingAnswer(texts, { model, dimensions, nativeDimensions, isBase64: format === 'base64' }, (tokens) =>
      context.usage({ prompt_tokens: tokens, total_tokens: tokens }),
    )
  },
})

/** Rejects an input of another form. */
export function refuseInput(): never {
  return refuseOpenai("'$.input' is invalid. Please check the API reference.", null)
}

function checkedDimensions(value: unknown, model: string, native: number): number {
  if (!isGiven(value)) return native
  if (!model.startsWith('text-embedding-3')) refuseOpenai('This model does not support specifying dimensions.', null)
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= native) return value
  const message = `Invalid value for 'dimensions' = ${JSON.stringify(value)}. Must be between 1 and ${native}.`
  return refuseOpenai(message, 'dimensions')
}

/** Categories of the omni models, and whether they also judge images. */
const OMNI_CATEGORIES: Readonly<Record<string, boolean>> = {
  harassment: false,
  'harassment/threatening': false,
  sexual: true,
  hate: false,
  'hate/threatening': false,
  illicit: false,
  'illicit/violent': false,
  'self-harm/intent': true,
  'self-harm/instructions': true,
  'self-harm': true,
  'sexual/minors': false,
  violence: true,
  'violence/graphic': true,
}

/** Score of a category that the input names, and of others. */
const NAMED = 0.95
const UNNAMED = 0.0001
const MIN_FLAGGED_SCORE = 0.5

/**
 * OpenAI: `POST /v1/moderations`. A category that the input names, such as `violence` or `sexual/minors`, scores 0.95, and others
 * score 0.0001, unless a script sets scores. Scores from 0.5 on are flagged.
 */
export const OPENAI_MODERATIONS = openaiOperation({
  operation: 'moderations',
  post: '/v1/moderations',
  prompt: moderationPromptText,
  json(_call, context, { input, model = 'omni-moderation-latest' }) {
    const results = moderationInputs(input).map((parts) => {
      const scores = moderationScores(Object.keys(OMNI_CATEGORIES), parts, context)
      return {
        flagged: Object.values(scores.categories).includes(true),
        ...scores,
        category_applied_input_types: appliedTypes(asList(parts)),
      }
    })
    return { id: `modr-${context.id}`, model, results }
  },
})

/** Returns the inputs that get a result each. */
export function moderationInputs(input: unknown): readonly unknown[] {
  if (typeof input === 'string') return [input]
  const list = asList(input)
  if (list.length === 0) refuseInput()
  if (list.every((entry) => typeof entry === 'string')) return list
  return list.every(isPart) ? [list] : refuseInput()
}

function isPart(entry: unknown): boolean {
  const { type, text, image_url: picture } = asObject(entry)
  if (type === 'text') return typeof text === 'string'
  return type === 'image_url' && asText(asObject(picture)['url']) !== ''
}

/** Returns all texts and addresses of a request. */
export function moderationPromptText({ input }: Fields): string {
  if (typeof input === 'string') return input
  return asList(input)
    .map((entry) => (typeof entry === 'string' ? entry : partText(asObject(entry))))
    .join('\n')
}

/** Returns a text, or the file name of an image: `violence` of `https://pictures.example/violence.png`. */
function partText({ text, image_url: picture }: Fields): string {
  const url = asText(asObject(picture)['url'])
  return url === '' ? asText(text) : (/([^/]*)\.\w+$/.exec(url)?.[1] ?? '')
}

/** Returns the scores of an input, and which of them are flagged. */
export function moderationScores(names: readonly string[], input: unknown, { script }: AnswerContext) {
  const words = new Set(
    moderationPromptText({ input })
      .toLowerCase()
      .split(/[^a-z/_-]+/),
  )
  const scores = names.map((name) => [name, script?.scores?.[name] ?? (words.has(name) ? NAMED : UNNAMED)] as const)
  const categories = Object.fromEntries(scores.map(([name, score]) => [name, score >= MIN_FLAGGED_SCORE]))
  return { categories, category_scores: Object.fromEntries(scores) }
}

function appliedTypes(parts: readonly unknown[]): Fields {
  const has = (type: string): boolean => parts.some((part) => asObject(part)['type'] === type)
  const isText = parts.length === 0 || has('text')
  const types = Object.entries(OMNI_CATEGORIES).map(([name, readsPictures]) => [
    name,
    [...(isText ? ['text'] : []), ...(readsPictures && has('image_url') ? ['image'] : [])],
  ])
  return Object.fromEntries(types)
}

/** OpenAI: `/v1/files` and `/v1/batches`, with those of one sandbox. */
export function openaiBatches(run: BatchRun, times: BatchTimes): SandboxOperation[] {
  const dialect = {
    operation: openaiOperation,
    basePath: '/v1',
    urlPrefix: '',
    errors: OPENAI_ERRORS,
    headers: OPENAI_HEADERS,
    refuse: refuseOpenai,
    fileIdPrefix: 'file-',
    endpoints: ['/v1/responses', '/v1/chat/completions', '/v1/embeddings', '/v1/moderations'],
    windowMs: (window: unknown) => (window === '24h' ? 24 * 60 * 60 * 1000 : undefined),
    maxFileBytes: 200 * 1024 * 1024,
  }
  return batchOperations(dialect, run, times)
}
