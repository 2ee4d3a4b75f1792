import { createHash } from 'node:crypto'
import type { CatalogModel } from '../../catalog/model.ts'
import { isJsonObject, isSet } from '../../core/json.ts'
import type {
  ChatContentPart,
  ChatMessage,
  ChatRequest,
  ChatResponseFormat,
  ChatToolCall,
} from '../../endpoints/chat/chat-request.ts'
import { searchParam } from '../../endpoints/chat/chat-surcharges.ts'
import type { ResponsesItem, ResponsesRequest, ResponsesTool } from '../../endpoints/responses/responses-request.ts'
import type { VendorCall } from '../vendor.ts'
import { invalidParameter, unsupportedParameter } from './invalid-response.ts'
import { forcesCall } from './openai-chat-dialect.ts'
import { readReasoning } from './reasoning.ts'
import { fieldCheck, reportLostMarks, translationTable } from './translated-chat-fields.ts'

/** Catalog `protocol` of chat models that their vendor offers only through Responses. */
export const RESPONSES_PROTOCOL = 'responses'

/** Treatment of each chat field (OpenAI, "Migrate to the Responses API"). */
export const CHAT_FIELDS = translationTable({
  mapped: [
    ...['model', 'messages', 'temperature', 'top_p', 'max_tokens', 'max_completion_tokens', 'stream'],
    ...['stream_options', 'logprobs', 'top_logprobs', 'tools', 'tool_choice', 'parallel_tool_calls'],
    ...['response_format', 'reasoning_effort', 'user', 'metadata', 'moderation', 'prompt_cache_key'],
    ...['prompt_cache_options', 'prompt_cache_retention', 'safety_identifier', 'service_tier', 'store'],
    ...['verbosity', 'web_search_options'],
  ],
  refused: [
    ...['n', 'stop', 'presence_penalty', 'frequency_penalty', 'logit_bias', 'audio', 'function_call'],
    ...['functions', 'modalities'],
  ],
  dropped: ['seed', 'prediction'],
} as const)

const checkFields = fieldCheck(CHAT_FIELDS)

/** Fields with the same name and meaning in both dialects. */
const SHARED_FIELDS = [
  ...['parallel_tool_calls', 'user', 'metadata', 'moderation', 'prompt_cache_key', 'prompt_cache_options'],
  ...['prompt_cache_retention', 'safety_identifier', 'service_tier'],
] as const

/** Smallest `max_output_tokens` of the dialect. */
const MIN_OUTPUT_TOKENS = 16

/** Facts that the translation needs in addition to the request. */
export interface ResponsesFacts extends Omit<ItemContext, 'report' | 'call'> {
  readonly call: VendorCall<ChatRequest>
}

/**
 * Translates a chat into a request for a response that is not stored: the caller carries the conversation.
 * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the field that cannot be carried.
 */
export function responsesFromChat({ call }: ResponsesFacts): {
  readonly request: ResponsesRequest
  readonly dropped: readonly string[]
} {
  const { request: chat, model } = call
  const dropped = new Set<string>()
  const report = (field: string): void => void dropped.add(field)
  checkFields(chat, report)
  // The dialect supports breakpoints in input, but not in the model's own output or tool results.
  reportLostMarks(
    chat,
    report,
    ({ field }, { role }) => field === 'prompt_cache_breakpoint' && role !== 'assistant' && role !== 'tool',
  )
  refuseOtherSearches(chat)
  if (chat['store'] === true) report('store')
  const bound = outputBound(chat)
  const text = textSettings(chat)
  // A model that does not reason rejects the request for reasoning.
  const include = model.hasHiddenReasoning === false ? [] : ['reasoning.encrypted_content']
  if (chat.logprobs === true) include.push('message.output_text.logprobs')
  const tools = toolsOf(chat)
  // The dialect rejects a choice without tools.
  const asked = toolChoice(chat.tool_choice)
  const choice = tools.length === 0 ? undefined : asked
  if (tools.length === 0 && forcesCall(chat.tool_choice)) report('tool_choice')
  const request: ResponsesRequest = {
    model: model.upstream,
    input: itemsFromChat(chat.messages, { call, report }),
    ...(bound === undefined ? {} : { max_output_tokens: bound }),
    ...sampling(chat),
    ...(tools.length === 0 ? {} : { tools }),
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...(text === undefined ? {} : { text }),
    ...reasoning(chat, model),
    ...shared(chat),
    ...(chat.logprobs === true && isSet(chat.top_logprobs) ? { top_logprobs: chat.top_logprobs } : {}),
    ...(include.length === 0 ? {} : { include }),
    store: false,
    ...(call.stream ? { stream: true, ...obfuscation(chat) } : {}),
  }
  return { request, dropped: [...dropped] }
}

/** Searches are charged individually, so only those that the dialect knows are passed on. */
function refuseOtherSearches(chat: ChatRequest): void {
  const param = searchParam(chat)
  if (param === undefined || param === 'web_search_options' || param.startsWith('tools[')) return
  throw unsupportedParameter(param, `${param}: this model searches by web_search_options`)
}

function outputBound({ max_completion_tokens: ofAll, max_tokens: older }: ChatRequest): number | undefined {
  const bound = ofAll ?? older
  if (!isSet(bound)) return undefined
  if (bound >= MIN_OUTPUT_TOKENS) return bound
  const param = isSet(ofAll) ? 'max_completion_tokens' : 'max_tokens'
  throw invalidParameter(param, `${param}: must be at least ${MIN_OUTPUT_TOKENS} for this model`)
}

/** The default is omitted: reasoning models accept no other value, and some not even this one. */
function sampling({ temperature, top_p: topP }: ChatRequest): Pick<ResponsesRequest, 'temperature' | 'top_p'> {
  return {
    ...(isSet(temperature) && temperature !== 1 ? { temperature } : {}),
    ...(isSet(topP) && topP !== 1 ? { top_p: topP } : {}),
  }
}

function reasoning(
  { reasoning_effort: effort }: ChatRequest,
  { protocol }: CatalogModel,
): Pick<ResponsesRequest, 'reasoning'> {
  if (!isSet(effort)) return {}
  // Organizations that OpenAI has not verified get 400 for a summary, which chat completions would not return either.
  const isShown = effort !== 'none' && protocol === RESPONSES_PROTOCOL
  return { reasoning: isShown ? { effort, summary: 'auto' } : { effort } }
}

function shared(chat: ChatRequest): Partial<ResponsesRequest> {
  return Object.fromEntries(SHARED_FIELDS.filter((field) => isSet(chat[field])).map((field) => [field, chat[field]]))
}

function obfuscation({ stream_options: options }: ChatRequest): Partial<ResponsesRequest> {
  const padded = options?.include_obfuscation
  return padded === undefined ? {} : { stream_options: { include_obfuscation: padded } }
}

function textSettings(chat: ChatRequest): ResponsesRequest['text'] | undefined {
  const { verbosity } = chat
  const format = isSet(chat.response_format) ? textFormat(chat.response_format) : undefined
  if (format === undefined && !isSet(verbosity)) return undefined
  return {
    ...(format === undefined ? {} : { format }),
    ...(isSet(verbosity) ? { verbosity: verbosity as string } : {}),
  }
}

/** A schema is nested in chat, but flat in Responses. */
function textFormat(format: ChatResponseFormat): { type: string; [field: string]: unknown } {
  if (format.type !== 'json_schema') return { ...format }
  if (!isJsonObject(format.json_schema))
    throw invalidParameter('response_format.json_schema', 'response_format.json_schema: is required')
  const { name, description, schema, strict } = format.json_schema
  return {
    type: 'json_schema',
    name,
    schema: schema ?? {},
    ...(isSet(description) ? { description } : {}),
    ...(isSet(strict) ? { strict } : {}),
  }
}

function toolsOf(chat: ChatRequest): ResponsesTool[] {
  const given: readonly Record<string, unknown>[] = (chat.tools ?? []) as unknown as Record<string, unknown>[]
  const tools = given.map((tool, index) => toolOf(tool, `tools[${index}]`))
  const { web_search_options: search } = chat
  if (!isSet(search)) return tools
  // A search is charged, so the request for one must be unambiguous.
  if (!isJsonObject(search)) throw invalidParameter('web_search_options', 'web_search_options: must be an object')
  tools.push(searchTool(search))
  return tools
}

function toolOf(tool: Record<string, unknown>, path: string): ResponsesTool {
  const { type, function: definition } = tool
  if (typeof type === 'string' && type.startsWith('web_search')) return { ...tool, type }
  if (type === 'custom' && isJsonObject(tool['custom'])) return customTool(tool['custom'])
  if (type !== 'function' || !isJsonObject(definition))
    throw unsupportedParameter(path, `${path}: this model accepts functions, custom tools and web_search here`)
  const { name, description, parameters, strict } = definition
  return {
    type,
    name,
    ...(isSet(description) ? { description } : {}),
    parameters: parameters ?? { type: 'object', properties: {} },
    // A chat is not strict by default; Responses would be.
    strict: strict === true,
  }
}

/** A grammar is nested in chat. */
function customTool({ name, description, format }: Record<string, unknown>): ResponsesTool {
  const grammar = isJsonObject(format) && isJsonObject(format['grammar']) ? format['grammar'] : undefined
  return {
    type: 'custom',
    name,
    ...(isSet(description) ? { description } : {}),
    ...(isSet(format) ? { format: grammar === undefined ? format : { type: 'grammar', ...grammar } } : {}),
  }
}

/** The user's location is nested in chat. */
function searchTool(options: Record<string, unknown>): ResponsesTool {
  const { search_context_size: size, user_location: location } = options
  const approximate = isJsonObject(location) ? location['approximate'] : undefined
  return {
    type: 'web_search',
    ...(isSet(size) ? { search_context_size: size } : {}),
    ...(isJsonObject(approximate) ? { user_location: { type: 'approximate', ...approximate } } : {}),
  }
}

function toolChoice(choice: unknown): ResponsesRequest['tool_choice'] | undefined {
  if (!isSet(choice)) return undefined
  if (typeof choice === 'string') return choice
  const named = namedTool(choice)
  if (named !== undefined) return named
  const subset = isJsonObject(choice) && choice['type'] === 'allowed_tools' ? choice['allowed_tools'] : undefined
  if (isJsonObject(subset) && Array.isArray(subset['tools'])) {
    const tools = subset['tools'].map(namedTool)
    if (!tools.includes(undefined)) return { type: 'allowed_tools', mode: subset['mode'], tools }
  }
  throw unsupportedParameter(
    'tool_choice',
    'tool_choice: this model accepts none, auto, required, functions and custom tools',
  )
}

function namedTool(choice: unknown): { type: string; name: unknown } | undefined {
  const type = isJsonObject(choice) && choice['type'] === 'custom' ? 'custom' : 'function'
  if (!isJsonObject(choice) || choice['type'] !== type || !isJsonObject(choice[type])) return undefined
  return { type, name: choice[type]['name'] }
}

/** Data that the translation needs in addition to the messages. */
interface ItemContext {
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
function itemsFromChat(messages: readonly ChatMessage[], context: ItemContext): ResponsesItem[] {
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
