import { chatTurn } from '../model/chat-turn.ts'
import { asList, asNumber, asObject, asText, isGiven } from '../model/loose-json.ts'
import { checkBearer } from '../openai-dialect/bearer-check.ts'
import { chatAnswer } from '../openai-dialect/chat-answer.ts'
import { checkChatRequest, checkRange } from '../openai-dialect/chat-checks.ts'
import type { ChatDialect } from '../openai-dialect/chat-dialect.ts'
import { readChatPrompt } from '../openai-dialect/read-chat-prompt.ts'
import { RefusedCall, type SandboxOperation } from '../sandbox-operation.ts'
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

const ROLES = ['system', 'assistant', 'user', 'tool', 'function']

/**
 * DashScope: `POST /compatible-mode/v1/chat/completions`. Sources of the refusals: the vendor's error list and the
 * quirks that public clients work around (no frequency penalty, no empty tool list, no `developer` role).
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
    checkFields(request, thinks)
    if (context.blocked) {
      const message = 'Input text data may contain inappropriate content.'
      throw new RefusedCall(dashscopeInvalid(message, null, 'data_inspection_failed'))
    }
    // Only `max_tokens` limits the answer here; OpenAI's newer name of it is not known.
    const maxTokens = asNumber(request['max_tokens'])
    const turn = chatTurn({ ...readChatPrompt(request), reasoning: thinks, maxTokens }, false)
    return chatAnswer(request, turn, context, DIALECT, DASHSCOPE_HEADERS)
  },
}

/** Open-weight Qwen3 models think unless told not to; the others when told to. */
function isThinking(request: Readonly<Record<string, unknown>>): boolean {
  if (isGiven(request['enable_thinking'])) return request['enable_thinking'] === true
  return /^qwen3-\d/.test(asText(request['model']))
}

function checkFields(request: Readonly<Record<string, unknown>>, thinks: boolean): void {
  checkRange(request, 'presence_penalty', -2, 2, dashscopeInvalid)
  checkRange(request, 'n', 1, 4, dashscopeInvalid)
  checkRange(request, 'seed', 0, 2 ** 31 - 1, dashscopeInvalid)
  checkRange(request, 'max_tokens', 1, Number.MAX_SAFE_INTEGER, dashscopeInvalid)
  const temperature = request['temperature']
  if (isGiven(temperature) && !(Number(temperature) >= 0 && Number(temperature) < 2)) {
    refuse("'temperature' must be Float and in [0.0, 2.0)", 'temperature')
  }
  const topP = request['top_p']
  if (isGiven(topP) && !(Number(topP) > 0 && Number(topP) <= 1))
    refuse("'top_p' must be Float and in (0.0, 1.0]", 'top_p')
  if (isGiven(request['frequency_penalty'])) refuse("'frequency_penalty' is not supported", 'frequency_penalty')
  if (Array.isArray(request['tools']) && request['tools'].length === 0) refuse("[] is too short - 'tools'", 'tools')
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
  const model = asText(request['model'])
  if (model.startsWith('qwq') && request['stream'] !== true) {
    refuse('This model only support stream mode, please enable the stream parameter to access the model.', 'stream')
  }
  if (/^qwen3-\d/.test(model) && request['stream'] !== true && thinks) {
    refuse('parameter.enable_thinking must be set to false for non-streaming calls', 'enable_thinking')
  }
  if (thinks && asObject(request['response_format'])['type'] === 'json_object') {
    refuse('Json mode response is not supported when enable_thinking is true', 'response_format')
  }
}

function refuse(message: string, param: string): never {
  throw new RefusedCall(dashscopeInvalid(`<400> InternalError.Algo.InvalidParameter: ${message}`, param))
}
