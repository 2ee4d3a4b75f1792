import { createHash } from 'node:crypto'
import { DetailedError } from '../../core/detailed-error.ts'
import { isJsonObject } from '../../core/json.ts'
import type {
  ChatRequest,
  ChatResponseFormat,
  ChatTool,
  ChatToolChoice,
  ReasoningEffort,
} from '../chat/chat-request.ts'
import { invalidField, unsupportedField } from '../field-errors.ts'
import { changesNothing } from '../neutral-values.ts'
import { chatMessages, keptCacheControl, type Report } from './chat-messages.ts'
import { completeSchema } from './complete-schema.ts'
import type { MessagesRequest } from './messages-request.ts'
import { requestTools, toolChanges } from './request-tools.ts'
import { isStrictSchema } from './strict-schema.ts'

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
  const report: Report = Object.assign((field: string) => void dropped.add(headerName(field)), { keepsCacheControl })
  for (const field of Object.keys(messages))
    if (!MAPPED_FIELDS.has(field) && !changesNothing(field, messages[field])) report(field)
  const { temperature, top_p: topP, stop_sequences: stop } = messages
  const maxTokens = maxTokensOf(messages, maxOutputTokens, report)
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

function maxTokensOf(
  { max_tokens: asked }: MessagesRequest,
  maxOutputTokens: number | undefined,
  report: Report,
): number | undefined {
  if (asked === undefined) return undefined
  if (asked === 0) {
    throw unsupportedField('max_tokens', 'this model has no cache to fill; ask for at least 1 token.')
  }
  if (maxOutputTokens === undefined || asked <= maxOutputTokens) return asked
  report('max_tokens')
  return maxOutputTokens
}

function responseFormat({ output_config: output }: MessagesRequest, report: Report): ChatResponseFormat | undefined {
  for (const field of Object.keys(output ?? {}))
    if (field !== 'effort' && field !== 'format' && isSet(output?.[field])) report(`output_config.${field}`)
  const format = output?.['format']
  if (!isSet(format)) return undefined
  const { type, schema } = isJsonObject(format) ? format : {}
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

function isSet<Value>(value: Value | null | undefined): value is Value {
  return value !== undefined && value !== null
}

/** Shortens a name for a header, because callers choose some names. */
function headerName(field: string): string {
  return /^[\w.[\]-]{1,80}$/.test(field) ? field : '(unprintable)'
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
