import type { ChatPrompt, PromptTool } from '../model/chat-turn.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven } from '../request-fields.ts'
import { RefusedCall, type SandboxReply } from '../sandbox-operation.ts'

/** Creates a vendor's rejection from a text and the invalid field. */
export type InvalidField = (message: string, param: string | null, code?: string) => SandboxReply

/** Checks that every vendor of OpenAI's chat format makes. */
export function checkChatRequest(body: unknown, invalid: InvalidField): void {
  const request = asObject(body)
  if (asText(request['model']) === '') throw new RefusedCall(invalid('you must provide a model parameter', 'model'))
  if (asList(request['messages']).length === 0) {
    throw new RefusedCall(invalid("Missing required parameter: 'messages'.", 'messages', 'missing_required_parameter'))
  }
  if (isGiven(request['stream_options']) && request['stream'] !== true) {
    const message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    throw new RefusedCall(invalid(message, 'stream_options'))
  }
  checkToolNames(request, invalid)
  checkToolTurns(asList(request['messages']).map(asObject), invalid)
  checkJsonMode(request, invalid)
}

/** Minimum and maximum of each numeric field. */
export type NumberRanges = Readonly<Record<string, readonly [least: number, most: number]>>

/** Rejects numbers outside their bounds, and values that are not numbers. */
export function checkRanges(fields: Fields, ranges: NumberRanges, invalid: InvalidField): void {
  for (const [field, [least, most]] of Object.entries(ranges)) {
    const value = fields[field]
    if (!isGiven(value)) continue
    if (typeof value !== 'number') {
      const message = `Invalid type for '${field}': expected a number, but got ${JSON.stringify(value)} instead.`
      throw new RefusedCall(invalid(message, field, 'invalid_type'))
    }
    if (value < least || value > most) {
      const message = `Invalid '${field}': expected a value between ${least} and ${most}, but got ${value} instead.`
      throw new RefusedCall(invalid(message, field, 'invalid_value'))
    }
  }
}

function checkToolNames(request: Readonly<Record<string, unknown>>, invalid: InvalidField): void {
  asList(request['tools']).forEach((tool, position) => {
    const { type, function: definition } = asObject(tool)
    const name = asText(asObject(definition)['name'])
    if (type === 'function' && /^[a-zA-Z0-9_-]{1,64}$/.test(name)) return
    if (type === 'custom') return
    const param = `tools[${position}].function.name`
    const message = `Invalid '${param}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`
    throw new RefusedCall(invalid(message, param, 'invalid_value'))
  })
}

/** Results must follow the calls they answer, and every call must be answered. */
function checkToolTurns(messages: readonly Readonly<Record<string, unknown>>[], invalid: InvalidField): void {
  let unanswered = new Set<string>()
  const refuseUnanswered = (): void => {
    if (unanswered.size === 0) return
    const ids = [...unanswered].join(', ')
    const message = `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids}`
    throw new RefusedCall(invalid(message, 'messages'))
  }
  messages.forEach((message, position) => {
    if (message['role'] === 'tool') {
      const id = asText(message['tool_call_id'])
      if (unanswered.delete(id)) return
      const text =
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
      throw new RefusedCall(invalid(text, `messages.[${position}].role`))
    }
    refuseUnanswered()
    unanswered = new Set(asList(message['tool_calls']).map((call) => asText(asObject(call)['id'])))
  })
  refuseUnanswered()
}

function checkJsonMode(request: Readonly<Record<string, unknown>>, invalid: InvalidField): void {
  if (asObject(request['response_format'])['type'] !== 'json_object') return
  if (/json/i.test(JSON.stringify(request['messages']))) return
  const message =
    "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
  throw new RefusedCall(invalid(message, 'messages'))
}

type Json = Readonly<Record<string, unknown>>

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

function parts(message: Json): Json[] {
  return asList(message['content']).map(asObject)
}

function contentText(message: Json): string {
  if (typeof message['content'] === 'string') return message['content']
  return parts(message)
    .map((part) => asText(part['text']))
    .join('')
}

function tools(request: Json, allowed: readonly string[] | undefined): PromptTool[] {
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

function jsonMode(format: Json): ChatPrompt['json'] {
  if (format['type'] === 'json_object') return { schema: undefined }
  if (format['type'] !== 'json_schema') return undefined
  const { schema } = asObject(format['json_schema'])
  return { schema: isGiven(schema) ? asObject(schema) : undefined }
}
