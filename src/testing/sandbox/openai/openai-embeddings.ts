import { type Preset, presets } from '../../../vendors/presets/presets.ts'
import type { BatchRun, BatchTimes } from '../batches/vendor-batches.ts'
import { embeddingData, embeddingTokens, inputPromptText, inputTexts } from '../model/embedding.ts'
import { batchOperations } from '../openai-dialect/batch-operations.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven } from '../request-fields.ts'
import {
  type AnswerContext,
  checkBearer,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
} from '../sandbox-operation.ts'
import { OPENAI_ERRORS, OPENAI_HEADERS, openaiInvalid } from './openai-models.ts'

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

/** Mistral's own categories, which differ from OpenAI's (Mistral, "Moderation"). */
const MISTRAL_CATEGORIES: readonly string[] = [
  'sexual',
  'hate_and_discrimination',
  'violence_and_threats',
  'dangerous_and_criminal_content',
  'selfharm',
  'health',
  'financial',
  'law',
  'pii',
]

/** Score of a category that the input names, and of others. */
const NAMED = 0.95
const UNNAMED = 0.0001
const MIN_FLAGGED_SCORE = 0.5

/**
 * OpenAI: `POST /v1/moderations`. A category that the input names, such as `violence` or `sexual/minors`, scores 0.95, and others
 * score 0.0001, unless a script sets scores. Scores from 0.5 on are flagged.
 */
export const OPENAI_MODERATIONS: SandboxOperation = {
  vendor: 'openai',
  operation: 'moderations',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/moderations',
  promptText: (body) => textOf(asObject(body)['input']),
  answer(call, context) {
    checkBearer(call, OPENAI_ERRORS)
    const { input, model = 'omni-moderation-latest' } = asObject(call.body)
    const given = inputsOf(input)
    if (given === undefined) throw invalidInput()
    const results = given.map((parts) => {
      const scores = scoresOf(Object.keys(OMNI_CATEGORIES), textOf(parts), context)
      const categories = flags(scores)
      return {
        flagged: Object.values(categories).includes(true),
        categories,
        category_scores: scores,
        category_applied_input_types: appliedTypes(asList(parts)),
      }
    })
    return jsonReply(200, OPENAI_HEADERS, { id: `modr-${context.id}`, model, results })
  },
}

const PRESET_PATH = /^\/presets\/([a-z0-9-]+)(?:\/v\d+)?\/moderations$/

/** Servers of `signalbox/presets` that moderate: `POST /presets/ID/v1/moderations`. Text only, without an overall flag. */
export const PRESET_MODERATIONS: SandboxOperation = {
  ...OPENAI_MODERATIONS,
  vendor: 'presets',
  matches: ({ method, path }) => method === 'POST' && servingPreset(path) !== undefined,
  answer: (call, context) => {
    if (servingPreset(call.path)?.needsKey === true) checkBearer(call, OPENAI_ERRORS)
    return mistralAnswer(call, context)
  },
}

function servingPreset(path: string): Preset | undefined {
  const preset = Object.values<Preset>(presets).find(({ id }) => id === PRESET_PATH.exec(path)?.[1])
  return preset?.serves.includes('moderations') === true ? preset : undefined
}

function mistralAnswer(call: SandboxCall, context: AnswerContext): SandboxReply {
  const { input, model } = asObject(call.body)
  const given = inputsOf(input)
  if (given === undefined || !given.every((text) => typeof text === 'string')) throw invalidInput()
  const results = given.map((text) => {
    const scores = scoresOf(MISTRAL_CATEGORIES, text, context)
    return { categories: flags(scores), category_scores: scores }
  })
  return jsonReply(200, OPENAI_HEADERS, { id: context.id, model, results })
}

function invalidInput(): RefusedCall {
  return new RefusedCall(openaiInvalid("'$.input' is invalid. Please check the API reference.", null))
}

/** Returns the inputs that get a result each, or `undefined` for an input of another form. */
function inputsOf(input: unknown): readonly unknown[] | undefined {
  if (typeof input === 'string') return [input]
  const list = asList(input)
  if (list.length === 0) return undefined
  if (list.every((entry) => typeof entry === 'string')) return list
  return list.every(isPart) ? [list] : undefined
}

function isPart(entry: unknown): boolean {
  const { type, text, image_url: picture } = asObject(entry)
  if (type === 'text') return typeof text === 'string'
  return type === 'image_url' && asText(asObject(picture)['url']) !== ''
}

/** Returns all texts and addresses of an input. */
function textOf(input: unknown): string {
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

function scoresOf(categories: readonly string[], text: string, { script }: AnswerContext): Record<string, number> {
  const words = new Set(text.toLowerCase().split(/[^a-z/_-]+/))
  return Object.fromEntries(
    categories.map((name) => [name, script?.scores?.[name] ?? (words.has(name) ? NAMED : UNNAMED)]),
  )
}

function flags(scores: Readonly<Record<string, number>>): Record<string, boolean> {
  return Object.fromEntries(Object.entries(scores).map(([name, score]) => [name, score >= MIN_FLAGGED_SCORE]))
}

function appliedTypes(parts: readonly unknown[]): Record<string, readonly string[]> {
  const has = (type: string): boolean => parts.some((part) => asObject(part)['type'] === type)
  const isText = parts.length === 0 || has('text')
  return Object.fromEntries(
    Object.entries(OMNI_CATEGORIES).map(([name, readsPictures]) => [
      name,
      [...(isText ? ['text'] : []), ...(readsPictures && has('image_url') ? ['image'] : [])],
    ]),
  )
}

const DAY_MS = 24 * 60 * 60 * 1000

/** OpenAI: `/v1/files` and `/v1/batches`, with those of one sandbox. */
export function openaiBatches(run: BatchRun, times: BatchTimes): SandboxOperation[] {
  return batchOperations(
    {
      vendor: 'openai',
      basePath: '/v1',
      urlPrefix: '',
      errors: OPENAI_ERRORS,
      headers: OPENAI_HEADERS,
      invalid: openaiInvalid,
      fileIdPrefix: 'file-',
      endpoints: ['/v1/responses', '/v1/chat/completions', '/v1/embeddings', '/v1/moderations'],
      windowMs: (window) => (window === '24h' ? DAY_MS : undefined),
      maxRequests: 50_000,
      maxFileBytes: 200 * 1024 * 1024,
    },
    run,
    times,
  )
}
