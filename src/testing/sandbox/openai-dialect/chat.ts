import { type ChatPrompt, type ChatTurn, chatTurn, type PromptTool, type TurnUsage, words } from '../model/chat-turn.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven } from '../request-fields.ts'
import {
  type AnswerContext,
  eventText,
  jsonReply,
  type OperationMaker,
  type OperationRow,
  type SandboxCall,
  type SandboxOperation,
  type SandboxReply,
  streamReply,
} from '../sandbox-operation.ts'

/** Differences between the answers of vendors of OpenAI's chat format. */
interface ChatDialect {
  /** Returns the model id in answers, derived from the requested one. */
  answerModel(asked: string): string
  /** Whether `reasoning_content` contains the reasoning. Otherwise, only the usage report shows it. */
  readonly showsReasoning: boolean
  /** Whether messages have `refusal` and `annotations`, answers `service_tier`, and chunks `obfuscation`. */
  readonly hasOfficialExtras: boolean
  /** The id on later chunks of a tool call, if any. */
  readonly laterToolCallId: string | undefined
  /** Returns the members of `usage` other than its totals. */
  usageDetails(usage: TurnUsage): Fields
}

/** The dialect of compatible servers: reasoning next to the text, and nothing that only OpenAI has. */
export const COMPATIBLE_DIALECT: ChatDialect = {
  answerModel: (asked) => asked,
  showsReasoning: true,
  hasOfficialExtras: false,
  laterToolCallId: undefined,
  usageDetails: ({ cached, reasoning }) => ({
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }),
}

/** Returns the usage of a turn in a vendor's layout. */
export function dialectUsage(usage: TurnUsage, dialect: ChatDialect): Fields {
  const { prompt, completion } = usage
  const totals = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion }
  return { ...totals, ...dialect.usageDetails(usage) }
}

/** A row of a vendor's table whose operation is a chat in OpenAI's format. */
interface ChatRow extends Pick<OperationRow, 'post' | 'when'> {
  readonly dialect: ChatDialect
  readonly headers?: readonly string[]
  readonly refuse: RefuseField
  /** Checks the call before the shared rules, and returns the request in OpenAI's form. */
  prepare?(request: Fields, call: SandboxCall, groups: readonly string[]): Fields
  /** Checks the vendor's own rules after the shared ones. */
  check?(request: Fields, call: SandboxCall, context: AnswerContext): void
  /** Returns how the model thinks and what bounds it. Default: by `reasoning_effort` and {@link tokenLimit}. */
  bounds?(request: Fields): Partial<ChatPrompt>
  /** Changes the answer. */
  edit?(reply: SandboxReply): SandboxReply
}

/** Creates the chat of a vendor. */
export function chatOperation(operation: OperationMaker, row: ChatRow): SandboxOperation {
  const { post, when, dialect, headers = [], refuse } = row
  return operation({
    operation: 'chat',
    ...(post === undefined ? {} : { post }),
    ...(when === undefined ? {} : { when }),
    prompt: (request) => readChatPrompt(request).lastUserText,
    answer(call, context, received, groups) {
      const request = row.prepare?.(received, call, groups) ?? received
      checkChatRequest(request, refuse)
      row.check?.(request, call, context)
      const reasoning = !['', 'none'].includes(asText(request['reasoning_effort']))
      const prompt = { ...readChatPrompt(request), reasoning, maxTokens: tokenLimit(request), ...row.bounds?.(request) }
      const reply = chatAnswer(request, chatTurn(prompt, context), context, dialect, headers)
      return row.edit?.(reply) ?? reply
    },
  })
}

/** Inputs of an answer. */
interface AnswerParts {
  readonly request: Fields
  readonly turn: ChatTurn
  readonly context: AnswerContext
  readonly dialect: ChatDialect
}

/** Returns the answer to a chat request in OpenAI's format: JSON, or a stream if requested. */
export function chatAnswer(
  body: unknown,
  turn: ChatTurn,
  context: AnswerContext,
  dialect: ChatDialect,
  headers: readonly string[],
): SandboxReply {
  const parts: AnswerParts = { request: asObject(body), turn, context, dialect }
  if (parts.request['stream'] === true)
    return streamReply(
      headers,
      chatEvents(parts),
      eventText({ ...chunkHead(parts), choices: [choice(0, { content: ' more' })] }),
    )
  return jsonReply(200, headers, wholeAnswer(parts))
}

function wholeAnswer({ request, turn, context, dialect }: AnswerParts): Fields {
  const head = answerHead('chat.completion', { request, context, dialect })
  const choices = Array.from({ length: choiceCount(request) }, (_, index) => ({
    index,
    message: messageOf(turn, dialect, context.id),
    logprobs: request['logprobs'] === true ? logprobs(turn.words) : null,
    finish_reason: finishReason(turn),
  }))
  const usage = context.usage(dialectUsage(usageOf(turn, choices.length), dialect))
  return dialect.hasOfficialExtras
    ? { ...head, choices, usage, service_tier: 'default', system_fingerprint: null }
    : { ...head, choices, usage, system_fingerprint: null }
}

function messageOf(turn: ChatTurn, dialect: ChatDialect, id: string): Fields {
  const calls = turn.toolCalls.map((call, index) => ({
    id: `call_${id}${index}`,
    type: 'function',
    function: { name: call.name, arguments: JSON.stringify(call.arguments) },
  }))
  return {
    role: 'assistant',
    content:
      calls.length > 0 && turn.words.length === 0 ? (dialect.hasOfficialExtras ? null : '') : turn.words.join(''),
    ...(dialect.hasOfficialExtras ? { refusal: null, annotations: [] } : {}),
    ...(dialect.showsReasoning && turn.reasoning.length > 0 ? { reasoning_content: turn.reasoning.join('') } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  }
}

function chatEvents(parts: AnswerParts): string[] {
  const { request, turn, context, dialect } = parts
  const head = chunkHead(parts)
  const wantsUsage = asObject(request['stream_options'])['include_usage'] === true
  const choiceIndexes = Array.from({ length: choiceCount(request) }, (_, index) => index)
  const deltas: Fields[] = [
    { role: 'assistant', content: '', ...(dialect.hasOfficialExtras ? { refusal: null } : {}) },
    ...(dialect.showsReasoning ? turn.reasoning.map((word) => ({ content: null, reasoning_content: word })) : []),
    ...turn.words.map((word) => ({ content: word })),
    ...toolCallDeltas(turn, dialect, context.id),
  ]
  const hidesObfuscation = asObject(request['stream_options'])['include_obfuscation'] === false
  const obfuscation = dialect.hasOfficialExtras && !hidesObfuscation ? { obfuscation: context.id.slice(0, 9) } : {}
  const chunk = (index: number, delta: Fields, finish: string | null): string => {
    const word = delta['content']
    const wordLogprobs = request['logprobs'] === true && asText(word) !== '' ? logprobs([asText(word)]) : null
    const usage = wantsUsage ? { usage: null } : {}
    return eventText({ ...head, choices: [choice(index, delta, finish, wordLogprobs)], ...usage, ...obfuscation })
  }
  const events = deltas.flatMap((delta) => choiceIndexes.map((index) => chunk(index, delta, null)))
  events.push(...choiceIndexes.map((index) => chunk(index, {}, finishReason(turn))))
  const usage = context.usage(dialectUsage(usageOf(turn, choiceIndexes.length), dialect))
  if (wantsUsage && usage !== undefined) events.push(eventText({ ...head, choices: [], usage, ...obfuscation }))
  return [...events, 'data: [DONE]\n\n']
}

function toolCallDeltas(turn: ChatTurn, dialect: ChatDialect, id: string): Fields[] {
  const later = dialect.laterToolCallId === undefined ? {} : { id: dialect.laterToolCallId, type: 'function' }
  return turn.toolCalls.flatMap((call, index) => {
    const first = { index, id: `call_${id}${index}`, type: 'function', function: { name: call.name, arguments: '' } }
    const pieces = words(JSON.stringify(call.arguments))
    return [
      { tool_calls: [first] },
      ...pieces.map((piece) => ({ tool_calls: [{ index, ...later, function: { arguments: piece } }] })),
    ]
  })
}

function answerHead(
  object: string,
  { request, context, dialect }: Pick<AnswerParts, 'request' | 'context' | 'dialect'>,
): Fields {
  return {
    id: `chatcmpl-${context.id}`,
    object,
    created: Math.floor(context.nowMs / 1000),
    model: dialect.answerModel(asText(request['model'])),
  }
}

function chunkHead(parts: AnswerParts): Fields {
  const head = answerHead('chat.completion.chunk', parts)
  return { ...head, ...(parts.dialect.hasOfficialExtras ? { service_tier: 'default' } : {}), system_fingerprint: null }
}

function choice(index: number, delta: Fields, finish: string | null = null, wordLogprobs: unknown = null): Fields {
  return { index, delta, logprobs: wordLogprobs, finish_reason: finish }
}

function logprobs(tokens: readonly string[]): Fields {
  const content = tokens.map((token) => ({ token, logprob: -0.25, bytes: [...Buffer.from(token)], top_logprobs: [] }))
  return { content, refusal: null }
}

function choiceCount(request: AnswerParts['request']): number {
  return asNumber(request['n']) ?? 1
}

/** Every choice is generated separately, so n choices cost n answers for one prompt. */
function usageOf(turn: ChatTurn, choices: number): TurnUsage {
  const { completion, reasoning } = turn.usage
  return { ...turn.usage, completion: completion * choices, reasoning: reasoning * choices }
}

function finishReason(turn: ChatTurn): string {
  if (turn.ending === 'stop-sequence') return 'stop'
  if (turn.ending === 'blocked') return 'content_filter'
  return turn.ending === 'tool-calls' ? 'tool_calls' : turn.ending
}

/** Rejects a request with a text and the invalid field. */
export type RefuseField = (message: string, param: string | null, code?: string) => never

/** Checks that every vendor of OpenAI's chat format makes. */
export function checkChatRequest(body: unknown, refuse: RefuseField): void {
  const request = asObject(body)
  if (asText(request['model']) === '') refuse('you must provide a model parameter', 'model')
  if (asList(request['messages']).length === 0)
    refuse("Missing required parameter: 'messages'.", 'messages', 'missing_required_parameter')
  if (isGiven(request['stream_options']) && request['stream'] !== true) {
    const message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    refuse(message, 'stream_options')
  }
  checkToolNames(request, refuse)
  checkToolTurns(asList(request['messages']).map(asObject), refuse)
  checkJsonMode(request, refuse)
}

/** Minimum and maximum of each numeric field. */
export type NumberRanges = Readonly<Record<string, readonly [least: number, most: number]>>

/** Rejects numbers outside their bounds, and values that are not numbers. */
export function checkRanges(fields: Fields, ranges: NumberRanges, refuse: RefuseField): void {
  for (const [field, [least, most]] of Object.entries(ranges)) {
    const value = fields[field]
    if (!isGiven(value)) continue
    if (typeof value !== 'number') {
      const message = `Invalid type for '${field}': expected a number, but got ${JSON.stringify(value)} instead.`
      refuse(message, field, 'invalid_type')
    }
    if (value < least || value > most) {
      const message = `Invalid '${field}': expected a value between ${least} and ${most}, but got ${value} instead.`
      refuse(message, field, 'invalid_value')
    }
  }
}

function checkToolNames(request: Fields, refuse: RefuseField): void {
  asList(request['tools']).forEach((tool, position) => {
    const { type, function: definition } = asObject(tool)
    const name = asText(asObject(definition)['name'])
    if (type === 'function' && /^[a-zA-Z0-9_-]{1,64}$/.test(name)) return
    if (type === 'custom') return
    const param = `tools[${position}].function.name`
    const message = `Invalid '${param}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`
    refuse(message, param, 'invalid_value')
  })
}

/** Results must follow the calls they answer, and every call must be answered. */
function checkToolTurns(messages: readonly Fields[], refuse: RefuseField): void {
  let unanswered = new Set<string>()
  const refuseUnanswered = (): void => {
    if (unanswered.size === 0) return
    const ids = [...unanswered].join(', ')
    const message = `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids}`
    refuse(message, 'messages')
  }
  messages.forEach((message, position) => {
    if (message['role'] === 'tool') {
      const id = asText(message['tool_call_id'])
      if (unanswered.delete(id)) return
      const text =
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
      refuse(text, `messages.[${position}].role`)
    }
    refuseUnanswered()
    unanswered = new Set(asList(message['tool_calls']).map((call) => asText(asObject(call)['id'])))
  })
  refuseUnanswered()
}

function checkJsonMode(request: Fields, refuse: RefuseField): void {
  if (asObject(request['response_format'])['type'] !== 'json_object') return
  if (/json/i.test(JSON.stringify(request['messages']))) return
  const message =
    "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
  refuse(message, 'messages')
}

/** Reads a request in OpenAI's chat format, whatever its shape. The vendor adds reasoning and the word limit. */
export function readChatPrompt(body: unknown): Omit<ChatPrompt, 'reasoning' | 'maxTokens'> {
  const request = asObject(body)
  const messages = asList(request['messages']).map(asObject)
  const lastUser = messages.findLast((message) => message['role'] === 'user') ?? {}
  const lastAssistant = messages.findLastIndex((message) => message['role'] === 'assistant')
  const trailing = messages.slice(lastAssistant + 1)
  const endsWithTools = trailing.at(-1)?.['role'] === 'tool'
  const choice = toolChoice(request['tool_choice'])
  return {
    texts: messages.map(contentText),
    lastUserText: contentText(lastUser),
    lastUserImages: parts(lastUser).filter((part) => part['type'] === 'image_url').length,
    toolResults: endsWithTools ? trailing.filter((message) => message['role'] === 'tool').map(contentText) : [],
    tools: tools(request, choice.allowed),
    toolChoice: choice.choice,
    parallelToolCalls: request['parallel_tool_calls'] !== false,
    json: jsonMode(asObject(request['response_format'])),
    stop: typeof request['stop'] === 'string' ? [request['stop']] : asList(request['stop']).map(asText),
    prefill: '',
  }
}

/** Returns the limit of generated tokens: `max_completion_tokens`, else `max_tokens`. */
export function tokenLimit(body: unknown): number | undefined {
  const request = asObject(body)
  return asNumber(request['max_completion_tokens']) ?? asNumber(request['max_tokens'])
}

function parts(message: Fields): Fields[] {
  return asList(message['content']).map(asObject)
}

function contentText(message: Fields): string {
  if (typeof message['content'] === 'string') return message['content']
  return parts(message)
    .map((part) => asText(part['text']))
    .join('')
}

function tools(request: Fields, allowed: readonly string[] | undefined): PromptTool[] {
  return asList(request['tools'])
    .map((tool) => asObject(asObject(tool)['function']))
    .map((definition) => ({ name: asText(definition['name']), schema: asObject(definition['parameters']) }))
    .filter((tool) => tool.name !== '' && (allowed?.includes(tool.name) ?? true))
}

function toolChoice(value: unknown): { choice: ChatPrompt['toolChoice']; allowed?: readonly string[] } {
  if (value === 'none' || value === 'required') return { choice: value }
  const choice = asObject(value)
  if (choice['type'] === 'function') return { choice: { name: asText(asObject(choice['function'])['name']) } }
  if (choice['type'] !== 'allowed_tools') return { choice: 'auto' }
  const subset = asObject(choice['allowed_tools'])
  const allowed = asList(subset['tools']).map((tool) => asText(asObject(asObject(tool)['function'])['name']))
  return { choice: subset['mode'] === 'required' ? 'required' : 'auto', allowed }
}

function jsonMode(format: Fields): ChatPrompt['json'] {
  if (format['type'] === 'json_object') return { schema: undefined }
  if (format['type'] !== 'json_schema') return undefined
  const { schema } = asObject(format['json_schema'])
  return { schema: isGiven(schema) ? asObject(schema) : undefined }
}
