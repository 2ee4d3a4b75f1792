import { createHash } from 'node:crypto'
import { isJsonObject } from '../../core/json.ts'
import type { ChatContentPart, ChatMessage, ChatRequest, ChatToolCall } from '../../endpoints/chat/chat-request.ts'
import type { ResponsesItem } from '../../endpoints/responses/responses-request.ts'
import type { VendorCall } from '../vendor.ts'
import { readReasoning } from './encrypted-reasoning.ts'
import { invalidParameter, unsupportedParameter } from './parameter-errors.ts'

/** Data that the translation needs in addition to the messages. */
export interface ItemContext {
  readonly call: Pick<VendorCall<ChatRequest>, 'apiKey' | 'model'>
  /** Reports a dropped field. */
  readonly report: (field: string) => void
}

/** Members of a message without an equivalent. */
const LOST_MEMBERS = ['name', 'thinking_blocks'] as const

/** Longest id of a call in Responses. */
const MAX_CALL_ID_LENGTH = 64

/**
 * Converts the messages of a chat to items of a Responses request. Reasoning that a message or its calls carry precedes the item
 * that followed it, under its own id, because the vendor rejects it elsewhere.
 * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the message's member.
 */
export function itemsFromChat(messages: readonly ChatMessage[], context: ItemContext): ResponsesItem[] {
  const items: ResponsesItem[] = []
  const callIds = new Map<string, ResponsesItem>()
  messages.forEach((message, index) => {
    const path = `messages[${index}]`
    for (const member of LOST_MEMBERS) if (isSet(message[member])) context.report(`messages.${member}`)
    if (message.role === 'assistant') addAssistant(message, path, { ...context, items, callIds })
    else if (message.role === 'tool') items.push(toolOutput(message, path, callIds))
    else {
      const content = inputContent(message.content, `${path}.content`)
      items.push({ type: 'message', role: message.role, content })
    }
  })
  return items
}

interface AssistantContext extends ItemContext {
  readonly items: ResponsesItem[]
  /** Calls by their ids in the caller's conversation. */
  readonly callIds: Map<string, ResponsesItem>
}

function addAssistant(message: ChatMessage, path: string, context: AssistantContext): void {
  const { items } = context
  for (const member of ['audio', 'function_call'])
    if (isSet(Reflect.get(message, member)))
      throw unsupportedParameter(`${path}.${member}`, `${path}.${member}: this model accepts text and tool calls`)
  const calls = message.tool_calls ?? []
  // Reasoning before the first call of a turn also precedes its text.
  const before = [message.extra_content, calls[0]?.extra_content]
  const carried = before.map((extra) => addReasoning(extra, context))
  const parts = assistantParts(message, path)
  if (parts.length > 0) items.push({ type: 'message', role: 'assistant', content: parts })
  for (const [index, call] of calls.entries()) {
    if (index > 0) carried.push(addReasoning(call.extra_content, context))
    const item = callItem(call, `${path}.tool_calls[${index}]`)
    items.push(item)
    context.callIds.set(call.id, item)
  }
  if (isSet(message.reasoning_content) && message.reasoning_content !== '' && !carried.some(Boolean))
    context.report('messages.reasoning_content')
}

/** Returns whether reasoning was added. */
function addReasoning(extra: unknown, { items, call, report }: AssistantContext): boolean {
  const carried = readReasoning(extra, call)
  if (carried === undefined) return false
  if (!carried.isReadable) {
    report('messages.extra_content')
    return false
  }
  // Omits the id, which could be another account's.
  for (const { encrypted_content } of carried.reasoning)
    items.push({ type: 'reasoning', summary: [], encrypted_content })
  return true
}

function assistantParts({ content, refusal }: ChatMessage, path: string): Record<string, unknown>[] {
  const parts: Record<string, unknown>[] = []
  const given = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : (content ?? [])
  for (const [index, part] of given.entries()) {
    if (part.type === 'text') {
      if (part.text !== '') parts.push({ type: 'output_text', text: part.text })
    } else if (part.type === 'refusal') parts.push({ type: 'refusal', refusal: part.refusal })
    else throw unsupportedPart(`${path}.content[${index}]`, 'text and refusals')
  }
  if (typeof refusal === 'string' && refusal !== '') parts.push({ type: 'refusal', refusal })
  return parts
}

function callItem(call: ChatToolCall, path: string): ResponsesItem {
  const { custom } = call as { readonly custom?: unknown }
  if (isJsonObject(custom) && typeof custom['name'] === 'string' && typeof custom['input'] === 'string')
    return { type: 'custom_tool_call', call_id: wireCallId(call.id), name: custom['name'], input: custom['input'] }
  if ((call.type ?? 'function') !== 'function' || !isJsonObject(call.function))
    throw unsupportedParameter(path, `${path}: this model accepts only calls of functions and custom tools`)
  const { name, arguments: json } = call.function
  return { type: 'function_call', call_id: wireCallId(call.id), name, arguments: json === '' ? '{}' : json }
}

function toolOutput(message: ChatMessage, path: string, callIds: ReadonlyMap<string, ResponsesItem>): ResponsesItem {
  const id = message.tool_call_id ?? ''
  const call = callIds.get(id)
  if (call === undefined)
    throw invalidParameter(`${path}.tool_call_id`, `${path}.tool_call_id: must be the id of an earlier call`)
  const { content } = message
  const parts = Array.isArray(content)
    ? content.map((part, index) => {
        if (part.type === 'text') return { type: 'input_text', text: part.text }
        throw unsupportedPart(`${path}.content[${index}]`, 'text')
      })
    : (content ?? '')
  return { type: `${String(call['type'])}_output`, call_id: wireCallId(id), output: parts }
}

/** Ids of other vendors may be longer. A hash replaces them, always the same one. */
function wireCallId(id: string): string {
  if (id.length <= MAX_CALL_ID_LENGTH) return id
  return `call_${createHash('sha256').update(id).digest('hex').slice(0, 32)}`
}

function inputContent(content: ChatMessage['content'], path: string): string | Record<string, unknown>[] {
  if (!Array.isArray(content)) return content ?? ''
  return content.map((part, index) => {
    const item = inputPart(part, `${path}[${index}]`)
    const { prompt_cache_breakpoint } = part as { readonly prompt_cache_breakpoint?: unknown }
    return isJsonObject(prompt_cache_breakpoint) ? { ...item, prompt_cache_breakpoint } : item
  })
}

function inputPart(part: ChatContentPart, path: string): Record<string, unknown> {
  if (part.type === 'text') return { type: 'input_text', text: part.text }
  if (part.type === 'image_url')
    return { type: 'input_image', image_url: part.image_url.url, detail: part.image_url.detail ?? 'auto' }
  if (part.type !== 'file' || !isJsonObject(part.file)) throw unsupportedPart(path, 'text, image_url and file')
  const { file_data: data, file_id: fileId, filename } = part.file
  return {
    type: 'input_file',
    ...(fileId === undefined ? {} : { file_id: fileId }),
    ...(data === undefined ? {} : { file_data: data }),
    ...(filename === undefined ? {} : { filename }),
  }
}

function unsupportedPart(path: string, taken: string): Error {
  return unsupportedParameter(path, `${path}: this model accepts ${taken} here`)
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null
}
