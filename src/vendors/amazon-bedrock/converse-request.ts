import { createHash } from 'node:crypto'
import { exactJsonText } from '../../core/exact-json.ts'
import { chatCacheTime } from '../../endpoints/cache-marks.ts'
import type { ChatMessage, ChatRequest, ThinkingBlock } from '../../endpoints/chat/chat-request.ts'
import { baseModelId } from '../shared/aws.ts'
import { type ModelAbilities, modelAbilities } from '../shared/messages-abilities.ts'
import {
  type AssistantBlock,
  type CachePointBlock,
  cachePointsBehind,
  type ToolResultBlock,
  type ToolResultContent,
  textContent,
  type UserBlock,
} from '../shared/messages-conversation.ts'
import { MESSAGES_CHAT_FIELDS, type MessagesRequest, messagesFromChat } from '../shared/messages-from-chat.ts'
import type { MessagesTool, MessagesToolChoice } from '../shared/messages-tools.ts'
import {
  fieldCheck,
  reportLostMarks,
  surchargesLeftOut,
  type TranslationTable,
} from '../shared/translated-chat-fields.ts'
import { bearerHeaders } from '../shared/vendor-options.ts'
import type { VendorCall, WireRequest } from '../vendor.ts'

/** Every field of a chat request in Converse (Bedrock, reference of `Converse`). As in Messages, without three of its fields. */
export const CONVERSE_FIELDS = {
  ...MESSAGES_CHAT_FIELDS,
  parallel_tool_calls: 'dropped',
  user: 'dropped',
  safety_identifier: 'dropped',
} as const satisfies TranslationTable

/** Billing fields of surcharges that are never sent to the vendor. */
export const SURCHARGES_LEFT_OUT = surchargesLeftOut(CONVERSE_FIELDS)

const reportDroppedFields = fieldCheck(CONVERSE_FIELDS)

/** The body of a Converse call (Bedrock, reference of `Converse`), limited to members used for chat. */
interface ConverseRequest {
  messages: { role: 'user' | 'assistant'; content: ConverseBlock[] }[]
  system?: ConverseBlock[]
  inferenceConfig?: { maxTokens?: number; temperature?: number; topP?: number; stopSequences?: string[] }
  toolConfig?: { tools: ConverseBlock[]; toolChoice?: ConverseBlock }
  outputConfig?: Readonly<Record<string, unknown>>
  additionalModelRequestFields?: Readonly<Record<string, unknown>>
}

/**
 * Writes a chat as a Converse call, through Messages: both have the same turns and rules.
 * @param prefix Path before the API's own path.
 * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the field.
 */
export function converseToWire(call: VendorCall<ChatRequest>, prefix: string): WireRequest {
  const dropped = new Set<string>()
  const body = converseRequest(call, (field) => void dropped.add(field))
  const { upstream } = call.model
  return {
    path: `${prefix}/model/${encodeURIComponent(upstream)}/${call.stream ? 'converse-stream' : 'converse'}`,
    headers: bearerHeaders(call.apiKey, call.stream ? '*/*' : 'application/json'),
    body: exactJsonText(body),
    dropped: [...dropped],
  }
}

function converseRequest(call: VendorCall<ChatRequest>, report: (field: string) => void): ConverseRequest {
  const { request } = call
  const abilities = converseAbilities(call.model.upstream)
  reportDroppedFields(request, report)
  if (abilities.messages.cachePoints !== true) reportLostMarks(request, report)
  const { turns, system } = separated(request.messages, abilities)
  const given = abilities.reasoningFields === undefined ? request : { ...request, reasoning_effort: null }
  const messages = messagesFromChat(
    { ...call, request: { ...given, messages: turns } },
    { abilities: abilities.messages, refusesSampling: false },
    report,
  )
  const writer = new ConverseBlockWriter(abilities)
  const written = messages.messages.flatMap((turn) =>
    turn.role === 'system' ? [] : [{ role: turn.role, content: writer.content(turn.content) }],
  )
  const allSystem = [...system, ...systemBlocks(messages)]
  if (isMarked(call, abilities)) markEnds(allSystem, written)
  return {
    messages: written,
    ...(allSystem.length === 0 ? {} : { system: allSystem }),
    ...inferenceConfig(messages),
    ...toolConfig(messages, request, abilities, report),
    ...outputConfig(messages),
    ...additionalFields(messages, request, abilities, report),
  }
}

/** Whether to add cache points: the gateway requests caching, the model supports it, and a long enough prompt has no marks. */
function isMarked({ promptCaching, request }: VendorCall<ChatRequest>, { messages }: ConverseAbilities): boolean {
  if (promptCaching === undefined || messages.cachePoints !== true) return false
  return promptCaching.promptTokens >= messages.cachedFromTokens && chatCacheTime(request) === 'none'
}

/** Adds cache points at the end of the system prompt and of the last turn. */
function markEnds(system: ConverseBlock[], turns: readonly { readonly content: ConverseBlock[] }[]): void {
  const point: ConverseBlock = { cachePoint: { type: 'default' } }
  if (system.length > 0) system.push(point)
  turns.at(-1)?.content.push(point)
}

/** System text that is among the turns because there is no other text. */
function systemBlocks({ system }: MessagesRequest): ConverseBlock[] {
  if (system === undefined) return []
  return typeof system === 'string'
    ? [{ text: system }]
    : system.map((block) => (block.type === 'text' ? { text: block.text } : cachePoint(block)))
}

/**
 * Separates system text, with its cache points, from the turns. A conversation with only system text stays unchanged and becomes a
 * user turn. Reasoning that the model does not accept back is dropped.
 */
function separated(
  messages: readonly ChatMessage[],
  { messages: abilities, readsReasoning }: ConverseAbilities,
): { readonly turns: ChatMessage[]; readonly system: ConverseBlock[] } {
  const own = messages.map((message) => {
    if (readsReasoning || message.thinking_blocks === undefined) return message
    const { thinking_blocks: _signed, ...rest } = message
    return rest
  })
  if (own.every(isSystem)) return { turns: own, system: [] }
  const system = own.flatMap((message, index) =>
    isSystem(message)
      ? textContent(message.content, `messages[${index}].content`, abilities).map((block) =>
          block.type === 'text' ? { text: block.text } : cachePoint(block),
        )
      : [],
  )
  // The emptied message keeps its position, so that errors in other messages name the position that the caller knows.
  return { turns: own.map((message) => (isSystem(message) ? { ...message, content: '' } : message)), system }
}

function isSystem({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer'
}

function inferenceConfig(messages: MessagesRequest): Pick<ConverseRequest, 'inferenceConfig'> {
  const { max_tokens: maxTokens, temperature, top_p: topP, stop_sequences: stopSequences } = messages
  const config = {
    ...(Number.isFinite(maxTokens) ? { maxTokens } : {}),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(stopSequences === undefined ? {} : { stopSequences }),
  }
  return Object.keys(config).length === 0 ? {} : { inferenceConfig: config }
}

/**
 * Returns the tools and their choice. Calls can only be forbidden by omitting the tools. A history with calls needs their tools, so
 * they are added if the request has none.
 */
function toolConfig(
  messages: MessagesRequest,
  request: ChatRequest,
  abilities: ConverseAbilities,
  report: (field: string) => void,
): Pick<ConverseRequest, 'toolConfig'> {
  const { tools: given = [], tool_choice: choice } = messages
  const called = calledTools(messages)
  const isForbidden = choice?.type === 'none'
  if (isForbidden && called.size > 0) report('tool_choice')
  const tools = isForbidden && called.size === 0 ? [] : given
  const known = new Set(tools.map(({ name }) => name))
  const missing = tools.length > 0 ? [] : [...called].filter((name) => !known.has(name))
  const cached = new Map(
    request.tools?.map((tool) => [tool.function?.name, cachePointsBehind(tool, abilities.messages)]),
  )
  const specs = [
    ...tools.flatMap((tool) => [toolSpec(tool), ...(cached.get(tool.name) ?? []).map(cachePoint)]),
    ...missing.map((name) => toolSpec({ name, input_schema: { type: 'object' } })),
  ]
  if (specs.length === 0) return {}
  const toolChoice = converseChoice(choice)
  return { toolConfig: { tools: specs, ...(toolChoice === undefined ? {} : { toolChoice }) } }
}

function toolSpec({ name, description, input_schema: json, strict }: MessagesTool): ConverseBlock {
  return {
    toolSpec: {
      name,
      ...(description === undefined ? {} : { description }),
      inputSchema: { json },
      ...(strict === undefined ? {} : { strict }),
    },
  }
}

function converseChoice(choice: MessagesToolChoice | undefined): ConverseBlock | undefined {
  if (choice === undefined || choice.type === 'none') return undefined
  return choice.type === 'tool' ? { tool: { name: choice.name } } : { [choice.type]: {} }
}

function calledTools({ messages }: MessagesRequest): ReadonlySet<string> {
  const names = new Set<string>()
  for (const turn of messages)
    if (turn.role === 'assistant')
      for (const block of turn.content) if (block.type === 'tool_use') names.add(block.name)
  return names
}

function outputConfig({ output_config: output }: MessagesRequest): Pick<ConverseRequest, 'outputConfig'> {
  if (output === undefined) return {}
  const { effort, format } = output
  const jsonSchema = format === undefined ? undefined : { schema: exactJsonText(format.schema), name: 'answer' }
  return {
    outputConfig: {
      ...(effort === undefined ? {} : { effort }),
      ...(jsonSchema === undefined ? {} : { textFormat: { type: 'json_schema', structure: { jsonSchema } } }),
    },
  }
}

function additionalFields(
  { thinking }: MessagesRequest,
  { reasoning_effort: effort }: ChatRequest,
  { reasoningFields }: ConverseAbilities,
  report: (field: string) => void,
): Pick<ConverseRequest, 'additionalModelRequestFields'> {
  const own = effort === undefined || effort === null ? undefined : reasoningFields?.(effort)
  if (reasoningFields !== undefined && effort !== undefined && effort !== null && own === undefined)
    report('reasoning_effort')
  const fields = { ...own, ...(thinking === undefined ? {} : { thinking }) }
  return Object.keys(fields).length === 0 ? {} : { additionalModelRequestFields: fields }
}

/** A block of Converse: an object whose only member names its type (Bedrock, reference of `ContentBlock`). */
type ConverseBlock = Readonly<Record<string, unknown>>

const MAX_TOOL_ID_CHARACTERS = 64
const SHORT_TOOL_ID_CHARACTERS = 9
const MAX_NAME_CHARACTERS = 200

/** Writes the blocks of one request with unique file names. */
class ConverseBlockWriter {
  readonly #abilities: Pick<ConverseAbilities, 'hasShortToolIds'>
  readonly #names = new Set<string>()

  constructor(abilities: Pick<ConverseAbilities, 'hasShortToolIds'>) {
    this.#abilities = abilities
  }

  /** Returns the content of a turn. A file must not be alone, so text is added to it. */
  content(blocks: readonly (UserBlock | AssistantBlock)[]): ConverseBlock[] {
    const written = blocks.flatMap((block) => this.#block(block))
    const isFileAlone = written.some((block) => 'document' in block) && !written.some((block) => 'text' in block)
    return isFileAlone ? [{ text: 'See the file.' }, ...written] : written
  }

  #block(block: UserBlock | AssistantBlock): ConverseBlock[] {
    switch (block.type) {
      case 'tool_use':
        return [{ toolUse: { toolUseId: this.#toolId(block.id), name: block.name, input: block.input } }]
      case 'tool_result':
        return this.#toolResult(block)
      case 'thinking':
      case 'redacted_thinking':
        return [{ reasoningContent: reasoning(block) }]
      default:
        return [this.#media(block)]
    }
  }

  #media(block: ToolResultContent): ConverseBlock {
    if (block.type === 'text') return { text: block.text }
    if (block.type === 'cache_point') return cachePoint(block)
    const { source } = block
    // Images given by URL were fetched before, and files have no URLs.
    if (source.type !== 'base64') throw new TypeError('Converse accepts only bytes')
    if (block.type === 'image')
      return { image: { format: source.media_type.slice('image/'.length), source: { bytes: source.data } } }
    const name = this.#fileName(block.title)
    return { document: { format: DOCUMENT_FORMATS.get(source.media_type), name, source: { bytes: source.data } } }
  }

  /** A cache point within the result moves after it, because it is not allowed inside. */
  #toolResult({ tool_use_id: id, content = [], is_error: isError }: ToolResultBlock): ConverseBlock[] {
    const points = content.filter((block) => block.type === 'cache_point')
    const written = content.filter((block) => block.type !== 'cache_point').map((block) => this.#media(block))
    const result = {
      toolUseId: this.#toolId(id),
      content: written.length === 0 ? [{ text: '(empty)' }] : written,
      ...(isError === true ? { status: 'error' } : {}),
    }
    return [{ toolResult: result }, ...points.slice(-1).map(cachePoint)]
  }

  /** Returns an id that the model accepts, equal for a call and its result. */
  #toolId(id: string): string {
    if (this.#abilities.hasShortToolIds === true) return hash(id).slice(0, SHORT_TOOL_ID_CHARACTERS)
    return id.length <= MAX_TOOL_ID_CHARACTERS ? id : hash(id).slice(0, MAX_TOOL_ID_CHARACTERS)
  }

  /** Keeps letters, digits, single spaces and some signs. Repeated names get a number. */
  #fileName(title: string | undefined): string {
    const base =
      (title ?? '')
        .replace(/\.[^.]*$/, '')
        .replace(/[^a-zA-Z0-9()[\]-]+/g, ' ')
        .trim() || 'file'
    let name = base.slice(0, MAX_NAME_CHARACTERS)
    for (let count = 2; this.#names.has(name); count++) name = `${base.slice(0, MAX_NAME_CHARACTERS - 8)} ${count}`
    this.#names.add(name)
    return name
  }
}

/** Converts a cache point to a block. */
function cachePoint({ ttl }: CachePointBlock): ConverseBlock {
  return { cachePoint: { type: 'default', ...(ttl === undefined ? {} : { ttl }) } }
}

function reasoning(block: ThinkingBlock): ConverseBlock {
  if (block.type === 'redacted_thinking') return { redactedContent: block.data }
  return { reasoningText: { text: block.thinking, signature: block.signature } }
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** File formats by media type (Bedrock, reference of `DocumentBlock`). */
const DOCUMENT_FORMATS: ReadonlyMap<string, string> = new Map([
  ['application/pdf', 'pdf'],
  ['text/csv', 'csv'],
  ['application/msword', 'doc'],
  ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'docx'],
  ['application/vnd.ms-excel', 'xls'],
  ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 'xlsx'],
  ['text/html', 'html'],
  ['text/plain', 'txt'],
  ['text/markdown', 'md'],
])

/** How to send requests to a model through Converse. */
interface ConverseAbilities {
  readonly messages: ModelAbilities
  /** Whether the model accepts its own reasoning in later turns. */
  readonly readsReasoning: boolean
  /** Whether tool call ids are short. Default false: up to 64 letters, digits, `_` and `-`. */
  readonly hasShortToolIds?: boolean
  /** Returns the model's own fields for an effort, in `additionalModelRequestFields`, or `undefined` if it has no such effort. */
  reasoningFields?(effort: NonNullable<ChatRequest['reasoning_effort']>): Readonly<Record<string, unknown>> | undefined
}

const COMMON = { documentTypes: new Set(DOCUMENT_FORMATS.keys()) }

/** Abilities of models without an entry. Models with fewer abilities answer 400. */
const ANY: ModelAbilities = {
  ...COMMON,
  sampling: 'both',
  thinking: 'none',
  thinkingOff: 'unasked',
  hidesThinking: false,
  efforts: [],
  forcedToolChoice: 'never',
  prefill: true,
  structuredOutput: false,
  systemInPlace: false,
  maxOutputTokens: Number.POSITIVE_INFINITY,
  contextTokens: Number.POSITIVE_INFINITY,
  maxImageTokens: 1_600,
  cachedFromTokens: 1_000,
}

const EFFORTS_OF_THREE: Readonly<Record<string, string>> = {
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
}

/** Abilities by the start of a model's id without region (Bedrock, user guide, pages of each model). */
const FAMILIES: readonly (readonly [pattern: RegExp, abilities: ConverseAbilities])[] = [
  [
    /^amazon\.nova-2/,
    {
      messages: { ...ANY, forcedToolChoice: 'always', cachePoints: true },
      readsReasoning: true,
      reasoningFields(effort) {
        if (effort === 'none') return { reasoningConfig: { type: 'disabled' } }
        const maxReasoningEffort = EFFORTS_OF_THREE[effort]
        return maxReasoningEffort === undefined
          ? undefined
          : { reasoningConfig: { type: 'enabled', maxReasoningEffort } }
      },
    },
  ],
  [/^amazon\.nova/, { messages: { ...ANY, forcedToolChoice: 'always', cachePoints: true }, readsReasoning: false }],
  [/^mistral\./, { messages: { ...ANY, forcedToolChoice: 'always' }, readsReasoning: false, hasShortToolIds: true }],
  [
    /^openai\.gpt-oss/,
    {
      messages: ANY,
      readsReasoning: false,
      reasoningFields(effort) {
        const known = EFFORTS_OF_THREE[effort]
        return known === undefined ? undefined : { reasoning_effort: known }
      },
    },
  ],
]

const OTHERS: ConverseAbilities = { messages: ANY, readsReasoning: false }

const CLAUDE = /^anthropic\./

/** Returns the abilities of a model, by an id with or without region, or an ARN. */
export function converseAbilities(upstream: string): ConverseAbilities {
  const base = baseModelId(upstream)
  if (CLAUDE.test(base)) {
    // The service does not support system messages between turns.
    const messages = { ...COMMON, ...modelAbilities(base), systemInPlace: false, cachePoints: true }
    return { messages, readsReasoning: true }
  }
  return FAMILIES.find(([pattern]) => pattern.test(base))?.[1] ?? OTHERS
}
