import type { BatchRun, BatchTimes } from '../batches/vendor-batches.ts'
import { chatTurn } from '../model/chat-turn.ts'
import { embeddingData, embeddingTokens, inputPromptText, inputTexts } from '../model/embedding.ts'
import { batchOperations } from '../openai-dialect/batch-operations.ts'
import {
  type ChatDialect,
  chatAnswer,
  checkChatRequest,
  checkRanges,
  type NumberRanges,
  readChatPrompt,
} from '../openai-dialect/chat.ts'
import {
  asList,
  asNumber,
  asObject,
  asText,
  checkFields,
  type FieldRule,
  isGiven,
  nothing,
  rule,
} from '../request-fields.ts'
import { checkBearer, jsonReply, RefusedCall, type SandboxOperation } from '../sandbox-operation.ts'
import { DASHSCOPE_ERRORS, DASHSCOPE_HEADERS, dashscopeInvalid } from './dashscope-errors.ts'

const DIALECT: ChatDialect = {
  answerModel: (asked) => asked,
  showsReasoning: true,
  hasOfficialExtras: false,
  laterToolCallId: '',
  usage: ({ prompt, cached, completion, reasoning }) => ({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached },
    ...(reasoning > 0 ? { completion_tokens_details: { reasoning_tokens: reasoning } } : {}),
  }),
}

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
export const DASHSCOPE_CHAT: SandboxOperation = {
  vendor: 'dashscope',
  operation: 'chat',
  errors: DASHSCOPE_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/compatible-mode/v1/chat/completions',
  promptText: (body) => readChatPrompt(body).lastUserText,
  answer(call, context) {
    checkBearer(call, DASHSCOPE_ERRORS)
    checkChatRequest(call.body, dashscopeInvalid)
    const request = asObject(call.body)
    const thinks = isThinking(request)
    checkChat(request, thinks)
    // Batches have whole answers of every model.
    if (call.batchId === undefined) checkStream(request, thinks)
    if (context.blocked) {
      const message = 'Input text data may contain inappropriate content.'
      throw new RefusedCall(dashscopeInvalid(message, null, 'data_inspection_failed'))
    }
    const maxTokens = asNumber(request['max_completion_tokens'])
    const answerTokens = asNumber(request['max_tokens'])
    const turn = chatTurn({ ...readChatPrompt(request), reasoning: thinks, maxTokens, answerTokens }, context)
    return chatAnswer(request, turn, context, DIALECT, DASHSCOPE_HEADERS)
  },
}

/** Open-weight Qwen3 models think by default; the others think on request. */
function isThinking(request: Readonly<Record<string, unknown>>): boolean {
  if (isGiven(request['enable_thinking'])) return request['enable_thinking'] === true
  return /^qwen3-\d/.test(asText(request['model']))
}

function checkChat(request: Readonly<Record<string, unknown>>, thinks: boolean): void {
  checkRanges(request, RANGES, dashscopeInvalid)
  checkFields(request, CHAT_RULES, refuse)
  if (asList(request['tools']).some((tool) => asObject(asObject(tool)['function'])['name'] === 'search')) {
    refuse("The name of a tool must not be 'search'", 'tools')
  }
  asList(request['messages']).forEach((message, position) => {
    const role = asText(asObject(message)['role'])
    if (ROLES.includes(role)) return
    refuse(
      `'${role}' is not one of [${ROLES.map((name) => `'${name}'`).join(', ')}] - 'messages.${position}.role'`,
      'messages',
    )
  })
  if (thinks && asObject(request['response_format'])['type'] === 'json_object') {
    refuse('Json mode response is not supported when enable_thinking is true', 'response_format')
  }
}

function checkStream(request: Readonly<Record<string, unknown>>, thinks: boolean): void {
  if (request['stream'] === true) return
  const model = asText(request['model'])
  if (/^q[wv]q|omni/.test(model)) {
    refuse('This model only support stream mode, please enable the stream parameter to access the model.', 'stream')
  }
  if (/^qwen3-\d/.test(model) && thinks) {
    refuse('parameter.enable_thinking must be set to false for non-streaming calls', 'enable_thinking')
  }
}

function refuse(message: string, param: string): never {
  throw new RefusedCall(dashscopeInvalid(`<400> InternalError.Algo.InvalidParameter: ${message}`, param))
}

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
      refuseInput("encoding_format must be 'float'")
    }
    const dimensions = asNumber(request['dimensions']) ?? USUAL_DIMENSIONS
    const offered = DIMENSIONS[model] ?? [USUAL_DIMENSIONS]
    if (!offered.includes(dimensions))
      refuseInput(`Value error, dimension ${dimensions} is invalid, it should be in [${offered.join(', ')}].`)
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
    return refuseInput('Value error, contents is neither str nor list of str.: input.contents')
  if (texts.length > MAX_INPUTS) {
    refuseInput(`Value error, batch size is invalid, it should not be larger than ${MAX_INPUTS}.: input.contents`)
  }
  return texts
}

function refuseInput(message: string): never {
  const text = `<400> InternalError.Algo.InvalidParameter: ${message}`
  throw new RefusedCall(dashscopeInvalid(text, null, 'InvalidParameter'))
}

const HOUR_MS = 60 * 60 * 1000

/** DashScope: `/compatible-mode/v1/files` and `…/batches`, with those of one sandbox (Model Studio, "OpenAI compatible - Batch"). */
export function dashscopeBatches(run: BatchRun, times: BatchTimes): SandboxOperation[] {
  return batchOperations(
    {
      vendor: 'dashscope',
      basePath: '/compatible-mode/v1',
      urlPrefix: '/compatible-mode',
      errors: DASHSCOPE_ERRORS,
      headers: DASHSCOPE_HEADERS,
      invalid: dashscopeInvalid,
      fileIdPrefix: 'file-batch-',
      endpoints: ['/v1/chat/completions', '/v1/embeddings'],
      windowMs,
      maxRequests: 50_000,
      maxFileBytes: 500 * 1024 * 1024,
    },
    run,
    times,
  )
}

/** 24 to 336 hours, as `24h` or `14d`. */
function windowMs(window: unknown): number | undefined {
  const [, digits, unit] = /^(\d{1,3})([hd])$/.exec(String(window)) ?? []
  const hours = Number(digits) * (unit === 'd' ? 24 : 1)
  return hours >= 24 && hours <= 336 ? hours * HOUR_MS : undefined
}
