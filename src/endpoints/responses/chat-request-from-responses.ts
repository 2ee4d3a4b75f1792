import { assertFittingTexts, isJsonObject, isSet, parseVendorJson } from '../../core/json.ts'
import type {
  ChatContentPart,
  ChatMessage,
  ChatRequest,
  ChatResponseFormat,
  ChatToolCall,
  ExtraContent,
  ThinkingBlock,
} from '../chat/chat-request.ts'
import { textOrParts } from '../chat/text-or-parts.ts'
import { acceptedBound, type ChatTranslation, reportTo } from '../chat/translated-dialect.ts'
import { invalidField, unsupportedField } from '../field-errors.ts'
import { INLINE_MODERATION, refuseLostBlocking } from '../moderations/moderations-endpoint.ts'
import { changesNothing } from '../neutral-values.ts'
import { type CallableTool, CUSTOM_INPUT, chatTools, type Report, TOOL_SEARCH_NAME, ToolNames } from './chat-tools.ts'
import { type EnvelopeOwner, isEnvelope, isSealOnly, MESSAGE_STATE, openReasoning } from './reasoning-envelope.ts'
import { inputItems, itemType, type ResponsesItem, type ResponsesRequest } from './responses-request.ts'

/** Fields with an equivalent in chat, or a meaning in the gateway itself. All others are dropped and reported. */
const MAPPED_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'input',
  'instructions',
  'max_output_tokens',
  'temperature',
  'top_p',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'text',
  'reasoning',
  'include',
  'stream',
  'stream_options',
  'store',
  'previous_response_id',
  'background',
  'metadata',
  'user',
  'safety_identifier',
  'prompt_cache_key',
  'service_tier',
  // It has no effect without an overflow, and an overflow is an error.
  'truncation',
])

/** Fields with the same name and meaning in the chat dialect. The chat operation decides which of them a vendor accepts. */
const SHARED_FIELDS = ['temperature', 'top_p', 'user', 'safety_identifier', 'prompt_cache_key', 'service_tier'] as const

/** Fields whose loss would change the answer. */
const REFUSED_FIELDS: ReadonlyMap<string, string> = new Map([
  ['conversation', 'conversations are not kept here; use previous_response_id'],
  ['prompt', 'prompt templates are kept at their vendor; send the text'],
  ['context_management', 'this model does not compact a conversation'],
])

/** Members of `reasoning` with an equivalent in chat, or a meaning in the gateway itself. */
const REASONING_MEMBERS: ReadonlySet<string> = new Set(['effort', 'summary', 'generate_summary'])
/** Values of other `reasoning` members without effect. */
const USUAL_REASONING: ReadonlySet<unknown> = new Set([undefined, null, 'auto', 'standard'])

/** Extra output that a translated answer contains anyway. */
const KNOWN_INCLUDES: ReadonlySet<string> = new Set(['reasoning.encrypted_content'])

/** A request as chat vendors read it. */
export interface TranslatedRequest extends ChatTranslation {
  readonly names: ToolNames
  /** Path in the caller's request where each message begins. */
  readonly paths: readonly string[]
}

/** Facts that the translation needs in addition to the request. */
export interface TranslationFacts extends EnvelopeOwner {
  /** Whether cache breakpoints of parts are supported. Default false: they are reported. */
  readonly keepsBreakpoints?: boolean
  /** Whether the vendor fetches files by their addresses. Default false: they are rejected. */
  readonly takesFileUrls?: boolean
  /** The model's output limit. A higher bound is lowered to it and reported. */
  readonly maxOutputTokens?: number | undefined
}

/**
 * Translates a request for a response into a chat request.
 * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the field.
 */
export function chatRequestFromResponses(responses: ResponsesRequest, facts: TranslationFacts): TranslatedRequest {
  const dropped = new Set<string>()
  const report: Report = Object.assign(reportTo(dropped), {
    keepsBreakpoints: facts.keepsBreakpoints === true,
    takesFileUrls: facts.takesFileUrls === true,
  })
  checkFields(responses, report)
  const names = new ToolNames()
  // Tools come first, because their names decide the names of the calls in the history.
  const tools = chatTools(responses, names, report)
  const { messages, paths } = chatMessagesFromItems(responses, { names, report, owner: facts })
  if (messages.length === 0) throw invalidField('input', 'must contain something to answer')
  const { effort, format } = settingsOf(responses)
  const maxTokens = acceptedBound(responses.max_output_tokens, facts.maxOutputTokens, () => report('max_output_tokens'))
  const responseFormat = chatFormat(format)
  const verbosity = responses.text?.verbosity
  const request: ChatRequest = {
    model: responses.model,
    messages,
    ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
    ...tools,
    ...(isSet(effort) ? { reasoning_effort: effort as NonNullable<ChatRequest['reasoning_effort']> } : {}),
    ...(responseFormat === undefined ? {} : { response_format: responseFormat }),
    ...(isSet(verbosity) ? { verbosity } : {}),
    ...(responses.stream === true ? { stream: true } : {}),
    ...sharedFields(responses),
  }
  return { request, dropped: [...dropped], names, paths, callerField: (field) => callerField(field, paths) }
}

function sharedFields(responses: ResponsesRequest): Partial<ChatRequest> {
  const shared = SHARED_FIELDS.filter((field) => isSet(responses[field]))
  return Object.fromEntries(shared.map((field) => [field, responses[field]]))
}

function checkFields(responses: ResponsesRequest, report: Report): void {
  for (const field of Object.keys(responses)) {
    if (!isSet(responses[field])) continue
    const problem = REFUSED_FIELDS.get(field)
    if (problem !== undefined) throw unsupportedField(field, problem)
    if (field === INLINE_MODERATION) refuseLostBlocking(responses[field])
    if (!MAPPED_FIELDS.has(field) && !changesNothing(field, responses[field])) report(field)
  }
  for (const [name, value] of Object.entries(responses.reasoning ?? {}))
    if (!REASONING_MEMBERS.has(name) && !USUAL_REASONING.has(value)) report(`reasoning.${name}`)
  if (responses.background === true) throw unsupportedField('background', 'this model cannot run in the background')
  if (typeof responses.previous_response_id === 'string')
    throw unsupportedField('previous_response_id', 'answers are not kept here; send the whole conversation')
  for (const name of responses.include ?? []) if (!KNOWN_INCLUDES.has(name)) report(`include.${name}`)
}

interface Settings {
  readonly effort: unknown
  readonly format: unknown
}

/** Returns effort and format of the request, as changed by the latest `configuration_update` item. */
function settingsOf(responses: ResponsesRequest): Settings {
  let effort: unknown = responses.reasoning?.effort
  let format: unknown = responses.text?.format
  for (const item of inputItems(responses)) {
    if (itemType(item) !== 'configuration_update') continue
    const { reasoning, text } = item
    if (isJsonObject(reasoning) && isSet(reasoning['effort'])) effort = reasoning['effort']
    if (isJsonObject(text) && isSet(text['format'])) format = text['format']
  }
  return { effort, format }
}

/** Returns the format of the answer. It is flat in this dialect, but a nested object in chat. */
function chatFormat(format: unknown): ChatResponseFormat | undefined {
  if (!isJsonObject(format) || format['type'] === 'text') return undefined
  const { type, name, schema, strict, description } = format
  if (type === 'json_object') return { type }
  if (type !== 'json_schema' || typeof name !== 'string' || !isJsonObject(schema))
    throw invalidField('text.format', 'must be text, json_object, or json_schema with name and schema')
  return {
    type,
    json_schema: {
      name,
      schema,
      ...(typeof strict === 'boolean' ? { strict } : {}),
      ...(typeof description === 'string' ? { description } : {}),
    },
  }
}

/** Names in this dialect for chat fields that vendors report or reject. */
const CALLER_NAMES: ReadonlyMap<string, string> = new Map([
  ['max_tokens', 'max_output_tokens'],
  ['max_completion_tokens', 'max_output_tokens'],
  ['response_format', 'text.format'],
  ['verbosity', 'text.verbosity'],
  ['reasoning_effort', 'reasoning.effort'],
  ['messages', 'input'],
  ['messages.reasoning_content', 'input.reasoning'],
])

/** Returns a chat field as the caller wrote it: `messages[2].content` may be `input[5].content`. */
function callerField(field: string, paths: readonly string[]): string {
  const known = CALLER_NAMES.get(field)
  if (known !== undefined) return known
  const place = /^messages\[(\d+)\](.*)$/.exec(field)
  const path = place === null ? undefined : paths[Number(place[1])]
  if (path !== undefined) return path + (place?.[2] ?? '')
  return field.replace(/^messages\b/, 'input').replace(/^response_format\b/, 'text.format')
}

/** The messages of a chat, and the path in the request where each begins: `input[3]`. */
export interface TranslatedItems {
  readonly messages: ChatMessage[]
  readonly paths: string[]
}

/** Data that the translation needs in addition to the items. */
export interface ItemContext {
  readonly names: ToolNames
  readonly report: Report
  readonly owner: EnvelopeOwner
}

/**
 * Converts items to messages of a chat. A run of reasoning, assistant messages and calls is one assistant message. Images and files
 * in the output of a tool go into a user message after the outputs, because tool messages hold only text.
 * @throws GatewayError `invalid_request` or `unsupported_parameter`, naming the item or its member.
 */
function chatMessagesFromItems(request: ResponsesRequest, context: ItemContext): TranslatedItems {
  const items = inputItems(request)
  assertFittingTexts(items.map((item) => (typeof item['arguments'] === 'string' ? item['arguments'] : '')))
  const conversation = new ItemConversation(context)
  if (typeof request.instructions === 'string' && request.instructions !== '')
    conversation.system(request.instructions, 'instructions')
  items.forEach((item, index) => {
    conversation.add(item, `input[${index}]`)
  })
  return conversation.end()
}

/** Items that only the dialect's own vendor can read. Its answers also contain the results of hosted tools. */
const HOSTED_HISTORY: ReadonlySet<string> = new Set([
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
  'image_generation_call',
  'mcp_list_tools',
  'mcp_call',
  'mcp_approval_request',
  'mcp_approval_response',
  'program',
  'program_output',
])

/** Types of the parts of an assistant message. Some clients use the types of other messages. */
const ASSISTANT_PARTS: ReadonlySet<unknown> = new Set(['output_text', 'refusal', 'input_text', 'text'])

/** Items that configure the whole request and are not part of the conversation. */
const SETTINGS: ReadonlySet<string> = new Set(['additional_tools', 'configuration_update'])

interface AssistantTurn {
  readonly path: string
  readonly texts: string[]
  readonly refusals: string[]
  readonly thoughts: string[]
  readonly blocks: ThinkingBlock[]
  readonly calls: ChatToolCall[]
  readonly callStates: Map<string, ExtraContent>
  readonly outputs: CallOutput[]
}

interface CallOutput {
  readonly callId: string
  readonly texts: ChatContentPart[]
  readonly path: string
  /** Place of the call among the calls of its message. */
  readonly order: number
}

/** A message with the outputs of its calls, which must directly follow it in a chat, in the order of the calls. */
interface PlacedMessage {
  readonly message: ChatMessage
  readonly path: string
  readonly outputs: readonly CallOutput[]
}

/** The newest call of an id. */
interface KnownCall {
  readonly order: number
  readonly turn: AssistantTurn
  /** Number of calls with this id in the turn that have no output yet. */
  open: number
  output?: CallOutput
  /** JSON of the latest output, as received. */
  given?: string
}

class ItemConversation {
  readonly #messages: PlacedMessage[] = []
  readonly #context: ItemContext
  readonly #calls = new Map<string, KnownCall>()
  #assistant: AssistantTurn | undefined
  /** Media of tool outputs, for the user message after them. */
  #media: ChatContentPart[] = []
  #mediaPath = ''

  constructor(context: ItemContext) {
    this.#context = context
  }

  system(text: string, path: string): void {
    this.#push({ role: 'system', content: text }, path)
  }

  add(item: ResponsesItem, path: string): void {
    const type = itemType(item)
    switch (type) {
      case 'message':
        this.#message(item, path)
        break
      case 'reasoning':
        this.#reasoning(item, path)
        break
      case 'function_call':
        this.#call(item, path, { kind: 'function', name: String(item['name']), namespace: namespaceOf(item) })
        break
      case 'custom_tool_call':
        this.#call(item, path, { kind: 'custom', name: String(item['name']), namespace: namespaceOf(item) })
        break
      case 'tool_search_call':
        this.#call(item, path, { kind: 'tool_search', name: TOOL_SEARCH_NAME, namespace: undefined })
        break
      case 'function_call_output':
      case 'custom_tool_call_output':
      case 'tool_search_output':
        this.#output(item, path)
        break
      case 'item_reference':
        throw invalidField(`${path}.id`, 'refers to an item that is not kept here')
      default:
        this.#other(type, path)
    }
  }

  #other(type: string, path: string): void {
    if (SETTINGS.has(type)) return
    if (HOSTED_HISTORY.has(type)) this.#context.report(`input.${type}`)
    else throw unsupportedField(path, `this model does not support items of type ${JSON.stringify(type.slice(0, 80))}`)
  }

  end(): TranslatedItems {
    this.#close()
    const messages: ChatMessage[] = []
    const paths: string[] = []
    for (const { message, path, outputs } of this.#messages) {
      messages.push(message)
      paths.push(path)
      for (const output of [...outputs].sort((one, next) => one.order - next.order)) {
        messages.push({ role: 'tool', tool_call_id: output.callId, content: textOrParts(output.texts) })
        paths.push(output.path)
      }
    }
    return { messages, paths }
  }

  #message(item: ResponsesItem, path: string): void {
    const { role, content } = item
    if (item['phase'] !== undefined && item['phase'] !== null) this.#context.report('input.phase')
    if (role === 'assistant') {
      this.#assistantText(content, `${path}.content`)
      return
    }
    const parts = partsOf(content, `${path}.content`, this.#context.report)
    if (parts.length === 0) return
    const plain = parts.every((part) => part.type === 'text')
    if (role !== 'user' && !plain) throw unsupportedField(`${path}.content`, 'instructions can contain only text')
    const text = plain ? textOrParts(parts) : parts
    this.#push({ role: role === 'user' ? 'user' : 'system', content: text }, path)
  }

  #assistantText(content: unknown, path: string): void {
    const turn = this.#turn(path)
    if (typeof content === 'string') {
      if (content !== '') turn.texts.push(content)
      return
    }
    for (const [index, part] of (content as readonly Record<string, unknown>[]).entries()) {
      const { type, text, refusal } = part
      if (!ASSISTANT_PARTS.has(type)) throw unsupportedField(`${path}[${index}].type`, 'must be output_text or refusal')
      if (type === 'refusal' && typeof refusal === 'string') turn.refusals.push(refusal)
      else if (typeof text === 'string') turn.texts.push(text)
      else throw invalidField(`${path}[${index}]`, 'must be text or a refusal')
    }
  }

  #reasoning(item: ResponsesItem, path: string): void {
    const turn = this.#turn(path)
    const { encrypted_content: content } = item
    const state = isEnvelope(content)
      ? openReasoning(content, this.#context.owner, `${path}.encrypted_content`)
      : undefined
    if (typeof content === 'string' && content !== '' && state === undefined && !isSealOnly(content))
      this.#context.report('input.encrypted_content')
    for (const block of state?.blocks ?? []) turn.blocks.push(block)
    for (const [callId, extra] of Object.entries(state?.calls ?? {})) turn.callStates.set(callId, extra)
    const thought = [...textsIn(item['summary']), ...textsIn(item['content'])].join('\n') || state?.text
    if (thought) turn.thoughts.push(thought)
  }

  #call(item: ResponsesItem, path: string, tool: CallableTool): void {
    const turn = this.#turn(path)
    const id = typeof item['call_id'] === 'string' ? item['call_id'] : ''
    if (id === '') throw invalidField(`${path}.call_id`, 'is required')
    const before = this.#calls.get(id)
    this.#calls.set(id, { order: turn.calls.length, turn, open: before?.turn === turn ? before.open + 1 : 1 })
    const extra = turn.callStates.get(id)
    turn.calls.push({
      id,
      type: 'function',
      function: { name: this.#context.names.chatNameOf(tool), arguments: argumentsOf(item, tool) },
      ...(extra === undefined ? {} : { extra_content: extra }),
    })
  }

  #output(item: ResponsesItem, path: string): void {
    const { call_id: id } = item
    const call = typeof id === 'string' ? this.#calls.get(id) : undefined
    if (typeof id !== 'string' || call === undefined)
      throw invalidField(`${path}.call_id`, 'must be the id of an earlier call')
    this.#closeAssistant()
    const output = item['output'] ?? foundTools(item)
    const given = JSON.stringify(output)
    // A call has one output in a chat. Clients of a conversation resend items that it already contains.
    if (call.open === 0 && call.given === given) return
    call.given = given
    const texts: ChatContentPart[] = []
    const media: ChatContentPart[] = []
    for (const part of partsOf(output, `${path}.output`, this.#context.report))
      if (part.type === 'text') texts.push(part)
      else media.push(part)
    if (media.length > 0) {
      if (this.#media.length === 0) this.#mediaPath = path
      if (texts.length === 0) texts.push({ type: 'text', text: '(The result follows in the next message.)' })
      this.#media.push({ type: 'text', text: `Result of tool call ${id}:` }, ...media)
    }
    if (call.open === 0) for (const text of texts) call.output?.texts.push(text)
    else {
      call.open -= 1
      call.output = { callId: id, texts, path, order: call.order }
      call.turn.outputs.push(call.output)
    }
  }

  #turn(path: string): AssistantTurn {
    this.#closeMedia()
    this.#assistant ??= {
      path: path.replace(/\.content$/, ''),
      texts: [],
      refusals: [],
      thoughts: [],
      blocks: [],
      calls: [],
      callStates: new Map(),
      outputs: [],
    }
    return this.#assistant
  }

  #push(message: ChatMessage, path: string): void {
    this.#close()
    this.#messages.push({ message, path, outputs: [] })
  }

  #close(): void {
    this.#closeAssistant()
    this.#closeMedia()
  }

  #closeMedia(): void {
    if (this.#media.length === 0) return
    this.#messages.push({ message: { role: 'user', content: this.#media }, path: this.#mediaPath, outputs: [] })
    this.#media = []
  }

  #closeAssistant(): void {
    const turn = this.#assistant
    this.#assistant = undefined
    if (turn === undefined) return
    const { texts, refusals, thoughts, blocks, calls, callStates, outputs, path } = turn
    const extra = callStates.get(MESSAGE_STATE)
    if (texts.length + refusals.length + calls.length === 0) return
    const message: ChatMessage = {
      role: 'assistant',
      content: texts.length === 0 ? null : texts.join('\n'),
      ...(refusals.length === 0 ? {} : { refusal: refusals.join('\n') }),
      ...(thoughts.length === 0 ? {} : { reasoning_content: thoughts.join('\n') }),
      ...(blocks.length === 0 ? {} : { thinking_blocks: blocks }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
      ...(extra === undefined ? {} : { extra_content: extra }),
    }
    this.#messages.push({ message, path, outputs })
  }
}

function namespaceOf({ namespace }: ResponsesItem): string | undefined {
  return typeof namespace === 'string' ? namespace : undefined
}

function argumentsOf(item: ResponsesItem, { kind }: CallableTool): string {
  if (kind === 'custom') return JSON.stringify({ [CUSTOM_INPUT]: item['input'] })
  const { arguments: given } = item
  if (typeof given !== 'string') return JSON.stringify(given ?? {})
  if (given.trim() === '' || isJsonObject(parseVendorJson(given))) return given
  // Models write invalid JSON, and an answer may be cut within it. Vendors would then reject every later turn.
  return JSON.stringify({ arguments: given })
}

/** Returns the result of a tool search as text for the model. The tools themselves are added to the request. */
function foundTools({ tools }: ResponsesItem): string {
  const names = Array.isArray(tools) ? tools.flatMap((tool) => (isJsonObject(tool) ? [tool['name']] : [])) : []
  return JSON.stringify({ tools: names })
}

function textsIn(parts: unknown): string[] {
  if (!Array.isArray(parts)) return []
  return parts.flatMap((part) => (isJsonObject(part) && typeof part['text'] === 'string' ? [part['text']] : []))
}

/**
 * Converts content to parts of a chat message. Empty texts are omitted.
 * @throws GatewayError `unsupported_parameter` for content that only the dialect's own vendor could read.
 */
function partsOf(content: unknown, path: string, report: Report): ChatContentPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  if (!Array.isArray(content)) throw invalidField(path, 'must be text or a list of parts')
  return content.flatMap((part: unknown, index) => {
    if (!isJsonObject(part)) throw invalidField(`${path}[${index}]`, 'must be a part with a type')
    const parts = partOf(part, `${path}[${index}]`, report)
    const { prompt_cache_breakpoint } = part
    if (!isJsonObject(prompt_cache_breakpoint)) return parts
    if (report.keepsBreakpoints !== true) report('input.prompt_cache_breakpoint')
    return report.keepsBreakpoints === true ? parts.map((one) => ({ ...one, prompt_cache_breakpoint })) : parts
  })
}

function partOf(part: Record<string, unknown>, path: string, report: Report): ChatContentPart[] {
  switch (part['type']) {
    case 'input_text':
    case 'output_text':
    case 'text': {
      const { text } = part
      if (typeof text !== 'string') throw invalidField(`${path}.text`, 'is required')
      return text === '' ? [] : [{ type: 'text', text }]
    }
    case 'input_image':
      return [imagePart(part, path)]
    case 'input_file':
      return [filePart(part, path, report)]
  }
  throw unsupportedField(`${path}.type`, 'this model accepts input_text, input_image and input_file')
}

function imagePart(
  { image_url: url, detail, file_id: fileId }: Record<string, unknown>,
  path: string,
): ChatContentPart {
  if (typeof url !== 'string' || url === '') {
    if (typeof fileId === 'string') throw unsupportedField(`${path}.file_id`, 'send the image as image_url')
    throw invalidField(`${path}.image_url`, 'is required')
  }
  const known = DETAILS.find((one) => one === detail)
  return { type: 'image_url', image_url: { url, ...(known === undefined ? {} : { detail: known }) } }
}

const DETAILS = ['auto', 'low', 'high', 'original'] as const

function filePart(part: Record<string, unknown>, path: string, { takesFileUrls }: Report): ChatContentPart {
  const { file_data: data, file_url: url, filename } = part
  if (typeof data === 'string' && data !== '')
    return { type: 'file', file: { file_data: data, filename: typeof filename === 'string' ? filename : 'file' } }
  if (takesFileUrls === true && typeof url === 'string' && url !== '')
    return { type: 'file', file: { file_url: url, ...(typeof filename === 'string' ? { filename } : {}) } }
  const other = ['file_id', 'file_url'].find((member) => typeof part[member] === 'string')
  if (other !== undefined) throw unsupportedField(`${path}.${other}`, 'send the file as file_data')
  throw invalidField(`${path}.file_data`, 'is required')
}
