import type { ChatPrompt, PromptTool } from '../model/chat-prompt.ts'
import { asList, asNumber, asObject, asText, isGiven } from '../model/loose-json.ts'

type Json = Readonly<Record<string, unknown>>

/** Reads a request in OpenAI's chat format, whatever its shape. Reasoning and the word limit are the vendor's to add. */
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

/** The limit of generated tokens: `max_completion_tokens`, else `max_tokens`. */
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
