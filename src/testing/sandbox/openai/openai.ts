import { Buffer } from 'node:buffer'
import type { BatchRun, BatchTimes } from '../batches/vendor-batches.ts'
import { drawSound, wavFile } from '../files/stored-files.ts'
import { embeddingAnswer, inputPromptText, inputTexts, transcribeFixture } from '../model/embedding.ts'
import { batchOperations } from '../openai-dialect/batch-operations.ts'
import { COMPATIBLE_DIALECT, chatOperation, checkRanges, type NumberRanges } from '../openai-dialect/chat.ts'
import { type FormPart, formParts, formText } from '../openai-dialect/form-parts.ts'
import { asList, asObject, asText, type Fields, isGiven, names } from '../request-fields.ts'
import {
  type AnswerContext,
  bearerAccess,
  eventText,
  fileReply,
  headerList,
  jsonReply,
  keyAccess,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
  vendorErrors,
  vendorOperations,
} from '../sandbox-operation.ts'

/** Models without chat completions, including dated ids (OpenAI, "Models": the endpoints of each). */
const RESPONSES_ONLY =
  /^(?:o\d-pro|gpt-\d+(?:\.\d+)?-(?:pro|codex(?:-\w+)?|cyber|rosalind|\w+-law)|gpt-(?:daybreak|rosalind)-[\w-]+|codex-mini-latest|o\d(?:-mini)?-deep-research|computer-use-preview)(?:-\d{4}-\d{2}-\d{2})?$/

/** Whether OpenAI offers a model only through `/v1/responses`. */
export function isResponsesOnly(model: string): boolean {
  return RESPONSES_ONLY.test(model)
}

/** Returns the version of a GPT model from its id, such as 504 for `gpt-5.4-mini` and 600 for `gpt-6-sol`. Other ids are 0. */
function gptVersion(model: string): number {
  const [, major = '0', minor = '0'] = /^(?:ft:)?gpt-(\d|[12]\d)(?!\d)(?:\.(\d+))?/.exec(model) ?? []
  return Number(major) * 100 + Number(minor)
}

/**
 * Efforts of models. The first matching pattern counts (OpenAI, "Models": the page of each; the error text is in
 * https://github.com/anomalyco/opencode/issues/4451).
 */
const EFFORTS: readonly (readonly [pattern: RegExp, efforts: string])[] = [
  [/^(?:gpt-[34]|chatgpt|gpt-[\d.]+-chat|o1-(?:mini|preview))/, ''],
  [/^(?:o\d|gpt-5(?:\.1)?-codex(?!-max))/, 'low medium high'],
  [/^gpt-5-pro/, 'high'],
  [/^gpt-5\.\d-pro/, 'medium high xhigh'],
  [/^gpt-5\.[1-3]-codex/, 'none low medium high xhigh'],
  [/^gpt-5(?!\.)/, 'minimal low medium high'],
  [/^gpt-5\.1/, 'none low medium high'],
  [/^gpt-5\.[2-5]/, 'none low medium high xhigh'],
  [/^gpt-6(?:-astra|\.1-sol|\.2-)/, 'low medium high xhigh max'],
  [/^gpt-/, 'none low medium high xhigh max'],
  [/^/, 'none minimal low medium high xhigh max'],
]

/** Rejects a reasoning effort that a model does not have. */
export function checkEffort(model: string, effort: string, param: string): void {
  if (effort === '') return
  const efforts = EFFORTS.find(([pattern]) => pattern.test(model.replace(/^ft:/, '')))?.[1].split(' ') ?? []
  if (efforts.includes(effort)) return
  if (efforts[0] === '') refuseParameter(param)
  const supported = efforts.map((one) => `'${one}'`).join(', ')
  const message = `Unsupported value: '${effort}' is not supported with the '${model}' model. Supported values are: ${supported}.`
  refuseOpenai(message, param, 'unsupported_value')
}

/** Returns the id in answers. Models from gpt-5.6 on have no dated ids. */
export function answerModel(model: string, date = '2026-03-05'): string {
  return /-\d{4}-\d{2}-\d{2}$/.test(model) || gptVersion(model) >= 506 ? model : `${model}-${date}`
}

/** Headers of every answer. None of them is meant for the gateway's caller. */
export const OPENAI_HEADERS = headerList(`
  openai-organization: org-sandbox
  openai-processing-ms: 12
  openai-version: 2020-10-01
  x-request-id: req_sandbox_openai
  x-ratelimit-limit-requests: 10000
  x-ratelimit-remaining-requests: 9999
  x-ratelimit-reset-requests: 6ms
  set-cookie: __cf_bm=sandbox; path=/; HttpOnly; Secure
  set-cookie: _cfuvid=sandbox; path=/; HttpOnly; Secure
`)

const SERVER_FAULT = 'The server had an error while processing your request.'

/** OpenAI's errors. */
export const OPENAI_ERRORS = vendorErrors(
  {
    400: ['The request is invalid.', 'invalid_request_error', null],
    401: ['Incorrect API key provided: ********.', 'invalid_request_error', 'invalid_api_key'],
    403: ['You do not have permission to use this resource.', 'permission_error', null],
    404: ['The model does not exist or you do not have access to it.', 'invalid_request_error', 'model_not_found'],
    429: ['Rate limit reached on requests per min (RPM). Please slow down.', 'requests', 'rate_limit_exceeded'],
    500: [SERVER_FAULT, 'server_error', null],
    503: ['The server is overloaded. Please try again later.', 'server_error', 'server_is_overloaded'],
  },
  (status, message, [type, code]) => jsonReply(status, OPENAI_HEADERS, { error: { message, type, param: null, code } }),
  {
    quota: () => {
      const message = 'You exceeded your current quota, please check your plan and billing details.'
      const error = { message, type: 'insufficient_quota', param: null, code: 'insufficient_quota' }
      return jsonReply(429, OPENAI_HEADERS, { error })
    },
    streamEvent: () => eventText({ error: { message: SERVER_FAULT, type: 'server_error', param: null, code: null } }),
  },
)

/** Rejects a request because of a field of it. */
export function refuseOpenai(message: string, param: string | null, code: string | null = null, status = 400): never {
  const error = { message, type: 'invalid_request_error', param, code }
  throw new RefusedCall(jsonReply(status, OPENAI_HEADERS, { error }))
}

/** Rejects a parameter that a model does not have. */
export function refuseParameter(name: string, advice = ''): never {
  const message = `Unsupported parameter: '${name}' is not supported with this model.${advice}`
  return refuseOpenai(message, name, 'unsupported_parameter')
}

/** Makes operations of OpenAI. */
export const openaiOperation = vendorOperations({
  vendor: 'openai',
  errors: OPENAI_ERRORS,
  headers: OPENAI_HEADERS,
  access: bearerAccess(OPENAI_ERRORS),
})

/** Makes operations of Azure OpenAI. */
export const azureOperation = vendorOperations({
  vendor: 'azure',
  errors: OPENAI_ERRORS,
  access: keyAccess(OPENAI_ERRORS),
})

/** Rejects a list that is repeated without brackets after its name: the API reads lists as `image[]`. */
export function refuseRepeatedParts(parts: readonly FormPart[] | undefined, lists: readonly string[]): void {
  const all = (parts ?? []).map(({ name }) => name)
  const repeated = all.find((name, index) => lists.includes(name) && all.indexOf(name) < index)
  if (repeated === undefined) return
  const message = `Duplicate parameter: '${repeated}'. Only one value is allowed; a list is written '${repeated}[]'.`
  refuseOpenai(message, repeated, 'duplicate_parameter')
}

const SNAPSHOTS: Readonly<Record<string, string>> = {
  'gpt-4o': '2024-08-06',
  'gpt-4o-mini': '2024-07-18',
  'gpt-4.1': '2025-04-14',
}

const RANGES: NumberRanges = {
  temperature: [0, 2],
  top_p: [0, 1],
  n: [1, 128],
  presence_penalty: [-2, 2],
  frequency_penalty: [-2, 2],
  top_logprobs: [0, 20],
  max_tokens: [1, Number.MAX_SAFE_INTEGER],
  max_completion_tokens: [1, Number.MAX_SAFE_INTEGER],
}

const MESSAGE_FIELDS = names('role content name tool_calls tool_call_id refusal annotations audio function_call')

/** OpenAI: `POST /v1/chat/completions`. Source of the rejections: OpenAI's API reference and specification. */
const OPENAI_CHAT = chatOperation(openaiOperation, {
  post: '/v1/chat/completions',
  headers: OPENAI_HEADERS,
  refuse: refuseOpenai,
  dialect: {
    ...COMPATIBLE_DIALECT,
    answerModel: (asked) => answerModel(asked, SNAPSHOTS[asked]),
    showsReasoning: false,
    hasOfficialExtras: true,
    usageDetails: ({ cached, cacheWrite, reasoning }) => ({
      prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWrite, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: reasoning,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    }),
  },
  prepare(request) {
    const message = 'This model is only supported in v1/responses and not in v1/chat/completions.'
    return isResponsesOnly(asText(request['model'])) ? refuseOpenai(message, 'model', null, 404) : request
  },
  check(request) {
    checkRanges(request, RANGES, refuseOpenai)
    if (request['session_id'] !== undefined) refuseOpenai('Unrecognized request argument supplied: session_id', null)
    if (asList(request['stop']).length > 4) {
      const message = "Invalid 'stop': array too long. Expected an array with maximum length 4."
      refuseOpenai(message, 'stop', 'array_above_max_length')
    }
    if (isGiven(request['max_tokens']) && isReasoningModel(asText(request['model'])))
      refuseParameter('max_tokens', " Use 'max_completion_tokens' instead.")
    checkReasoning(request)
    checkMessageFields(request)
    for (const [index, tool] of asList(request['tools']).entries())
      checkParameters(asObject(asObject(tool)['function']), `tools[${index}].function.parameters`)
  },
})

function isReasoningModel(model: string): boolean {
  return /^(?:ft:)?o\d/.test(model) || (gptVersion(model) >= 500 && !/^gpt-[\d.]+-chat/.test(model))
}

function checkReasoning(request: Fields): void {
  const model = asText(request['model'])
  const effort = asText(request['reasoning_effort'])
  checkEffort(model, effort, 'reasoning_effort')
  const version = gptVersion(model)
  const reasons = isReasoningModel(model)
  if (reasons && (version < 501 || effort !== 'none')) checkSampling(request)
  // Up to gpt-5.4 the default effort is `none`.
  const isReasoning = effort === '' ? version < 501 || version > 504 : effort !== 'none'
  if (reasons && isReasoning && isGiven(request['stop'])) refuseParameter('stop')
  const hasFunctions = asList(request['tools']).some((tool) => asText(asObject(tool)['type']) === 'function')
  if (version < 504 || !isReasoning || !hasFunctions) return
  const message = `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions. Please use /v1/responses instead.`
  refuseOpenai(message, 'reasoning_effort')
}

function checkSampling(request: Fields): void {
  for (const field of ['temperature', 'top_p']) {
    if (!isGiven(request[field]) || request[field] === 1) continue
    const message = `Unsupported value: '${field}' does not support ${String(request[field])} with this model. Only the default (1) value is supported.`
    refuseOpenai(message, field, 'unsupported_value')
  }
  if (request['logprobs'] === true) refuseParameter('logprobs')
}

function checkMessageFields(request: Fields): void {
  for (const [position, message] of asList(request['messages']).entries()) {
    const unknown = Object.keys(asObject(message)).find((field) => !MESSAGE_FIELDS.has(field))
    if (unknown === undefined) continue
    const param = `messages[${position}].${unknown}`
    refuseOpenai(`Unknown parameter: '${param}'.`, param, 'unknown_parameter')
  }
}

/**
 * Rejects parameters of a function whose objects lack `properties` or whose arrays lack `items`
 * (https://github.com/spring-projects/spring-ai/issues/4776, https://github.com/sigoden/aichat/pull/1049).
 */
export function checkParameters({ name, parameters }: Fields, param: string): void {
  const fault = isGiven(parameters) ? schemaFault(asObject(parameters), []) : undefined
  if (fault === undefined) return
  refuseOpenai(`Invalid schema for function '${asText(name)}': ${fault}`, param, 'invalid_function_parameters')
}

function schemaFault({ type, properties, items }: Fields, context: readonly string[]): string | undefined {
  const missing = type === 'object' ? ['properties', properties] : type === 'array' ? ['items', items] : undefined
  if (missing !== undefined && !isGiven(missing[1]))
    return `In context=(${context.map((name) => `'${name}'`).join(', ')}), ${type} schema missing ${missing[0]}.`
  const inner = Object.entries(asObject(properties)).map(([name, one]) => ({ one, path: ['properties', name] }))
  if (isGiven(items)) inner.push({ one: items, path: ['items'] })
  return inner
    .map(({ one, path }) => schemaFault(asObject(one), [...context, ...path]))
    .find((fault) => fault !== undefined)
}

const NATIVE_DIMENSIONS: Readonly<Record<string, number>> = { 'text-embedding-3-large': 3072 }
const DEFAULT_DIMENSIONS = 1536
const MAX_INPUTS = 2048

/** OpenAI: `POST /v1/embeddings`. Floats unless base64 is requested; `dimensions` on the third generation only. */
const OPENAI_EMBEDDINGS = openaiOperation({
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
const OPENAI_MODERATIONS = openaiOperation({
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

const MODELS: readonly string[] = ['tts-1', 'tts-1-hd', 'gpt-4o-mini-tts']
const VOICES = 'alloy ash ballad coral echo fable onyx nova sage shimmer verse marin cedar'.split(' ')
const MAX_CHARACTERS = 4096

/** Media types that OpenAI answers with, and the first bytes of these files. */
const FILES: Readonly<Record<string, readonly [type: string, firstBytes: Buffer]>> = {
  pcm: ['audio/pcm', Buffer.alloc(0)],
  wav: ['audio/wav', Buffer.alloc(0)],
  opus: ['audio/opus', Buffer.from('OggS', 'latin1')],
  aac: ['audio/aac', Buffer.from([0xff, 0xf1, 0x50, 0x80])],
  flac: ['audio/flac', Buffer.from('fLaC', 'latin1')],
}

/**
 * OpenAI: `POST /v1/audio/speech`. The sound is a tone for each character. `opus`, `aac` and `flac` are
 * samples after the first bytes of such a file, which no player reads.
 */
export const OPENAI_SPEECH = openaiOperation({
  operation: 'speech',
  post: '/v1/audio/speech',
  prompt: ({ input }) => asText(input),
  answer(_call, _context, { model, input, voice, response_format: format, instructions }) {
    if (!MODELS.includes(asText(model))) throw new RefusedCall(OPENAI_ERRORS.status(404))
    const text = asText(input)
    if (text === '') refuseOpenai("Missing required parameter: 'input'.", 'input')
    if (text.length > MAX_CHARACTERS) refuseOpenai(`String should have at most ${MAX_CHARACTERS} characters`, 'input')
    if (!VOICES.includes(asText(voice))) refuseOpenai(`Input should be one of ${VOICES.join(', ')}`, 'voice')
    if (isGiven(instructions) && asText(model).startsWith('tts-1'))
      refuseOpenai("'instructions' is not supported by this model.", 'instructions')
    const file = FILES[asText(format)]
    if (file === undefined)
      return refuseOpenai(`Input should be one of ${Object.keys(FILES).join(', ')}`, 'response_format')
    const [type, firstBytes] = file
    const sound = drawSound(text)
    return fileReply(type, format === 'wav' ? wavFile(sound) : Buffer.concat([firstBytes, sound]), OPENAI_HEADERS)
  },
})

/** Formats of the transcripts of a model, and whether it reports seconds instead of tokens, and streams. */
interface TranscriptionModel {
  readonly formats: readonly string[]
  readonly reportsSeconds?: boolean
  readonly streams?: boolean
}

const WHISPER: TranscriptionModel = { formats: ['json', 'text', 'srt', 'vtt', 'verbose_json'], reportsSeconds: true }
const TRANSCRIPTION_MODELS: ReadonlyMap<string, TranscriptionModel> = new Map([
  ['gpt-transcribe', { formats: ['json', 'text'], reportsSeconds: true, streams: true }],
  ['gpt-4o-transcribe', { formats: ['json'], streams: true }],
  ['gpt-4o-mini-transcribe', { formats: ['json'], streams: true }],
  ['gpt-4o-transcribe-diarize', { formats: ['json', 'text', 'diarized_json'], streams: true }],
  ['whisper-1', WHISPER],
])
const EXTENSION = /\.(?:flac|mp3|mp4|mpeg|mpga|m4a|ogg|wav|webm)$/i
const LISTS = 'timestamp_granularities include known_speaker_names known_speaker_references keywords languages'.split(
  ' ',
)
const TOKENS_PER_SECOND = 10
/** Values that Whisper reports for every segment in addition to its text. */
const MEASURES = { tokens: [50364], temperature: 0, avg_logprob: -0.2, compression_ratio: 1.1, no_speech_prob: 0.01 }

/**
 * OpenAI: `POST /v1/audio/transcriptions`. The text states how long the recording is. There are ten tokens per second and one per
 * word; `text`, `srt` and `vtt` report nothing.
 */
const OPENAI_TRANSCRIPTIONS = openaiOperation({
  operation: 'transcriptions',
  post: '/v1/audio/transcriptions',
  needsJson: false,
  prompt: (_request, call) => formText(formParts(call), 'prompt'),
  answer(call, context) {
    const model = TRANSCRIPTION_MODELS.get(formText(formParts(call), 'model'))
    if (model === undefined) throw new RefusedCall(OPENAI_ERRORS.status(404))
    return transcription(call, context, model)
  },
})

/** The servers of `signalbox/presets` that serve Whisper. */
const PRESET_TRANSCRIPTIONS = vendorOperations({ vendor: 'presets', errors: OPENAI_ERRORS })({
  operation: 'transcriptions',
  post: /^\/presets\/[^/]+\/v1\/audio\/transcriptions$/,
  needsJson: false,
  prompt: (_request, call) => formText(formParts(call), 'prompt'),
  answer: (call, context) => transcription(call, context, WHISPER),
})

function transcription(call: SandboxCall, context: AnswerContext, model: TranscriptionModel): SandboxReply {
  const parts = formParts(call)
  refuseRepeatedParts(parts, LISTS)
  const file = parts?.find(({ name }) => name === 'file')
  if (file?.filename === undefined) refuseOpenai("Missing required parameter: 'file'.", 'file')
  if (!EXTENSION.test(file.filename)) refuseOpenai(`Unrecognized file format: ${file.filename}.`, 'file')
  const format = formText(parts, 'response_format') || 'json'
  if (!model.formats.includes(format))
    refuseOpenai(`response_format '${format}' is not compatible with this model.`, 'response_format')
  const heard = transcribeFixture(file.bytes, context.script)
  if (heard === undefined) refuseOpenai('The audio file could not be decoded or its format is not supported.', 'file')
  const { text, seconds, segments, tokens } = heard
  const audio = Math.ceil(seconds * TOKENS_PER_SECOND)
  const tokenReport = {
    type: 'tokens',
    input_tokens: audio,
    input_token_details: { audio_tokens: audio, text_tokens: 0 },
    output_tokens: tokens,
    total_tokens: audio + tokens,
  }
  const usage = context.usage(model.reportsSeconds === true ? { type: 'duration', seconds } : tokenReport)
  const times = context.usage({ duration: seconds })
  const speakers = segments.map((segment, index) => {
    return { type: 'transcript.text.segment', id: `seg_${index}`, speaker: index % 2 === 0 ? 'A' : 'B', ...segment }
  })
  if (model.streams === true && formText(parts, 'stream') === 'true') {
    const delta = (words: string): string => eventText({ type: 'transcript.text.delta', delta: words })
    const events = [
      ...text.split(/(?<=\s)/).map(delta),
      ...(format === 'diarized_json' ? speakers.map((segment) => eventText(segment)) : []),
      eventText({ type: 'transcript.text.done', text, usage }),
    ]
    return streamReply(OPENAI_HEADERS, events, delta('more '))
  }
  const measured = segments.map((segment, id) => ({ id, seek: 0, ...segment, ...MEASURES }))
  switch (format) {
    case 'verbose_json': {
      const head = { task: 'transcribe', language: 'english', ...times, text }
      return jsonReply(200, OPENAI_HEADERS, { ...head, segments: measured, usage })
    }
    case 'diarized_json':
      return jsonReply(200, OPENAI_HEADERS, { task: 'transcribe', ...times, text, segments: speakers, usage })
    case 'json':
      return jsonReply(200, OPENAI_HEADERS, { text, usage })
    default:
      return fileReply('text/plain; charset=utf-8', new TextEncoder().encode(text), OPENAI_HEADERS)
  }
}

/** Operations of OpenAI that store nothing, except images and Responses. */
export const OPENAI_OPERATIONS: readonly SandboxOperation[] = [
  OPENAI_TRANSCRIPTIONS,
  PRESET_TRANSCRIPTIONS,
  OPENAI_CHAT,
  OPENAI_EMBEDDINGS,
  OPENAI_SPEECH,
  OPENAI_MODERATIONS,
]
