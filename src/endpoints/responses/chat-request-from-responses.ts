import { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import type { ChatRequest, ChatResponseFormat } from '../chat/chat-request.ts'
import { invalidField, renamedError, unsupportedField } from '../field-errors.ts'
import { INLINE_MODERATION, refuseLostBlocking } from '../inline-moderation.ts'
import { changesNothing } from '../neutral-values.ts'
import { chatMessagesFromItems } from './chat-messages-from-items.ts'
import { chatTools, type Report } from './chat-tools.ts'
import type { EnvelopeOwner } from './reasoning-envelope.ts'
import { inputItems, itemType, type ResponsesRequest } from './responses-request.ts'
import { ToolNames } from './tool-names.ts'

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
export interface TranslatedRequest {
  readonly request: ChatRequest
  /** Fields without an equivalent in chat. */
  readonly dropped: readonly string[]
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
  const report: Report = Object.assign((field: string) => void dropped.add(headerName(field)), {
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
  const maxTokens = maxTokensOf(responses, facts.maxOutputTokens, report)
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
  return { request, dropped: [...dropped], names, paths }
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

function maxTokensOf(
  { max_output_tokens: asked }: ResponsesRequest,
  maxOutputTokens: number | undefined,
  report: Report,
): number | undefined {
  if (!isSet(asked)) return undefined
  if (maxOutputTokens === undefined || asked <= maxOutputTokens) return asked
  report('max_output_tokens')
  return maxOutputTokens
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
export function callerField(field: string, paths: readonly string[]): string {
  const known = CALLER_NAMES.get(field)
  if (known !== undefined) return known
  const place = /^messages\[(\d+)\](.*)$/.exec(field)
  const path = place === null ? undefined : paths[Number(place[1])]
  if (path !== undefined) return path + (place?.[2] ?? '')
  return field.replace(/^messages\b/, 'input').replace(/^response_format\b/, 'text.format')
}

/** Renames the fields in an error of a vendor's translator to this dialect. */
export function asCallerError(cause: unknown, paths: readonly string[]): unknown {
  if (!GatewayError.isInstance(cause) || cause.param === undefined) return cause
  return renamedError(cause, callerField(cause.param, paths))
}

function isSet<Value>(value: Value | null | undefined): value is Value {
  return value !== undefined && value !== null
}

/** Shortens a name for a header, because callers choose some names. */
function headerName(field: string): string {
  return /^[\w.[\]-]{1,80}$/.test(field) ? field : '(unprintable)'
}
