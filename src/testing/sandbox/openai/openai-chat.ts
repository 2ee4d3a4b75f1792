import { COMPATIBLE_DIALECT, chatOperation, checkRanges, type NumberRanges } from '../openai-dialect/chat.ts'
import { asList, asObject, asText, type Fields, isGiven, names } from '../request-fields.ts'
import {
  answerModel,
  checkEffort,
  gptVersion,
  isResponsesOnly,
  OPENAI_HEADERS,
  openaiOperation,
  refuseOpenai,
  refuseParameter,
} from './openai-models.ts'

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
export const OPENAI_CHAT = chatOperation(openaiOperation, {
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
