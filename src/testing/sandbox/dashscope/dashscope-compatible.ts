import { Buffer } from 'node:buffer'
import type { BatchRun, BatchTimes } from '../batches/vendor-batches.ts'
import { embeddingAnswer, inputPromptText, inputWords, transcribeFixture } from '../model/embedding.ts'
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
  nothing,
  rule,
} from '../request-fields.ts'
import type { SandboxOperation } from '../sandbox-operation.ts'
import { compatibleOperation, DASHSCOPE_ERRORS, DASHSCOPE_HEADERS, refuseDashscope } from './dashscope-errors.ts'

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
export const DASHSCOPE_CHAT = chatOperation(compatibleOperation, {
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
export const DASHSCOPE_EMBEDDINGS = compatibleOperation({
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
export const DASHSCOPE_TRANSCRIPTIONS = compatibleOperation({
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
