import { createHash } from 'node:crypto'
import { DetailedError } from '../../core/detailed-error.ts'
import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject, isSet, objectOf } from '../../core/json.ts'
import type {
  ChatContentPart,
  ChatMessage,
  ChatRequest,
  ChatResponseFormat,
  ChatTool,
  ChatToolCall,
  ChatToolChoice,
  ExtraContent,
  ReasoningEffort,
} from '../chat/chat-request.ts'
import { textOrParts } from '../chat/text-or-parts.ts'
import { acceptedBound, reportTo } from '../chat/translated-dialect.ts'
import { invalidField, unsupportedField } from '../field-errors.ts'
import { changesNothing } from '../neutral-values.ts'
import { isObjectSchema, SCHEMA_MAPS } from '../schema.ts'
import {
  addedTool,
  type ContentBlock,
  type MessageParam,
  type MessagesRequest,
  readCarriedState,
  requestTools,
  toolChange,
  toolChanges,
} from './messages-request.ts'

/** Fields with an equivalent in chat. All others are dropped and reported. */
const MAPPED_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'max_tokens',
  'system',
  'stream',
  'temperature',
  'top_p',
  'stop_sequences',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
  'metadata',
])

/** Maximum stop sequences of a chat (API specification, "Limits"). */
const MAX_STOP_SEQUENCES = 4

/** A request in the chat dialect, and the fields without an equivalent there. */
export interface TranslatedRequest {
  readonly request: ChatRequest
  readonly dropped: readonly string[]
}

/**
 * Translates a Messages request into a chat request.
 * @param maxOutputTokens The model's output limit. A higher bound is lowered to it and reported.
 * @param keepsCacheControl Whether `cache_control` of message parts and tools is kept. Else it is reported.
 * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the field.
 */
export function chatRequestFromMessages(
  messages: MessagesRequest,
  maxOutputTokens?: number,
  keepsCacheControl = false,
): TranslatedRequest {
  if (isSet(messages.thread)) throw threadUnsupported()
  const dropped = new Set<string>()
  const report: Report = Object.assign(reportTo(dropped), { keepsCacheControl })
  for (const field of Object.keys(messages))
    if (!MAPPED_FIELDS.has(field) && !changesNothing(field, messages[field])) report(field)
  const { temperature, top_p: topP, stop_sequences: stop } = messages
  if (messages.max_tokens === 0)
    throw unsupportedField('max_tokens', 'this model has no cache to fill; ask for at least 1 token.')
  const maxTokens = acceptedBound(messages.max_tokens, maxOutputTokens, () => report('max_tokens'))
  const effort = reasoningEffort(messages, report)
  const format = responseFormat(messages, report)
  const user = userOf(messages, report)
  if (stop && stop.length > MAX_STOP_SEQUENCES) report('stop_sequences')
  const request: ChatRequest = {
    model: messages.model,
    messages: chatMessages(messages, report),
    ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
    ...(isSet(temperature) ? { temperature } : {}),
    ...(isSet(topP) ? { top_p: topP } : {}),
    ...(stop && stop.length > 0 ? { stop: stop.slice(0, MAX_STOP_SEQUENCES) } : {}),
    ...chatTools(messages, report),
    ...(effort === undefined ? {} : { reasoning_effort: effort }),
    ...(format === undefined ? {} : { response_format: format }),
    ...(user === undefined ? {} : { user }),
    ...(messages.stream === true ? { stream: true } : {}),
  }
  return { request, dropped: [...dropped] }
}

/**
 * Only the dialect's own vendor stores conversations, and without the earlier turns an answer would be wrong. These
 * details make its clients resend the whole conversation without a thread (Anthropic SDK, "Message threads").
 */
function threadUnsupported(): DetailedError {
  return new DetailedError(
    'unsupported_parameter',
    { message: 'thread: this model holds no conversation; send all messages, without a thread', param: 'thread' },
    { error_code: 'thread_unsupported_request', unsupported: [] },
  )
}

function responseFormat({ output_config: output }: MessagesRequest, report: Report): ChatResponseFormat | undefined {
  for (const field of Object.keys(output ?? {}))
    if (field !== 'effort' && field !== 'format' && isSet(output?.[field])) report(`output_config.${field}`)
  const format = output?.['format']
  if (!isSet(format)) return undefined
  const { type, schema } = objectOf(format)
  if (type !== 'json_schema' || !isJsonObject(schema)) {
    throw invalidField('output_config.format', 'must be {"type":"json_schema","schema":…}')
  }
  // Vendors reject `strict` for a schema that is not strict, but accept the schema without it.
  const strictness = isStrictSchema(schema) ? { strict: true } : {}
  return { type, json_schema: { name: 'answer', schema, ...strictness } }
}

function userOf({ metadata }: MessagesRequest, report: Report): string | undefined {
  for (const field of Object.keys(metadata ?? {})) if (field !== 'user_id') report(`metadata.${field}`)
  const userId = metadata?.['user_id']
  return typeof userId === 'string' && userId !== '' ? endUser(userId) : undefined
}

const EFFORTS: readonly ReasoningEffort[] = ['low', 'medium', 'high', 'xhigh', 'max']

// No vendor documents a table. These are the budgets that coding clients call "think", "think harder" and more.
const MEDIUM_BUDGET_TOKENS = 4_000
const HIGH_BUDGET_TOKENS = 16_000

/** Whether to show reasoning. Callers that did not request thinking would read its block as the answer. */
export function showsThinking({ thinking }: MessagesRequest): boolean {
  return (thinking?.type === 'enabled' || thinking?.type === 'adaptive') && thinking['display'] !== 'omitted'
}

/**
 * Maps `thinking` and `output_config.effort` to an effort. Disabled thinking takes precedence, then the effort, then
 * the budget. Adaptive thinking returns `undefined`, so the model uses its default.
 */
export function reasoningEffort(request: MessagesRequest, report: Report): ReasoningEffort | undefined {
  const { thinking, output_config: output } = request
  if (thinking?.type === 'disabled' || thinking?.type === 'between_tools') return 'none'
  const effort = output?.['effort']
  const known = EFFORTS.find((one) => one === effort)
  if (known !== undefined) return known
  if (isSet(effort)) report('output_config.effort')
  const budget = thinking?.['budget_tokens']
  if (thinking?.type !== 'enabled' || typeof budget !== 'number') return undefined
  if (budget < MEDIUM_BUDGET_TOKENS) return 'low'
  return budget < HIGH_BUDGET_TOKENS ? 'medium' : 'high'
}

/** Tool members that chat supports. `type` is `custom` or absent for tools that the caller runs. */
const TOOL_FIELDS: ReadonlySet<string> = new Set(['type', 'name', 'description', 'input_schema', 'strict'])

/**
 * Maps `tools` and `tool_choice`. Tools that the dialect's own vendor runs, such as its web search, have no equivalent and
 * are reported, as is a choice without a remaining tool.
 */
function chatTools(
  request: MessagesRequest,
  report: Report,
): Pick<ChatRequest, 'tools' | 'tool_choice' | 'parallel_tool_calls'> {
  const defined = requestTools(request)
  const translated = defined.flatMap((tool) => chatTool(tool, report))
  const tools = withChanges(defined === request.tools ? translated : ofDifferentNames(translated), request, report)
  const choice = request.tool_choice
  if (tools.length === 0) {
    if (choice && choice.type !== 'auto' && choice.type !== 'none') report('tool_choice')
    return {}
  }
  const chosen = choice ? chatToolChoice(choice, tools) : undefined
  if (choice && chosen === undefined) report('tool_choice')
  return {
    tools,
    ...(chosen === undefined ? {} : { tool_choice: chosen }),
    ...(choice?.['disable_parallel_tool_use'] === true ? { parallel_tool_calls: false } : {}),
  }
}

/** Keeps the last definition of each name: a later definition replaces earlier ones, and vendors reject duplicates. */
function ofDifferentNames(tools: readonly ChatTool[]): ChatTool[] {
  return [...new Map(tools.map((tool) => [tool.function.name, tool])).values()]
}

/** Returns the tools in effect at the end. A removed tool is included only if a later turn adds it again. */
function withChanges(tools: ChatTool[], { messages }: MessagesRequest, report: Report): ChatTool[] {
  const withdrawn = new Set<string>()
  const names = new Set(tools.map((tool) => tool.function.name))
  for (const { type, name, isReference } of toolChanges(messages)) {
    if (isReference && !names.has(name)) report(`messages.${type}`)
    if (type === 'tool_removal') withdrawn.add(name)
    else withdrawn.delete(name)
  }
  return withdrawn.size === 0 ? tools : tools.filter((tool) => !withdrawn.has(tool.function.name))
}

function chatTool(tool: Readonly<Record<string, unknown>>, report: Report): ChatTool[] {
  const { type, name, description, input_schema: schema, strict } = tool
  if ((type !== undefined && type !== null && type !== 'custom') || typeof name !== 'string') {
    report(`tools.${typeof type === 'string' ? type : 'unnamed'}`)
    return []
  }
  for (const field of Object.keys(tool))
    if (!TOOL_FIELDS.has(field) && field !== 'cache_control') report(`tools.${field}`)
  const parameters = completeSchema(isJsonObject(schema) ? schema : { type: 'object' })
  // Vendors reject `strict` for a schema that is not strict, also in answer formats.
  const isLost = strict === true && !isStrictSchema(parameters)
  if (isLost) report('tools.strict')
  return [
    {
      ...keptCacheControl(tool, report),
      type: 'function',
      function: {
        name,
        ...(typeof description === 'string' ? { description } : {}),
        parameters,
        ...(typeof strict === 'boolean' && !isLost ? { strict } : {}),
      },
    },
  ]
}

function chatToolChoice(
  { type, name }: { readonly type: string; readonly name?: unknown },
  tools: readonly ChatTool[],
): ChatToolChoice | undefined {
  if (type === 'auto' || type === 'none') return type
  if (type === 'any') return 'required'
  const isThere = type === 'tool' && tools.some((tool) => tool.function.name === name)
  return isThere ? { type: 'function', function: { name: String(name) } } : undefined
}

/** Names of end users that other vendors accept. */
const PLAIN_NAME = /^[\w.@:-]{1,64}$/

/**
 * Returns the end user's name for another vendor. Coding clients include ids of device, account and session, which
 * other vendors reject as too long. Such a name is replaced by its SHA-256, which still distinguishes users.
 */
function endUser(userId: string): string {
  return PLAIN_NAME.test(userId) ? userId : createHash('sha256').update(userId).digest('hex')
}

/**
 * Converts the system prompt and the turns of a request to chat messages. A user turn with tool results becomes one tool message
 * per result, followed by one user message with the rest, because chat requires results directly after their calls.
 * @throws GatewayError `invalid_request` for an unknown role, `unsupported_parameter` for unsupported content, each naming its
 *   path.
 */
export function chatMessages(request: MessagesRequest, report: Report): ChatMessage[] {
  // Other vendors treat an assistant turn at the end as finished and do not continue it.
  if (request.messages.at(-1)?.role === 'assistant') report('messages.prefill')
  const system = systemContent(request.system, report)
  const messages: ChatMessage[] = system.length === 0 ? [] : [{ role: 'system', content: system }]
  // Adds messages one at a time, here and below: a call cannot have as many arguments as a body may have blocks.
  request.messages.forEach((message, index) => {
    for (const one of turnMessages(message, `messages[${index}]`, report)) messages.push(one)
  })
  return messages
}

function turnMessages(message: MessageParam, path: string, report: Report): ChatMessage[] {
  if (isJsonObject(message['output_config'])) report('messages.output_config')
  const blocks = blocksOf(message.content)
  switch (message.role) {
    case 'user':
      return userMessages(blocks, `${path}.content`, report)
    case 'assistant': {
      const answer = assistantMessage(blocks, report)
      return answer === undefined ? [] : [answer]
    }
    case 'system': {
      const content = instructions(blocks, report)
      return content.length === 0 ? [] : [{ role: 'system', content }]
    }
    default:
      throw invalidField(`${path}.role`, 'must be user, assistant or system')
  }
}

function userMessages(blocks: readonly ContentBlock[], path: string, report: Report): ChatMessage[] {
  const results: ChatMessage[] = []
  const parts: ChatContentPart[] = []
  blocks.forEach((block, index) => {
    const blockPath = `${path}[${index}]`
    if (block.type !== 'tool_result') {
      for (const part of userParts(block, blockPath, report)) parts.push(part)
      return
    }
    const { message, rest } = toolResult(block, blockPath, report)
    results.push(message)
    for (const part of rest) parts.push(part)
  })
  if (parts.length === 0) return results
  // Servers of text models reject content in parts.
  const content = parts.every(({ type }) => type === 'text') ? textOrParts(parts) : parts
  return [...results, { role: 'user', content }]
}

/** Some clients begin with a line about themselves. The dialect's own vendor removes it, because it is not an instruction. */
const CLIENT_LINE = /^x-[a-z]+-billing-header:/

function systemContent(system: MessagesRequest['system'], report: Report): string | ChatContentPart[] {
  const blocks = blocksOf(system)
  const first = blocks[0]?.['text']
  if (typeof first !== 'string' || !CLIENT_LINE.test(first)) return instructions(blocks, report)
  report('system[0]')
  return instructions(blocks.slice(1), report)
}

/** Returns the text of blocks, as parts if one of them is to be cached. */
function instructions(blocks: readonly ContentBlock[], report: Report): string | ChatContentPart[] {
  const parts: ChatContentPart[] = []
  for (const block of blocks) {
    const cached = keptCacheControl(block, report)
    if (block.type === 'text') for (const part of textPart(block['text'])) parts.push({ ...part, ...cached })
    else if (addedTool(block) === undefined && toolChange(block) === undefined) report(`messages.${block.type}`)
    // The block changes the tools of the request. Its position in the conversation is lost.
    else if (cached.cache_control !== undefined) report('cache_control')
  }
  return textOrParts(parts)
}

/**
 * Converts an assistant turn to one chat message, or `undefined` if nothing remains. Thinking becomes reasoning text, and the state
 * in a signature returns to the following call. Another vendor's signature is dropped, because only that vendor can read it.
 */
function assistantMessage(blocks: readonly ContentBlock[], report: Report): ChatMessage | undefined {
  const texts: ChatContentPart[] = []
  const thoughts: string[] = []
  const calls: ChatToolCall[] = []
  let carried: ExtraContent | undefined
  let own: ExtraContent | undefined
  for (const block of blocks) {
    const cached = keptCacheControl(block, report)
    if (block.type === 'text') {
      for (const part of textPart(block['text'])) texts.push({ ...part, ...cached })
    } else if (block.type === 'compaction' && typeof block['content'] === 'string') {
      // The summary stands for turns that the client may have left out.
      for (const part of textPart(block['content'])) texts.push({ ...part, ...cached })
    } else if (block.type === 'tool_use') {
      // Chat calls have no place for it.
      if (cached.cache_control !== undefined) report('cache_control')
      calls.push(toolCall(block, carried))
      carried = undefined
    } else if (block.type === 'thinking') {
      if (typeof block['thinking'] === 'string' && block['thinking'] !== '') thoughts.push(block['thinking'])
      // State without a following call belongs to the message itself.
      own = carried ?? own
      carried = readCarriedState(block['signature'])
    } else report(`messages.${block.type}`)
  }
  own = carried ?? own
  const content = textOrParts(texts)
  if (content.length === 0 && calls.length === 0) return undefined
  return {
    role: 'assistant',
    content: content.length === 0 ? null : content,
    ...(thoughts.length === 0 ? {} : { reasoning_content: thoughts.join('\n') }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(own === undefined ? {} : { extra_content: own }),
  }
}

function toolCall(block: ContentBlock, extra: ExtraContent | undefined): ChatToolCall {
  const { id, name, input } = block
  return {
    id: typeof id === 'string' ? id : '',
    type: 'function',
    function: { name: typeof name === 'string' ? name : '', arguments: exactJsonText(input ?? {}) },
    ...(extra === undefined ? {} : { extra_content: extra }),
  }
}

/** Reports a dropped field of the request. */
interface Report {
  (field: string): void
  /** Whether `cache_control` is kept. Default false: it is reported. */
  readonly keepsCacheControl?: boolean
}

/** Returns the `cache_control` of a block or tool if it is kept; else reports it. */
function keptCacheControl(block: Readonly<Record<string, unknown>>, report: Report): { cache_control?: unknown } {
  const control = block['cache_control']
  if (!isJsonObject(control)) return {}
  if (report.keepsCacheControl === true) return { cache_control: control }
  report('cache_control')
  return {}
}

/** Returns the blocks of a content. Plain text is one block. Other members are skipped. */
function blocksOf(content: unknown): ContentBlock[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return Array.isArray(content) ? content.filter(isBlock) : []
}

/**
 * Converts a block of a user turn or tool result to chat parts: text, images, PDF files; text files become text. Blocks
 * with no equivalent are reported.
 * @throws GatewayError `unsupported_parameter` for an image or file that only the dialect's own vendor could read.
 */
function userParts(block: ContentBlock, path: string, report: Report): ChatContentPart[] {
  const cached = keptCacheControl(block, report)
  const parts = plainParts(block, path, report)
  return cached.cache_control === undefined
    ? parts
    : parts.map((part, index) => (index === parts.length - 1 ? { ...part, ...cached } : part))
}

function plainParts(block: ContentBlock, path: string, report: Report): ChatContentPart[] {
  switch (block.type) {
    case 'text':
      return textPart(block['text'])
    case 'image':
      return [imagePart(block['source'], `${path}.source`)]
    case 'document':
      return documentParts(block, path, report)
    case 'search_result':
      return textPart(titled(block, textOf(blocksOf(block['content']))))
    case 'tool_reference':
      return loadedTool(block)
    default:
      report(`messages.${block.type}`)
      return []
  }
}

/** The dialect's own vendor inserts the definition here. It is already in `tools`, but an empty result would look like no match. */
function loadedTool({ tool_name: name }: ContentBlock): { type: 'text'; text: string }[] {
  return typeof name === 'string' ? textPart(`The tool ${name} can be called now.`) : []
}

/** Returns the text of blocks, separated by line breaks. */
function textOf(blocks: readonly ContentBlock[]): string {
  return blocks.flatMap((block) => textPart(block['text']).map(({ text }) => text)).join('\n')
}

function textPart(text: unknown): { type: 'text'; text: string }[] {
  return typeof text === 'string' && text !== '' ? [{ type: 'text', text }] : []
}

function imagePart(source: unknown, path: string): ChatContentPart {
  const { type, url, media_type: mediaType, data } = objectOf(source)
  if (type === 'url' && typeof url === 'string') return { type: 'image_url', image_url: { url } }
  if (type === 'base64' && typeof mediaType === 'string' && typeof data === 'string')
    return { type: 'image_url', image_url: { url: `data:${mediaType};base64,${data}` } }
  throw unsupportedField(path, 'this model accepts images only as base64 or url.')
}

function documentParts(block: ContentBlock, path: string, report: Report): ChatContentPart[] {
  const { type, media_type: mediaType, data, content } = objectOf(block['source'])
  if (isJsonObject(block['citations'])) report('messages.citations')
  if (type === 'text') return textPart(titled(block, data))
  if (type === 'content') {
    const parts = blocksOf(content).flatMap((inner) => userParts(inner, `${path}.source.content`, report))
    return [...textPart(titled(block, '')), ...parts]
  }
  if (type !== 'base64' || typeof mediaType !== 'string' || typeof data !== 'string')
    throw unsupportedField(`${path}.source`, 'this model accepts documents only as base64, text or content.')
  const { title } = block
  const filename = typeof title === 'string' && title !== '' ? title : 'document.pdf'
  return [{ type: 'file', file: { file_data: `data:${mediaType};base64,${data}`, filename } }]
}

/** Prepends the title, the source and the caller's context to a text. */
function titled(block: ContentBlock, text: unknown): string {
  const { title, source, context } = block
  return [title, source, context, text].filter((line) => typeof line === 'string' && line !== '').join('\n')
}

function isBlock(value: unknown): value is ContentBlock {
  return isJsonObject(value) && typeof value['type'] === 'string'
}

/** A tool's result in chat: text for the tool message, and the rest for a user message. */
interface ToolResult {
  readonly message: ChatMessage
  readonly rest: readonly ChatContentPart[]
}

/**
 * Converts a `tool_result` block. Tool messages hold only text, so images and files go into the next user message,
 * after a line that names the tool call. Chat has no field for a failed tool, so the text reports it.
 * @throws GatewayError `unsupported_parameter` for an unsupported image or file.
 */
function toolResult(block: ContentBlock, path: string, report: Report): ToolResult {
  const cached = keptCacheControl(block, report)
  const callId = typeof block['tool_use_id'] === 'string' ? block['tool_use_id'] : ''
  const parts = blocksOf(block['content']).flatMap((inner) => userParts(inner, `${path}.content`, report))
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  const media = parts.filter((part) => part.type !== 'text')
  if (media.length > 0 && texts.length === 0) texts.push('(The result follows in the next message.)')
  if (block['is_error'] === true) texts.unshift('The tool failed.')
  const text = texts.join('\n')
  // One mark replaces all marks: that of the whole result, else of its last text.
  const marks = [...parts.filter((part) => part.type === 'text'), cached].map(
    (marked: { cache_control?: unknown; type?: string }) => marked.cache_control,
  )
  const mark = marks.findLast((control) => control !== undefined)
  const content = mark === undefined ? text : [{ type: 'text' as const, text, cache_control: mark }]
  return {
    message: { role: 'tool', tool_call_id: callId, content },
    rest: media.length === 0 ? [] : [{ type: 'text', text: `Result of tool call ${callId}:` }, ...media],
  }
}

/** Members that other vendors require of a schema by its type. Empty ones allow what a schema without them allows. */
const REQUIRED = { object: 'properties', array: 'items' } as const

/**
 * Adds empty `properties` to objects and empty `items` to arrays that lack them, nested ones included. Messages do not require them.
 * OpenAI answers 400: "object schema missing properties", "array schema missing items". Unchanged parts are not copied.
 */
function completeSchema<Value>(schema: Value): Value {
  if (Array.isArray(schema)) return changedMembers(schema, Object.entries(schema.map(completeSchema)))
  if (!isJsonObject(schema)) return schema
  const members = Object.entries(schema).map(([name, value]): [string, unknown] => {
    if (VALUE_MEMBERS.has(name)) return [name, value]
    if (!SCHEMA_MAPS.has(name) || !isJsonObject(value)) return [name, completeSchema(value)]
    const named = Object.entries(value).map(([key, one]): [string, unknown] => [key, completeSchema(one)])
    return [name, changedMembers(value, named)]
  })
  const types = Array.isArray(schema['type']) ? schema['type'] : [schema['type']]
  for (const type of ['object', 'array'] as const)
    if (types.includes(type) && schema[REQUIRED[type]] === undefined) members.push([REQUIRED[type], {}])
  return changedMembers(schema, members)
}

function changedMembers<Value extends object>(given: Value, members: readonly (readonly [string, unknown])[]): Value {
  const isSame = members.every(([name, value]) => (given as Record<string, unknown>)[name] === value)
  if (isSame) return given
  return (Array.isArray(given) ? members.map(([, value]) => value) : Object.fromEntries(members)) as Value
}

/** Members that hold values, which contain no schemas. */
const VALUE_MEMBERS: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples', 'required'])

/** Members that strict schemas must not have. */
const REFUSED: ReadonlySet<string> = new Set([
  'allOf',
  'not',
  'if',
  'dependentRequired',
  'dependentSchemas',
  'patternProperties',
  // Not in the guide's list, but rejected: "'oneOf' is not permitted", and likewise below.
  'oneOf',
  'propertyNames',
  'contains',
  'uniqueItems',
  'minLength',
  'maxLength',
])

/**
 * Whether a chat may call a schema strict: every object must name its members, require all of them and allow no others
 * (OpenAI, "Structured outputs"). In Messages, members may be optional.
 */
function isStrictSchema(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.every(isStrictSchema)
  if (!isJsonObject(schema)) return true
  if (isObjectSchema(schema) && !requiresAll(schema)) return false
  return Object.entries(schema).every(([member, value]) => {
    if (REFUSED.has(member)) return false
    if (VALUE_MEMBERS.has(member)) return true
    return isStrictSchema(SCHEMA_MAPS.has(member) && isJsonObject(value) ? Object.values(value) : value)
  })
}

function requiresAll({ properties, required, additionalProperties }: Record<string, unknown>): boolean {
  const names = isJsonObject(properties) ? Object.keys(properties) : []
  const needed = new Set(Array.isArray(required) ? required : [])
  return additionalProperties === false && names.every((name) => needed.has(name))
}
