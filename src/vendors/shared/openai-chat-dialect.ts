import { isJsonObject } from '../../core/json.ts'
import { type CacheTime, chatCacheTime } from '../../endpoints/cache-marks.ts'
import type { ChatMessage, ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { changesNothing } from '../../endpoints/neutral-values.ts'
import type { ChatOperation, VendorCall, VendorFailure } from '../vendor.ts'
import type { KeyHeaders } from './vendor-options.ts'

/**
 * Turns content that a server writes as a list of parts, `{ type: 'thinking' }` and `{ type: 'text' }`, into the text and
 * `reasoning_content` that clients read. Other parts, such as references, have no place in the dialect and are left out.
 * Edits the message or delta in place; true when it did.
 */
export function mendContentParts(message: Record<string, unknown>): boolean {
  const parts = message['content']
  if (!Array.isArray(parts)) return false
  let text = ''
  let thinking = ''
  for (const part of parts) {
    if (typeof part === 'string') text += part
    else if (!isJsonObject(part)) continue
    else if (part['type'] === 'thinking') thinking += textIn(part['thinking'])
    else text += textIn(part['text'])
  }
  message['content'] = text === '' && thinking !== '' ? null : text
  if (thinking !== '') message['reasoning_content'] = thinking
  return true
}

/** A text, or the texts of a list of parts. */
function textIn(value: unknown): string {
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) return ''
  return value.map((part) => (isJsonObject(part) ? textIn(part['text']) : textIn(part))).join('')
}

/** Treatment of a request field at a vendor of the same dialect. */
export type FieldRule<Request> = 'pass' | 'drop' | FieldMapping<Request>

/** A field that is sent under another name or with another value. */
export interface FieldMapping<Request> {
  /** Whether this value must change. Called only if the field is present. */
  readonly needed: (value: unknown, request: Request) => boolean
  /** Changes a shallow copy of the request. Nested values belong to the caller and must be replaced, not edited. */
  readonly apply: (body: Record<string, unknown>, value: unknown) => void
  /** Returns the names of lost fields, for the caller. If omitted, nothing is lost. */
  readonly losses?: (value: unknown, request: Request) => readonly string[]
}

/** A rule for each field that a vendor treats specially. Fields without a rule are passed on. */
export type FieldRules<Request> = Readonly<Record<string, FieldRule<Request>>>

/** The request in the form that the vendor accepts. */
export interface RuledBody {
  /** Undefined if every field is passed on, so that the caller's bytes can be sent unchanged. */
  readonly body: Record<string, unknown> | undefined
  /** Fields set by the caller that the vendor does not support. */
  readonly dropped: readonly string[]
}

const NOTHING_DROPPED: readonly string[] = []

/**
 * Applies a vendor's table to a request, which is never changed itself.
 * @param isNeutral Whether a value has the same effect as none, so that its loss is not reported.
 */
export function applyFieldRules<Request extends object>(
  request: Request,
  rules: FieldRules<Request>,
  isNeutral: (field: string, value: unknown) => boolean = changesNothing,
): RuledBody {
  const values = request as Readonly<Record<string, unknown>>
  let body: Record<string, unknown> | undefined
  let dropped: string[] | undefined
  for (const field in rules) {
    const value = values[field]
    const rule = rules[field]
    if (value === undefined || rule === undefined || rule === 'pass') continue
    if (rule === 'drop') {
      body ??= { ...values }
      delete body[field]
      // null means "not set" in this dialect, so the member is removed.
      if (value !== null && !isNeutral(field, value)) {
        dropped ??= []
        dropped.push(field)
      }
    } else if (rule.needed(value, request)) {
      body ??= { ...values }
      rule.apply(body, value)
      const losses = rule.losses?.(value, request) ?? NOTHING_DROPPED
      if (losses.length > 0) dropped = [...(dropped ?? []), ...losses]
    }
  }
  return { body, dropped: dropped ?? NOTHING_DROPPED }
}

/** The fields of a chat request that the gateway knows by name. */
export type ChatField = keyof {
  [Field in keyof ChatRequest as string extends Field
    ? never
    : number extends Field
      ? never
      : Field]: ChatRequest[Field]
}

/** A rule for each field, so that none is passed or dropped without a decision. */
export type ChatFieldTable = Readonly<Record<ChatField, FieldRule<ChatRequest>>>

/** Returns the rules of a table other than `pass`. */
export function activeRules(table: ChatFieldTable): FieldRules<ChatRequest> {
  return Object.fromEntries(Object.entries(table).filter(([, rule]) => rule !== 'pass'))
}

/** Table of a server that accepts every field unchanged. A vendor lists its exceptions. */
export const PASS_ALL: ChatFieldTable = {
  model: 'pass',
  messages: 'pass',
  temperature: 'pass',
  top_p: 'pass',
  max_tokens: 'pass',
  max_completion_tokens: 'pass',
  n: 'pass',
  stream: 'pass',
  stream_options: 'pass',
  stop: 'pass',
  presence_penalty: 'pass',
  frequency_penalty: 'pass',
  logit_bias: 'pass',
  logprobs: 'pass',
  top_logprobs: 'pass',
  seed: 'pass',
  tools: 'pass',
  tool_choice: 'pass',
  parallel_tool_calls: 'pass',
  response_format: 'pass',
  reasoning_effort: 'pass',
  user: 'pass',
}

/** Whether a choice makes the model call a tool. Without tools, no other choice has a meaning. */
export function forcesCall(choice: ChatRequest['tool_choice']): boolean {
  if (choice === undefined || choice === null || choice === 'auto' || choice === 'validated' || choice === 'none')
    return false
  return !isJsonObject(choice) || choice.type !== 'allowed_tools' || choice.allowed_tools?.mode === 'required'
}

/** Whether a message carries fields that the gateway adds to answers and strict servers reject in a history. */
export function hasExtensions(message: ChatMessage): boolean {
  if (message.reasoning_content !== undefined || message.thinking_blocks !== undefined) return true
  if (message.extra_content !== undefined) return true
  return Array.isArray(message.tool_calls) && message.tool_calls.some((call) => call.extra_content !== undefined)
}

/** Removes those fields from a message. Returns the same object if it has none. */
export function withoutExtensions(message: ChatMessage): ChatMessage {
  if (!hasExtensions(message)) return message
  const { reasoning_content: _reasoning, thinking_blocks: _blocks, extra_content: _extra, ...rest } = message
  if (!Array.isArray(rest.tool_calls)) return rest
  return { ...rest, tool_calls: rest.tool_calls.map(({ extra_content: _callExtra, ...call }) => call) }
}

/** Removes the extension fields from a history. */
export const plainMessages: FieldMapping<ChatRequest> = {
  needed: (_value, request) => request.messages.some(hasExtensions),
  apply: (body, value) => {
    body['messages'] = (value as ChatMessage[]).map(withoutExtensions)
  },
}

/** Request field for the token limit of a model. */
export type TokenLimitField = 'max_tokens' | 'max_completion_tokens'

/**
 * Token limit fields of OpenAI's models. Reasoning models reject `max_tokens` (OpenAI, API reference of chat completions). Rows
 * also cover the dated ids of a model and its fine-tunes.
 */
const TOKEN_LIMIT_FIELDS: ReadonlyMap<string, TokenLimitField> = new Map<string, TokenLimitField>([
  ['gpt-3.5-turbo', 'max_tokens'],
  ['gpt-4', 'max_tokens'],
  ['gpt-4-turbo', 'max_tokens'],
  ['gpt-4o', 'max_tokens'],
  ['gpt-4o-mini', 'max_tokens'],
  ['gpt-4.1', 'max_tokens'],
  ['gpt-4.1-mini', 'max_tokens'],
  ['gpt-4.1-nano', 'max_tokens'],
  ['chatgpt-4o-latest', 'max_tokens'],
  ['o1', 'max_completion_tokens'],
  ['o1-mini', 'max_completion_tokens'],
  ['o3', 'max_completion_tokens'],
  ['o3-mini', 'max_completion_tokens'],
  ['o4-mini', 'max_completion_tokens'],
  ['gpt-5', 'max_completion_tokens'],
  ['gpt-5-mini', 'max_completion_tokens'],
  ['gpt-5-nano', 'max_completion_tokens'],
  ['gpt-5.1', 'max_completion_tokens'],
  ['gpt-5.4', 'max_completion_tokens'],
])

/** Field of the newest models; `max_tokens` is deprecated. */
export const DEFAULT_TOKEN_LIMIT_FIELD: TokenLimitField = 'max_completion_tokens'

const DATE_SUFFIX = /-\d{4}(?:-\d{2}-\d{2})?$/
const FINE_TUNE = /^ft:([^:]+):/

/** Returns the field of a model by the vendor's id, including dated ids and fine-tunes. The host's own rows take precedence. */
export function tokenLimitField(
  upstream: string,
  overrides: Readonly<Record<string, TokenLimitField>> = {},
  fallback: TokenLimitField = DEFAULT_TOKEN_LIMIT_FIELD,
): TokenLimitField {
  const base = FINE_TUNE.exec(upstream)?.[1] ?? upstream
  const family = base.replace(DATE_SUFFIX, '')
  return ownRow(overrides, upstream) ?? ownRow(overrides, family) ?? TOKEN_LIMIT_FIELDS.get(family) ?? fallback
}

function ownRow(rows: Readonly<Record<string, TokenLimitField>>, id: string): TokenLimitField | undefined {
  return Object.hasOwn(rows, id) ? rows[id] : undefined
}

const asCompletionTokens: FieldMapping<ChatRequest> = {
  needed: () => true,
  apply: (body, value) => {
    delete body['max_tokens']
    body['max_completion_tokens'] ??= value
  },
}

/** OpenAI's chat fields: everything is passed on, except what the gateway adds to histories. */
export const OPENAI_FIELDS: ChatFieldTable = { ...PASS_ALL, messages: plainMessages }

/** Chat fields of models that reject `max_tokens`. */
export const OPENAI_REASONING_FIELDS: ChatFieldTable = { ...OPENAI_FIELDS, max_tokens: asCompletionTokens }

/** Routing reads `session_id` of chats and Responses. OpenRouter's references list it, those of the other vendors do not. */
export const ROUTING_RULES = { session_id: 'drop' } as const

/** The rules other than `pass`, by the model's field for the token limit. */
export const OPENAI_RULES: Readonly<Record<TokenLimitField, FieldRules<ChatRequest>>> = {
  max_tokens: { ...activeRules(OPENAI_FIELDS), ...ROUTING_RULES },
  max_completion_tokens: { ...activeRules(OPENAI_REASONING_FIELDS), ...ROUTING_RULES },
}

/** Repairs the answers of a server beyond the common repairs. */
export interface AnswerRepair {
  /** Edits a whole answer in place. Returns whether it changed. */
  whole(completion: Record<string, unknown>): boolean
  /** Returns a function that edits the chunks of one stream in place, in order, and returns whether a chunk changed. */
  chunks(): (chunk: Record<string, unknown>) => boolean
  /** Whether only chunks with tool calls may need it, so that others are passed on unread. */
  readonly isOfToolCalls?: true
}

/** Path of an operation, or a function of the vendor's own model id. */
export type OperationPath = string | ((upstream: string) => string)

/** The differences between servers of OpenAI's chat completions dialect. */
export interface OpenAIChatDialect {
  /** Path below the vendor's origin. */
  readonly path: OperationPath
  /** Headers of a call. Default: a bearer key. */
  readonly headers?: KeyHeaders | undefined
  /** Returns the field table of a model, by the vendor's own id. */
  readonly rulesFor: (upstream: string) => FieldRules<ChatRequest>
  /** Whether streamed tool calls may look complete and are not. Calls that lack a member are always repaired. */
  readonly repairsToolCalls?: true | undefined
  /** Repair for servers whose chunks must be read. */
  readonly answerRepair?: AnswerRepair | undefined
  /**
   * Whether a model, by the vendor's own id, answers this request only in a stream, which the gateway then collects. Default false.
   */
  readonly streamsOnly?: ((upstream: string, request: ChatRequest) => boolean) | undefined
  /** False for servers that report usage in every stream by default. */
  readonly asksForUsage?: boolean | undefined
  /** False for servers that accept images only as bytes. */
  readonly takesImageUrls?: boolean | undefined
  /** Whether a model, by the vendor's own id, receives the text of its reasoning again. Default false. */
  readonly replaysReasoning?: ((upstream: string) => boolean) | undefined
  /** Whether a model, by the vendor's own id, supports marks of Anthropic's dialect. Default false. */
  readonly takesCacheControl?: ((upstream: string) => boolean) | undefined
  /**
   * Whether a model, by the vendor's own id, caches for as long as marks of Anthropic's dialect request, so that reports without a
   * lifetime have that one. Default false.
   */
  readonly cachesAsMarked?: ((upstream: string) => boolean) | undefined
  /** Returns which fields written by translations a model accepts. If omitted, all are sent. */
  readonly abilities?: ChatOperation['abilities']
  /** Whether a model, by the vendor's own id, reasons invisibly for this request. By default, its reasoning is shown. */
  readonly hasHiddenReasoning?: ((upstream: string, request: ChatRequest) => boolean) | undefined
  /** Whether models may reject system messages after the first, so that translated conversations have only one. */
  readonly systemFirst?: true | undefined
  /** Whether the server supports the field `moderation`. Default false: it is dropped, and a request to block is rejected. */
  readonly moderates?: true | undefined
  /** Reads an error envelope inside a stream. */
  readonly streamFailure: (envelope: Record<string, unknown>) => VendorFailure
}

/** Returns the lifetime of a call's cache writes, if only the marks of the prompt state it. */
export function markedCacheTime({ model, request }: VendorCall<ChatRequest>, dialect: ReadDialect): CacheTime {
  return dialect.cachesAsMarked?.(model.upstream) === true ? chatCacheTime(request) : 'none'
}

/** Parts of the dialect for whole answers. */
export type ReadDialect = Pick<OpenAIChatDialect, 'answerRepair' | 'cachesAsMarked'> &
  Partial<Pick<OpenAIChatDialect, 'streamFailure'>>

/** The path for a model. */
export function pathFor(path: OperationPath, upstream: string): string {
  return typeof path === 'string' ? path : path(upstream)
}

/** Whether a JSON object is an error rather than a chunk or completion, whatever its status. */
export function isErrorEnvelope(body: Record<string, unknown>): boolean {
  if (body['error'] !== undefined && body['error'] !== null) return true
  if (Array.isArray(body['choices']) && body['choices'].length > 0) return false
  if (body['object'] === 'error') return true
  const { code, status, message, detail } = body
  if (typeof code === 'string' && typeof message === 'string') return true
  // Some servers also report success by number, together with content.
  const isBare = (body['data'] ?? body['text'] ?? undefined) === undefined
  if (isBare && isFailure(code) && typeof message === 'string') return true
  if (isBare && isFailure(status) && typeof detail === 'string') return true
  return (body['success'] === false && Array.isArray(body['errors'])) || failedStatus(body) !== undefined
}

function isFailure(code: unknown): boolean {
  return typeof code === 'number' && code >= 400
}

/** Returns the error in `{ base_resp: { status_code, status_msg } }`, the form of failures in 200 answers of a server. */
export function failedStatus(body: Record<string, unknown>): Record<string, unknown> | undefined {
  const status = body['base_resp']
  if (!isJsonObject(status) || typeof status['status_code'] !== 'number' || status['status_code'] === 0)
    return undefined
  return { code: status['status_code'], message: status['status_msg'] }
}

/** Finish reasons with which servers report a failure during the answer. */
const FAILING_REASONS: ReadonlySet<unknown> = new Set(['error', 'network_error', 'insufficient_system_resource'])

/** Returns the choice that ended with a failure of the vendor, if any. Its content is not an answer. */
export function failedChoice(choices: unknown): Record<string, unknown> | undefined {
  if (!Array.isArray(choices)) return undefined
  return choices.find((choice) => isJsonObject(choice) && FAILING_REASONS.has(choice['finish_reason'])) as
    | Record<string, unknown>
    | undefined
}
