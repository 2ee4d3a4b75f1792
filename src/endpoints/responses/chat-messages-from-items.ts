import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { assertFittingTexts } from '../../core/json-size.ts'
import type { ChatContentPart, ChatMessage, ChatToolCall, ExtraContent, ThinkingBlock } from '../chat/chat-request.ts'
import { textOrParts } from '../chat/text-or-parts.ts'
import { invalidField, unsupportedField } from '../field-errors.ts'
import { CUSTOM_INPUT, type Report } from './chat-tools.ts'
import { type EnvelopeOwner, isEnvelope, isSealOnly, MESSAGE_STATE, openReasoning } from './reasoning-envelope.ts'
import { inputItems, itemType, type ResponsesItem, type ResponsesRequest } from './responses-request.ts'
import { type CallableTool, TOOL_SEARCH_NAME, type ToolNames } from './tool-names.ts'

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
export function chatMessagesFromItems(request: ResponsesRequest, context: ItemContext): TranslatedItems {
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
