import { Buffer } from 'node:buffer'
import type { BatchRun, BatchTimes } from '../batches/vendor-batches.ts'
import { withoutFaultMarks } from '../fault.ts'
import { drawCharacter, LINK_LIFE_MS, pictureLink, soundLink } from '../files/stored-files.ts'
import {
  embeddingAnswer,
  inputPromptText,
  inputWords,
  rankedTexts,
  ranking,
  rankingPromptText,
  rankingTokens,
  transcribeFixture,
} from '../model/embedding.ts'
import { batchOperations } from '../openai-dialect/batch-operations.ts'
import { COMPATIBLE_DIALECT, chatOperation, checkRanges, type NumberRanges } from '../openai-dialect/chat.ts'
import {
  asList,
  asNumber,
  asObject,
  asText,
  checkFields,
  type FieldRule,
  type Fields,
  isGiven,
  names,
  nothing,
  ofType,
  rule,
  wholeNumber,
} from '../request-fields.ts'
import {
  bearerAccess,
  eventText,
  headerList,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
  vendorErrors,
  vendorOperations,
} from '../sandbox-operation.ts'

/** `request_id` of every native answer, equal to the one in its headers. */
export const DASHSCOPE_REQUEST_ID = '5a1f7c10-sand-9b0e-box0-1d2c3b4a5f60'

/** Headers of every answer. DashScope sends no `retry-after` and no rate-limit headers. */
export const DASHSCOPE_HEADERS = headerList(`
  x-request-id: ${DASHSCOPE_REQUEST_ID}
  x-dashscope-call-gateway: true
  req-cost-time: 21
  server: istio-envoy
`)

const BAD_STANDING = 'Access denied, please make sure your account is in good standing.'
const SERVER_FAULT = '<500> InternalError.Algo: An internal error has occured.'

/** DashScope's errors in its OpenAI-compatible mode. */
export const DASHSCOPE_ERRORS = vendorErrors(
  {
    400: ['<400> InternalError.Algo.InvalidParameter: The request is invalid.', 'invalid_parameter_error'],
    401: ['Incorrect API key provided.', 'invalid_api_key'],
    403: ['Access denied.', 'access_denied'],
    404: ['The model does not exist or you do not have access to it.', 'model_not_found'],
    429: ['Requests rate limit exceeded, please try again later.', 'limit_requests'],
    500: [SERVER_FAULT, 'internal_error'],
    503: ['<503> InternalError.Algo: Model is unavailable, please try again later.', 'ModelUnavailable'],
  },
  (status, message, [code = '']) => compatibleError(status, message, null, code ?? ''),
  {
    quota: () => compatibleError(400, BAD_STANDING, null, 'Arrearage'),
    streamEvent() {
      const error = { message: SERVER_FAULT, type: 'internal_error', param: null, code: 'internal_error' }
      return eventText({ error, request_id: DASHSCOPE_REQUEST_ID })
    },
  },
)

function compatibleError(status: number, message: string, param: string | null, code: string): SandboxReply {
  const type = status === 400 && code === 'invalid_parameter_error' ? 'invalid_request_error' : code
  const error = { message, type, param, code }
  return jsonReply(status, DASHSCOPE_HEADERS, { error, request_id: DASHSCOPE_REQUEST_ID })
}

/** Rejects a request because of a field of it. */
function refuseDashscope(message: string, param: string | null, code = 'invalid_parameter_error'): never {
  throw new RefusedCall(compatibleError(400, message, param, code))
}

/** Makes operations of the OpenAI-compatible mode. */
const compatibleOperation = vendorOperations({
  vendor: 'dashscope',
  errors: DASHSCOPE_ERRORS,
  headers: DASHSCOPE_HEADERS,
  access: bearerAccess(DASHSCOPE_ERRORS),
})

const NATIVE_FAULT = 'An internal error has occurred, please try again later.'

/** DashScope's errors in its native API: `{ code, message, request_id }`. */
export const DASHSCOPE_NATIVE_ERRORS = vendorErrors(
  {
    400: ['The request is invalid.', 'InvalidParameter'],
    401: ['Invalid API-key provided.', 'InvalidApiKey'],
    403: ['Access denied.', 'AccessDenied'],
    404: ['Model not exist.', 'ModelNotFound'],
    429: ['Requests rate limit exceeded, please try again later.', 'Throttling.RateQuota'],
    500: [NATIVE_FAULT, 'InternalError'],
    503: ['Model is unavailable, please try again later.', 'ModelUnavailable'],
  },
  (status, message, [code = '']) => nativeError(status, message, code ?? ''),
  {
    quota: () => nativeError(400, BAD_STANDING, 'Arrearage'),
    streamEvent() {
      const error = { code: 'InternalError', message: NATIVE_FAULT, request_id: DASHSCOPE_REQUEST_ID }
      return `event:error\ndata:${JSON.stringify(error)}\n\n`
    },
  },
)

function nativeError(status: number, message: string, code: string): SandboxReply {
  return jsonReply(status, DASHSCOPE_HEADERS, { code, message, request_id: DASHSCOPE_REQUEST_ID })
}

/** Rejects a call with 400. */
export function refuseNative(message: string, code = 'InvalidParameter'): never {
  throw new RefusedCall(nativeError(400, message, code))
}

/** Makes operations of the native API. */
export const nativeOperation = vendorOperations({
  vendor: 'dashscope',
  errors: DASHSCOPE_NATIVE_ERRORS,
  headers: DASHSCOPE_HEADERS,
  access: bearerAccess(DASHSCOPE_NATIVE_ERRORS),
})

const MAX_SEED = 2 ** 31 - 1

/** Creates the row of a boolean setting. */
export function booleanRule(field: string): FieldRule {
  return rule(field, ofType('boolean'), `Input should be a valid boolean: parameters.${field}`)
}

/** Settings that images and videos share. */
export const SETTING_RULES: readonly FieldRule[] = [
  booleanRule('watermark'),
  booleanRule('prompt_extend'),
  rule('seed', wholeNumber(0, MAX_SEED), `seed must be in [0, ${MAX_SEED}]: parameters.seed`),
]

const CHAT_PATH = '/compatible-mode/v1/chat/completions'

const RANGES: NumberRanges = {
  presence_penalty: [-2, 2],
  n: [1, 4],
  seed: [0, 2 ** 31 - 1],
  max_tokens: [1, Number.MAX_SAFE_INTEGER],
  max_completion_tokens: [1, Number.MAX_SAFE_INTEGER],
}

const CHAT_RULES: readonly FieldRule[] = [
  rule(
    'temperature',
    (value) => Number(value) >= 0 && Number(value) < 2,
    "'temperature' must be Float and in [0.0, 2.0)",
  ),
  rule('top_p', (value) => Number(value) > 0 && Number(value) <= 1, "'top_p' must be Float and in (0.0, 1.0]"),
  rule('frequency_penalty', nothing, "'frequency_penalty' is not supported"),
  rule('tools', (value) => !Array.isArray(value) || value.length > 0, "[] is too short - 'tools'"),
]

const ROLES = ['system', 'assistant', 'user', 'tool', 'function']

/**
 * DashScope: `POST /compatible-mode/v1/chat/completions`. Sources of the rejections: the vendor's error list and the quirks that
 * public clients work around (no frequency penalty, no empty tool list, no `developer` role).
 */
const DASHSCOPE_CHAT = chatOperation(compatibleOperation, {
  post: CHAT_PATH,
  headers: DASHSCOPE_HEADERS,
  refuse: refuseDashscope,
  dialect: {
    ...COMPATIBLE_DIALECT,
    laterToolCallId: '',
    usageDetails: ({ cached, reasoning }) => ({
      prompt_tokens_details: { cached_tokens: cached },
      ...(reasoning > 0 ? { completion_tokens_details: { reasoning_tokens: reasoning } } : {}),
    }),
  },
  check(request, { batchId }, { blocked }) {
    checkRanges(request, RANGES, refuseDashscope)
    checkFields(request, CHAT_RULES, refuse)
    if (asList(request['tools']).some((tool) => asObject(asObject(tool)['function'])['name'] === 'search'))
      refuse("The name of a tool must not be 'search'", 'tools')
    for (const [position, message] of asList(request['messages']).entries()) {
      const role = asText(asObject(message)['role'])
      const roles = ROLES.map((name) => `'${name}'`).join(', ')
      if (!ROLES.includes(role)) refuse(`'${role}' is not one of [${roles}] - 'messages.${position}.role'`, 'messages')
    }
    if (isThinking(request) && asObject(request['response_format'])['type'] === 'json_object')
      refuse('Json mode response is not supported when enable_thinking is true', 'response_format')
    // Batches have whole answers of every model.
    if (batchId === undefined && request['stream'] !== true) checkWholeAnswer(request)
    const message = 'Input text data may contain inappropriate content.'
    if (blocked) refuseDashscope(message, null, 'data_inspection_failed')
  },
  bounds: (request) => ({
    reasoning: isThinking(request),
    maxTokens: asNumber(request['max_completion_tokens']),
    answerTokens: asNumber(request['max_tokens']),
  }),
})

/** Open-weight Qwen3 models think by default; the others think on request. */
function isThinking(request: Fields): boolean {
  if (isGiven(request['enable_thinking'])) return request['enable_thinking'] === true
  return /^qwen3-\d/.test(asText(request['model']))
}

function checkWholeAnswer(request: Fields): void {
  const model = asText(request['model'])
  if (/^q[wv]q|omni/.test(model))
    refuse('This model only support stream mode, please enable the stream parameter to access the model.', 'stream')
  if (/^qwen3-\d/.test(model) && isThinking(request))
    refuse('parameter.enable_thinking must be set to false for non-streaming calls', 'enable_thinking')
}

function refuse(message: string, param: string | null, code?: string): never {
  return refuseDashscope(`<400> InternalError.Algo.InvalidParameter: ${message}`, param, code)
}

const MAX_INPUTS = 10
const DEFAULT_DIMENSIONS = 1024
const LARGEST_DIMENSIONS = 2048
const DIMENSIONS: Readonly<Record<string, readonly number[]>> = {
  'text-embedding-v4': [2048, 1536, 1024, 768, 512, 256, 128, 64],
  'text-embedding-v3': [1024, 768, 512],
}

/** DashScope: `POST /compatible-mode/v1/embeddings`. At most ten inputs, floats only. */
const DASHSCOPE_EMBEDDINGS = compatibleOperation({
  operation: 'embeddings',
  post: '/compatible-mode/v1/embeddings',
  prompt: inputPromptText,
  json(_call, context, request) {
    const model = asText(request['model'])
    if (model === '') refuseDashscope('you must provide a model parameter', 'model')
    const refuseInput = (message: string): never => refuse(message, null, 'InvalidParameter')
    const texts = inputWords(request['input']) ?? []
    if (texts.length === 0) refuseInput('Value error, contents is neither str nor list of str.: input.contents')
    if (texts.length > MAX_INPUTS)
      refuseInput(`Value error, batch size is invalid, it should not be larger than ${MAX_INPUTS}.: input.contents`)
    if ((request['encoding_format'] ?? 'float') !== 'float') refuseInput("encoding_format must be 'float'")
    const dimensions = asNumber(request['dimensions']) ?? DEFAULT_DIMENSIONS
    const offered = DIMENSIONS[model] ?? [DEFAULT_DIMENSIONS]
    if (!offered.includes(dimensions))
      refuseInput(`Value error, dimension ${dimensions} is invalid, it should be in [${offered.join(', ')}].`)
    const answer = embeddingAnswer(texts, { model, dimensions, nativeDimensions: LARGEST_DIMENSIONS }, (tokens) =>
      context.usage({ prompt_tokens: tokens, total_tokens: tokens }),
    )
    return { ...answer, id: `${context.id.slice(0, 8)}-${context.id.slice(8, 12)}` }
  },
})

/** DashScope: Qwen-ASR by `POST /compatible-mode/v1/chat/completions`. It reports the seconds of the recording. */
const DASHSCOPE_TRANSCRIPTIONS = compatibleOperation({
  operation: 'transcriptions',
  post: CHAT_PATH,
  when: ({ body }) => /-asr-/.test(asText(asObject(body)['model'])),
  prompt: (request) => asText(contentOf(request, 'system')[0]?.['text']),
  json(_call, context, request) {
    const part = contentOf(request, 'user').find(({ type }) => type === 'input_audio')
    const data = asText(asObject(part?.['input_audio'])['data'])
    const base64 = /^data:audio\/[\w.-]+;base64,([A-Za-z0-9+/]+=*)$/.exec(data)?.[1]
    const heard = base64 === undefined ? undefined : transcribeFixture(Buffer.from(base64, 'base64'), context.script)
    if (heard === undefined) return refuseDashscope('The audio cannot be decoded.', null)
    const annotations = [{ type: 'audio_info', language: 'en', emotion: 'neutral' }]
    const message = { role: 'assistant', content: heard.text, annotations }
    return {
      id: `chatcmpl-${context.id}`,
      object: 'chat.completion',
      created: Math.floor(context.nowMs / 1000),
      model: asText(request['model']),
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage: context.usage({ seconds: heard.seconds, prompt_tokens: 42, completion_tokens: heard.tokens }),
    }
  },
})

/** Returns the parts of the first message of a role. */
function contentOf(request: Fields, role: string): Fields[] {
  const turn = asList(request['messages']).find((message) => asObject(message)['role'] === role)
  return asList(asObject(turn)['content']).map(asObject)
}

const HOUR_MS = 60 * 60 * 1000

/** DashScope: `/compatible-mode/v1/files` and `…/batches`, with those of one sandbox (Model Studio, "OpenAI compatible - Batch"). */
export function dashscopeBatches(run: BatchRun, times: BatchTimes): SandboxOperation[] {
  const dialect = {
    operation: compatibleOperation,
    basePath: '/compatible-mode/v1',
    urlPrefix: '/compatible-mode',
    errors: DASHSCOPE_ERRORS,
    headers: DASHSCOPE_HEADERS,
    refuse: refuseDashscope,
    fileIdPrefix: 'file-batch-',
    endpoints: ['/v1/chat/completions', '/v1/embeddings'],
    windowMs,
    maxFileBytes: 500 * 1024 * 1024,
  }
  return batchOperations(dialect, run, times)
}

/** 24 to 336 hours, as `24h` or `14d`. */
function windowMs(window: unknown): number | undefined {
  const [, digits, unit] = /^(\d{1,3})([hd])$/.exec(String(window)) ?? []
  const hours = Number(digits) * (unit === 'd' ? 24 : 1)
  return hours >= 24 && hours <= 336 ? hours * HOUR_MS : undefined
}

const MAX_DOCUMENTS = 500
const MAX_TOKENS = 120_000
const NATIVE_MAX_TOKENS = 30_000
const MAX_PICTURES = 40
const PICTURE_TOKENS = 250

/** DashScope: `POST /compatible-api/v1/reranks`, for `qwen3-rerank` (Model Studio, text rerank). */
const DASHSCOPE_RERANK = compatibleOperation({
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
const DASHSCOPE_NATIVE_RERANK = nativeOperation({
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

const PATH = '/api/v1/services/aigc/multimodal-generation/generation'

/** An edited image keeps the proportions of the last given one and has about this size. Here it is a square. */
const EDITED: PictureSize = { width: 1024, height: 1024 }

/**
 * DashScope: `POST /api/v1/services/aigc/multimodal-generation/generation` for images (Qwen-Image text to image, image editing;
 * error texts: error codes page). Speech has the same path. The answer links to an image of the right size, which `PICTURE_FILES`
 * draws.
 */
export const DASHSCOPE_IMAGES = nativeOperation({
  operation: 'images',
  post: PATH,
  when: ({ body }) => !isSpeech(body),
  prompt: (request) => membersOf(request, 'text').join('\n'),
  json(call, context, request) {
    const rules = checkedRules(call, IMAGE_RULES.find(([name]) => asText(request['model']).startsWith(name))?.[1])
    checkMessages(request, rules)
    const parameters = asObject(request['parameters'])
    checkParameters(parameters, rules)
    if (context.blocked) refuseNative('Input data may contain inappropriate content.', 'DataInspectionFailed')
    const isEdit = membersOf(request, 'image').length > 0
    const size = sizeOf(parameters['size']) ?? (isEdit ? undefined : rules.textDefault) ?? EDITED
    const count = asNumber(parameters['n']) ?? 1
    const content = Array.from({ length: count }, (_, index) => {
      const seed = index === 0 ? context.id : `${context.id}.${index}`
      return { image: pictureLink(call, { ...size, seed, format: 'png' }, context.nowMs) }
    })
    return {
      request_id: DASHSCOPE_REQUEST_ID,
      output: { choices: [{ finish_reason: 'stop', message: { role: 'assistant', content } }] },
      usage: context.usage({ image_count: count, ...size }),
    }
  },
})

/** The model decides the kind of a request. An image model does not speak a text next to its messages. */
function isSpeech(body: unknown): boolean {
  const { model, input } = asObject(body)
  const isImageModel = IMAGE_RULES.some(([name]) => asText(model).startsWith(name))
  return typeof asObject(input)['text'] === 'string' && !isImageModel
}

/** Checks the mode of a call and that its model has rules. */
function checkedRules<Rules>({ headers, body }: SandboxCall, rules: Rules | undefined): Rules {
  if (isGiven(headers['x-dashscope-async'])) {
    const message = 'Current user api does not support asynchronous calls.'
    throw new RefusedCall(DASHSCOPE_NATIVE_ERRORS.status(403, message))
  }
  if (asText(asObject(body)['model']) === '')
    refuseNative('Required parameter "model" missing from request.', 'BadRequest.EmptyModel')
  if (rules === undefined) throw new RefusedCall(DASHSCOPE_NATIVE_ERRORS.status(404))
  return rules
}

function checkMessages(request: Fields, { images }: DashScopeImageRules): void {
  const messages = asList(asObject(request['input'])['messages'])
  if (messages.length === 0) refuseNative('No messages found in input')
  if (messages.length > 1) refuseNative('messages length only support 1')
  if (asObject(messages[0])['role'] !== 'user') refuseNative("the role of a message must be 'user'")
  const [texts, pictures] = [membersOf(request, 'text'), membersOf(request, 'image')]
  if (texts.join('') === '' || pictures.length < images.min) refuseNative('lack of image or text')
  if (pictures.length > images.max || texts.length > 1) refuseNative(`content length only support ${images.max + 1}`)
  if (!pictures.every((url) => /^(?:https?:\/\/|oss:\/\/|data:image\/)/.test(url)))
    refuseNative('download image failed')
}

function checkParameters(parameters: Fields, { maxAnswers, takesSize }: DashScopeImageRules): void {
  const takesThisSize = (value: unknown): boolean => {
    const size = sizeOf(value)
    return size !== undefined && takesSize?.(size) === true
  }
  if (maxAnswers === 1 && (parameters['n'] ?? 1) !== 1) refuseNative('num_images_per_prompt must be 1.')
  const rules = [
    rule('n', wholeNumber(1, maxAnswers), `n must be in [1, ${maxAnswers}]: parameters.n`),
    ...SETTING_RULES,
    rule('size', takesThisSize, 'size is not supported: parameters.size'),
    rule('prompt_extend', () => takesSize !== undefined, 'prompt_extend is not supported: parameters.prompt_extend'),
  ]
  checkFields(parameters, rules, (text) => refuseNative(text))
}

function sizeOf(value: unknown): PictureSize | undefined {
  const [, width, height] = /^([1-9]\d{0,4})\*([1-9]\d{0,4})$/.exec(asText(value)) ?? []
  return width === undefined || height === undefined ? undefined : { width: Number(width), height: Number(height) }
}

/** Returns the texts or images of the first message. */
function membersOf(request: Fields, name: 'text' | 'image'): string[] {
  const [message] = asList(asObject(request['input'])['messages'])
  const content = asList(asObject(message)['content']).map((block) => asObject(block)[name])
  return content.filter(isGiven).map(asText)
}

/** Size of an image in pixels. */
interface PictureSize {
  readonly width: number
  readonly height: number
}

/** Limits of an image model. */
interface DashScopeImageRules {
  /** Number of images in a request. */
  readonly images: { readonly min: number; readonly max: number }
  readonly maxAnswers: number
  /** Whether a size is accepted. If omitted, the model has no `size` and no `prompt_extend`. */
  readonly takesSize?: (size: PictureSize) => boolean
  /** Default size of text to image. Models without one only edit. */
  readonly textDefault?: PictureSize
}

const WIDE: PictureSize = { width: 1664, height: 928 }
const SQUARE: PictureSize = { width: 2048, height: 2048 }

const byArea = ({ width, height }: PictureSize): boolean => width * height >= 512 ** 2 && width * height <= 2048 ** 2
const bySide = ({ width, height }: PictureSize): boolean =>
  Math.min(width, height) >= 512 && Math.max(width, height) <= 2048
const FIXED_SIZES = names('1664*928 1472*1104 1328*1328 1104*1472 928*1664')
const byList = ({ width, height }: PictureSize): boolean => FIXED_SIZES.has(`${width}*${height}`)

const NONE = { min: 0, max: 0 }
const ANY = { min: 0, max: 3 }
const SOME = { min: 1, max: 3 }

/** Rules by the longest matching prefix of the model's name, because dated ids follow the same rules. */
const IMAGE_RULES: readonly (readonly [name: string, rules: DashScopeImageRules])[] = [
  ['qwen-image-edit-plus', { images: SOME, maxAnswers: 6, takesSize: bySide }],
  ['qwen-image-edit-max', { images: SOME, maxAnswers: 6, takesSize: bySide }],
  ['qwen-image-edit', { images: SOME, maxAnswers: 1 }],
  ['qwen-image-2.0', { images: ANY, maxAnswers: 6, takesSize: byArea, textDefault: SQUARE }],
  ['qwen-image-max', { images: NONE, maxAnswers: 1, takesSize: byArea, textDefault: WIDE }],
  ['qwen-image', { images: NONE, maxAnswers: 1, takesSize: byList, textDefault: WIDE }],
]

/**
 * DashScope: `POST /api/v1/services/aigc/multimodal-generation/generation` for speech (Qwen-TTS; error texts: error codes page).
 * Images have the same path but messages in place of `input.text`. Each character is a tone of 60 ms and one event. Without
 * `X-DashScope-SSE`, the answer links to a file, which `SOUND_FILES` draws. Fault marks in the text are not spoken.
 */
const DASHSCOPE_SPEECH = nativeOperation({
  operation: 'speech',
  post: PATH,
  when: ({ body }) => isSpeech(body),
  prompt: ({ input }) => asText(asObject(input)['text']),
  answer(call, context, { model, input }) {
    const rules = checkedRules(call, SPEECH_RULES.get(asText(model)))
    checkSpeech(asObject(input), rules)
    if (context.blocked) refuseNative('Input text data may contain inappropriate content.', 'DataInspectionFailed')
    const text = withoutFaultMarks(asText(asObject(input)['text']))
    const id = `audio_${context.id}`
    const usage = context.usage({ characters: spokenCharacters(text) })
    const expiresAt = Math.floor((context.nowMs + LINK_LIFE_MS) / 1000)
    const file = { data: '', url: soundLink(call, text, context.nowMs), id, expires_at: expiresAt }
    const output = { finish_reason: 'stop', audio: file }
    if (call.headers['x-dashscope-sse'] !== 'enable')
      return jsonReply(200, DASHSCOPE_HEADERS, { request_id: DASHSCOPE_REQUEST_ID, output, usage })
    const events = Array.from(text, (character, index) => {
      const audio = { data: drawCharacter(character).toString('base64'), id, expires_at: 0 }
      return eventOf(index + 1, { output: { finish_reason: 'null', audio } })
    })
    const last = eventOf(events.length + 1, { output, usage })
    return streamReply(DASHSCOPE_HEADERS, [...events, last], events[0] ?? last)
  },
})

function eventOf(id: number, data: object): string {
  const json = JSON.stringify({ ...data, request_id: DASHSCOPE_REQUEST_ID })
  return `id:${id}\nevent:result\n:HTTP_STATUS/200\ndata:${json}\n\n`
}

function checkSpeech({ text, voice, instructions }: Fields, rules: DashScopeSpeechRules): void {
  if (!isGiven(voice)) refuseNative('Field required: input.voice')
  if (!rules.voices.includes(asText(voice))) refuseNative(`The requested voice '${asText(voice)}' is not supported.`)
  const length = spokenCharacters(asText(text))
  if (length === 0 || length > MAX_SPOKEN_CHARACTERS)
    refuseNative(`Range of input length should be [1, ${MAX_SPOKEN_CHARACTERS}]: input.text`)
  if (isGiven(instructions) && !rules.takesInstructions)
    refuseNative('instructions is not supported: input.instructions')
}

/** Maximum characters of a text. An ideograph counts as two, the stricter of two readings of the vendor's page. */
const MAX_SPOKEN_CHARACTERS = 600

/** Limits of a speech model. */
interface DashScopeSpeechRules {
  readonly voices: readonly string[]
  readonly takesInstructions: boolean
}

const SHARED = 'Cherry Serena Ethan Chelsie Momo Vivian Moon Maia Kai Nofish Bella'.split(' ')

/** Rules by model (Model Studio, Qwen-TTS). */
const SPEECH_RULES: ReadonlyMap<string, DashScopeSpeechRules> = new Map([
  ['qwen3-tts-flash', { voices: [...SHARED, 'Jennifer', 'Ryan', 'Katerina', 'Aiden'], takesInstructions: false }],
  ['qwen3-tts-instruct-flash', { voices: SHARED, takesInstructions: true }],
])

/** Returns the number of characters that a text counts as. */
function spokenCharacters(text: string): number {
  return Array.from(text).length + (text.match(/[\p{Script=Han}\p{Script=Hangul}]/gu)?.length ?? 0)
}

/** Operations of DashScope that store nothing. A transcription is a chat, and comes first. */
export const DASHSCOPE_OPERATIONS: readonly SandboxOperation[] = [
  DASHSCOPE_TRANSCRIPTIONS,
  DASHSCOPE_CHAT,
  DASHSCOPE_EMBEDDINGS,
  DASHSCOPE_SPEECH,
  DASHSCOPE_IMAGES,
  DASHSCOPE_RERANK,
  DASHSCOPE_NATIVE_RERANK,
]
