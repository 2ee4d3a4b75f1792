import { exactJsonText } from '../../core/exact-json.ts'
import { chatCacheTime } from '../../endpoints/cache-marks.ts'
import type { ChatMessage, ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { bearerHeaders } from '../shared/bearer-headers.ts'
import { reportLostMarks } from '../shared/lost-cache-marks.ts'
import { MESSAGES_CHAT_FIELDS } from '../shared/messages-chat-fields.ts'
import { cachePointsBehind, textContent } from '../shared/messages-content.ts'
import { type MessagesRequest, messagesFromChat } from '../shared/messages-from-chat.ts'
import type { MessagesTool, MessagesToolChoice } from '../shared/messages-tools.ts'
import { fieldCheck, surchargesLeftOut, type TranslationTable } from '../shared/translated-chat-fields.ts'
import type { VendorCall, WireRequest } from '../vendor.ts'
import { type ConverseAbilities, converseAbilities } from './converse-abilities.ts'
import { type ConverseBlock, ConverseBlockWriter, cachePoint } from './converse-blocks.ts'

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
