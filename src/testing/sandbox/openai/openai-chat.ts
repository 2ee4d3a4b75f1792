import { chatTurn } from '../model/chat-turn.ts'
import {
  type ChatDialect,
  chatAnswer,
  checkChatRequest,
  checkRanges,
  type NumberRanges,
  readChatPrompt,
  tokenLimit,
} from '../openai-dialect/chat.ts'
import { asList, asObject, asText, type Fields, isGiven, names } from '../request-fields.ts'
import { checkBearer, RefusedCall, type SandboxOperation } from '../sandbox-operation.ts'
import {
  answerModel,
  checkEffort,
  gptVersion,
  isResponsesOnly,
  OPENAI_ERRORS,
  OPENAI_HEADERS,
  openaiError,
  openaiInvalid,
} from './openai-models.ts'

const SNAPSHOTS: Readonly<Record<string, string>> = {
  'gpt-4o': '2024-08-06',
  'gpt-4o-mini': '2024-07-18',
  'gpt-4.1': '2025-04-14',
}

const DIALECT: ChatDialect = {
  answerModel: (asked) => answerModel(asked, SNAPSHOTS[asked]),
  showsReasoning: false,
  hasOfficialExtras: true,
  laterToolCallId: undefined,
  usage: ({ prompt, cached, cacheWrite, completion, reasoning }) => ({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWrite, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }),
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
export const OPENAI_CHAT: SandboxOperation = {
  vendor: 'openai',
  operation: 'chat',
  errors: OPENAI_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/chat/completions',
  promptText: (body) => readChatPrompt(body).lastUserText,
  answer(call, context) {
    checkBearer(call, OPENAI_ERRORS)
    if (isResponsesOnly(asText(asObject(call.body)['model']))) {
      const message = 'This model is only supported in v1/responses and not in v1/chat/completions.'
      throw new RefusedCall(openaiError(404, { message, type: 'invalid_request_error', param: 'model', code: null }))
    }
    checkChatRequest(call.body, openaiInvalid)
    checkFields(asObject(call.body))
    asList(asObject(call.body)['tools']).forEach((tool, index) => {
      checkParameters(asObject(asObject(tool)['function']), `tools[${index}].function.parameters`)
    })
    const effort = asText(asObject(call.body)['reasoning_effort'])
    const turn = chatTurn(
      { ...readChatPrompt(call.body), reasoning: effort !== '' && effort !== 'none', maxTokens: tokenLimit(call.body) },
      context,
    )
    return chatAnswer(call.body, turn, context, DIALECT, OPENAI_HEADERS)
  },
}

function checkFields(request: Readonly<Record<string, unknown>>): void {
  const model = asText(request['model'])
  checkRanges(request, RANGES, openaiInvalid)
  if (request['session_id'] !== undefined) {
    const message = 'Unrecognized request argument supplied: session_id'
    throw new RefusedCall(openaiInvalid(message, null))
  }
  if (asList(request['stop']).length > 4) {
    const message = "Invalid 'stop': array too long. Expected an array with maximum length 4."
    throw new RefusedCall(openaiInvalid(message, 'stop', 'array_above_max_length'))
  }
  if (isGiven(request['max_tokens']) && isReasoningModel(model)) {
    const message =
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    throw new RefusedCall(openaiInvalid(message, 'max_tokens', 'unsupported_parameter'))
  }
  checkReasoning(request, model)
  checkMessageFields(request)
}

function isReasoningModel(model: string): boolean {
  return /^(?:ft:)?o\d/.test(model) || (gptVersion(model) >= 500 && !/^gpt-[\d.]+-chat/.test(model))
}

function checkReasoning(request: Readonly<Record<string, unknown>>, model: string): void {
  const effort = asText(request['reasoning_effort'])
  checkEffort(model, effort, 'reasoning_effort')
  const version = gptVersion(model)
  if (isReasoningModel(model) && (version < 501 || effort !== 'none')) checkSampling(request)
  // Up to gpt-5.4 the default effort is `none`.
  const isReasoning = effort === '' ? version < 501 || version > 504 : effort !== 'none'
  if (isReasoningModel(model) && isReasoning && isGiven(request['stop'])) {
    const message = "Unsupported parameter: 'stop' is not supported with this model."
    throw new RefusedCall(openaiInvalid(message, 'stop', 'unsupported_parameter'))
  }
  const hasFunctions = asList(request['tools']).some((tool) => asText(asObject(tool)['type']) === 'function')
  if (version < 504 || !isReasoning || !hasFunctions) return
  const message = `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions. Please use /v1/responses instead.`
  throw new RefusedCall(openaiInvalid(message, 'reasoning_effort'))
}

function checkSampling(request: Readonly<Record<string, unknown>>): void {
  for (const field of ['temperature', 'top_p']) {
    if (!isGiven(request[field]) || request[field] === 1) continue
    const message = `Unsupported value: '${field}' does not support ${String(request[field])} with this model. Only the default (1) value is supported.`
    throw new RefusedCall(openaiInvalid(message, field, 'unsupported_value'))
  }
  if (request['logprobs'] !== true) return
  const message = "Unsupported parameter: 'logprobs' is not supported with this model."
  throw new RefusedCall(openaiInvalid(message, 'logprobs', 'unsupported_parameter'))
}

function checkMessageFields(request: Readonly<Record<string, unknown>>): void {
  asList(request['messages']).forEach((message, position) => {
    for (const field of Object.keys(asObject(message))) {
      if (MESSAGE_FIELDS.has(field)) continue
      const param = `messages[${position}].${field}`
      throw new RefusedCall(openaiInvalid(`Unknown parameter: '${param}'.`, param, 'unknown_parameter'))
    }
  })
}

/**
 * Rejects parameters of a function whose objects lack `properties` or whose arrays lack `items`
 * (https://github.com/spring-projects/spring-ai/issues/4776, https://github.com/sigoden/aichat/pull/1049).
 */
export function checkParameters({ name, parameters }: Fields, param: string): void {
  const fault = isGiven(parameters) ? schemaFault(asObject(parameters), []) : undefined
  if (fault === undefined) return
  const message = `Invalid schema for function '${asText(name)}': ${fault}`
  throw new RefusedCall(openaiInvalid(message, param, 'invalid_function_parameters'))
}

function schemaFault(schema: Fields, context: readonly string[]): string | undefined {
  const { type, properties, items } = schema
  const missing = type === 'object' ? ['properties', properties] : type === 'array' ? ['items', items] : undefined
  if (missing !== undefined && !isGiven(missing[1]))
    return `In context=(${context.map((name) => `'${name}'`).join(', ')}), ${type} schema missing ${missing[0]}.`
  const inner = Object.entries(asObject(properties)).map(([name, one]): [unknown, string[]] => [
    one,
    ['properties', name],
  ])
  if (isGiven(items)) inner.push([items, ['items']])
  return inner
    .map(([one, path]) => schemaFault(asObject(one), [...context, ...path]))
    .find((fault) => fault !== undefined)
}
