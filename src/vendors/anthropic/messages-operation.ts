import { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import { type EventLines, PassThroughStream } from '../../endpoints/event-reader.ts'
import { isServerTool, messagesCacheTime } from '../../endpoints/messages/messages-estimate.ts'
import {
  CARRIED_MARK,
  type ContentBlock,
  isCarriedSignature,
  type MessageParam,
  type MessagesRequest,
  requestTools,
  toolPaths,
} from '../../endpoints/messages/messages-request.ts'
import { passTokenCount } from '../../endpoints/operation.ts'
import { asBuffer, joinChunks } from '../../wire/chunks.ts'
import type { KnownEvents } from '../../wire/event-template.ts'
import type { ByteSpan } from '../../wire/json-cursor.ts'
import { ByteEdits, findMembers, lastItem, replaceString } from '../../wire/json-edits.ts'
import { sseEvent } from '../../wire/sse.ts'
import { hasHiddenThinking, modelAbilities } from '../shared/messages-abilities.ts'
import { latestUsage, normalisedUsage, readMessagesUsage, usageFrom } from '../shared/messages-answer.ts'
import { freshId, type UsedIds } from '../shared/messages-conversation.ts'
import type {
  AnswerBody,
  AnswerIds,
  ExtraFeature,
  MessagesOperation,
  VendorCall,
  VendorFailure,
  WireRequest,
} from '../vendor.ts'
import { cachesPrompt, OWN_MARK } from './cache-control.ts'
import { keyHeadersFor, type MessagesAddress } from './chat-to-wire.ts'
import { messagesStreamError } from './error-from.ts'

/** Blocks that can carry a mark. The API rejects marks on thinking, and on text without a visible character. */
const MARKABLE: ReadonlySet<string> = new Set(['text', 'image', 'document', 'tool_use', 'tool_result', 'search_result'])

const CONTROL = JSON.stringify(OWN_MARK)
const MEMBER = Buffer.from(`,"cache_control":${CONTROL}`)
const TEXT_BEGINNING = Buffer.from('[{"type":"text","text":')
const TEXT_END = Buffer.from(`,"cache_control":${CONTROL}}]`)

/**
 * Marks a Messages request for caching if the call requests it and the caller has set no mark: at the last block of the system
 * prompt and at the last block of the last message.
 */
export class AutomaticMarks {
  readonly #system: boolean
  readonly #message: boolean

  private constructor(system: boolean, message: boolean) {
    this.#system = system
    this.#message = message
  }

  /** Returns `undefined` if nothing is to be marked. */
  static for(call: VendorCall<MessagesRequest>): AutomaticMarks | undefined {
    if (!cachesPrompt(call) || messagesCacheTime(call.request) !== 'none') return undefined
    const { system, messages } = call.request
    const marks = [takesMark(system), takesMark(messages.at(-1)?.content)] as const
    return marks.includes(true) ? new AutomaticMarks(...marks) : undefined
  }

  /** Adds the marks to the caller's bytes without other changes. Returns `undefined` if the places are uncertain. */
  inBytes(bytes: Buffer): Buffer | undefined {
    const { system, messages } = findMembers(bytes, ['system', 'messages'])
    const edits: (readonly [at: number, text: Buffer])[] = []
    if (this.#system) {
      if (system === undefined) return undefined
      edits.push(...marksAt(bytes, system))
    }
    if (this.#message) {
      const last = messages && lastItem(bytes, messages)
      const content = last && findMembers(bytes.subarray(last.start, last.end), ['content']).content
      if (last === undefined || content === undefined) return undefined
      edits.push(...marksAt(bytes, { start: last.start + content.start, end: last.start + content.end }))
    }
    const spliced = new ByteEdits()
    for (const [at, text] of edits.sort(([left], [right]) => left - right)) spliced.replace(at, at, text)
    return spliced.apply(bytes)
  }

  /** Adds the marks to a parsed request. */
  inRequest(request: MessagesRequest): MessagesRequest {
    const { system, messages } = request
    const last = messages.at(-1)
    return {
      ...request,
      ...(this.#system ? { system: markedContent(system) } : {}),
      ...(this.#message && last !== undefined
        ? { messages: [...messages.slice(0, -1), { ...last, content: markedContent(last.content) }] }
        : {}),
    }
  }
}

type Content = MessagesRequest['system'] | MessageParam['content'] | undefined

function takesMark(content: Content): boolean {
  if (typeof content === 'string') return content.trim() !== ''
  const block = content?.at(-1)
  if (block === undefined || !MARKABLE.has(block.type)) return false
  return block.type !== 'text' || (typeof block['text'] === 'string' && block['text'].trim() !== '')
}

function markedContent(content: Content): ContentBlock[] {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : [...(content ?? [])]
  const last = blocks.pop()
  return last === undefined ? [] : [...blocks, { ...last, cache_control: OWN_MARK }]
}

const QUOTE = 0x22
const CLOSE_BRACE = 0x7d

/** Returns the insertions that mark the end of a content: a string becomes a block, and a block gets a member. */
function marksAt(bytes: Buffer, { start, end }: ByteSpan): (readonly [at: number, text: Buffer])[] {
  if (bytes[start] === QUOTE)
    return [
      [start, TEXT_BEGINNING],
      [end, TEXT_END],
    ]
  const brace = bytes.lastIndexOf(CLOSE_BRACE, end - 1)
  return [[brace, MEMBER]]
}

/**
 * Bytes of generated text in a content block or in a delta of one (Anthropic, "Streaming messages"): text, thinking, the name and
 * input of a tool call, and the summary of a compaction. Signatures and results of tools are not counted as output.
 */
export function blockTextBytes(block: unknown): number {
  if (!isJsonObject(block)) return 0
  let byteLength = 0
  for (const name of ['text', 'thinking', 'partial_json', 'name']) {
    const value = block[name]
    if (typeof value === 'string') byteLength += Buffer.byteLength(value)
  }
  const { type, content, input } = block
  if (typeof content === 'string' && (type === 'compaction' || type === 'compaction_delta'))
    byteLength += Buffer.byteLength(content)
  return isJsonObject(input) && Object.keys(input).length > 0
    ? byteLength + Buffer.byteLength(JSON.stringify(input))
    : byteLength
}

/** Reads a `type: "error"` object of a stream. */
type StreamErrorReader = (event: unknown) => VendorFailure

/** Member with the generated text of a delta, by the type of the delta. Signatures and citations do not count. */
const DELTA_TEXTS: ReadonlyMap<unknown, string> = new Map([
  ['text_delta', 'text'],
  ['input_json_delta', 'partial_json'],
  ['thinking_delta', 'thinking'],
])

/**
 * Passes a streamed message on (Anthropic, "Streaming messages"): the vendor's bytes go through event by event, including pings,
 * comments and unknown events. Only `model` in `message_start` is replaced. Errors are removed, and so is an end mark of another
 * dialect, which proxies add and clients cannot read.
 */
export class MessagesPassThrough extends PassThroughStream<true> {
  readonly #publicModel: string
  readonly #readError: StreamErrorReader
  readonly #isInThread: boolean
  answerIds: AnswerIds | undefined
  #counts = readMessagesUsage(undefined)
  #isBetweenBlocks = false

  constructor(
    call: Pick<VendorCall<MessagesRequest>, 'publicModel' | 'conversation'>,
    readError: StreamErrorReader,
    maxEventBytes?: number,
  ) {
    super(maxEventBytes)
    this.#publicModel = call.publicModel
    this.#isInThread = call.conversation !== undefined
    this.#readError = readError
  }

  /** Returned chunks contain only whole events. */
  override get atBoundary(): boolean {
    return true
  }

  override get hasTextEnded(): boolean {
    return this.#isBetweenBlocks
  }

  get usage(): Usage | undefined {
    return normalisedUsage(this.#counts)
  }

  protected override readKnown(known: KnownEvents<true>): boolean {
    this.countContent(known.textBytes)
    return true
  }

  protected override failUnreadable(event: EventLines, isRest: boolean): void {
    if (event.name === 'error' && !isRest) this.fail(this.#readError({}))
    else super.failUnreadable(event, isRest)
  }

  protected override readValue(value: Record<string, unknown>, { name }: EventLines): void {
    switch (value['type'] ?? name) {
      case 'message_start':
        this.#readStart(value)
        return
      case 'content_block_start':
        this.#isBetweenBlocks = false
        if (startsWithContent(value['content_block'])) this.countContent(blockTextBytes(value['content_block']))
        return
      case 'content_block_delta':
        this.#readDelta(value)
        return
      case 'content_block_stop':
        this.#isBetweenBlocks = true
        return
      case 'message_delta':
        this.#counts = latestUsage(this.#counts, readMessagesUsage(value['usage']))
        this.hasContent = true
        return
      case 'message_stop':
        this.finish()
        return
      case 'error':
        this.fail(this.#readError(value))
    }
  }

  #readDelta(value: Record<string, unknown>): void {
    const { delta } = value
    this.countContent(blockTextBytes(delta))
    const member = isJsonObject(delta) ? DELTA_TEXTS.get(delta['type']) : undefined
    if (member !== undefined) this.learn(value, [['delta', member]], true)
  }

  #readStart(value: Record<string, unknown>): void {
    const { message } = value
    if (!isJsonObject(message)) return
    if (this.#isInThread) this.answerIds = threadIds(message)
    this.#counts = latestUsage(this.#counts, readMessagesUsage(message['usage']))
    const model = this.#publicModel
    if (message['model'] === model) return
    if (this.editString(['message', 'model'], message['model'], Buffer.from(JSON.stringify(model)))) return
    this.replaceEvent(
      Buffer.from(sseEvent('message_start', JSON.stringify({ ...value, message: { ...message, model } }))),
    )
  }
}

/** Returns the ids with which an answer can be continued. The caller gets the vendor's own id. */
function threadIds({ id }: Record<string, unknown>): AnswerIds | undefined {
  return typeof id === 'string' ? { id, upstreamId: id } : undefined
}

/** Text and thinking begin empty. Tool calls and blocks that arrive whole are content immediately. */
function startsWithContent(block: unknown): boolean {
  return isJsonObject(block) && block['type'] !== 'text' && block['type'] !== 'thinking'
}

/**
 * Tools that are billed only by tokens, or by a price field or model of their own, by type without date (Anthropic, "Tool
 * reference" and "Pricing"). Includes tools that callers run themselves.
 */
const KNOWN_TOOLS: ReadonlySet<string> = new Set([
  ...['custom', 'bash', 'computer', 'computer_toolset', 'browser_toolset', 'memory', 'text_editor', 'mcp_toolset'],
  ...['tool_search_tool_regex', 'tool_search_tool_bm25', 'web_fetch'],
  ...['web_search', 'code_execution', 'advisor'],
])

/**
 * Beta features that are billed only by tokens, or by a price field of their own, without their dates.
 *
 * Nearly all are in the type `AnthropicBeta` of `@anthropic-ai/sdk` 1.11. That they cost only tokens follows from their pages
 * ("Beta headers", "Pricing"). Betas of coding clients are not in any list of the vendor: they were observed in requests of Claude
 * Code (`claude-code`, `oauth`, `afk-mode`, `dangerous-tool-use`, `per-turn-control`, `redact-thinking`, `thinking-resumption`,
 * `prompt-caching-scope`, `summarize-connector-text`, `mid-conversation-system`, `advanced-tool-use`, `tool-search-tool`,
 * `effort`). That these cost nothing more is an estimate. Betas that another model or account pays for (`server-side-fallback`,
 * `fallback-credit`, `user-profiles-billing`) are left out.
 */
const KNOWN_BETAS: ReadonlySet<string> = new Set([
  ...['advanced-tool-use', 'advisor-tool', 'afk-mode', 'cache-diagnosis', 'claude-code', 'code-execution', 'compact'],
  ...['computer-use', 'context-1m', 'context-management', 'dangerous-tool-use', 'dev-full-thinking', 'effort'],
  ...['extended-cache-ttl', 'fast-mode', 'files-api', 'fine-grained-tool-streaming', 'inline-tools'],
  ...['interleaved-thinking', 'max-tokens-3-5-sonnet', 'mcp-client', 'message-threads', 'mid-conversation-system'],
  ...['mid-conversation-tool-changes', 'model-context-window-exceeded', 'oauth', 'output-128k', 'pdfs'],
  ...['per-turn-control', 'prompt-caching', 'prompt-caching-scope', 'redact-thinking', 'search-results', 'skills'],
  ...['structured-outputs', 'summarize-connector-text', 'task-budgets', 'thinking-display-updates'],
  ...['thinking-token-count', 'token-counting', 'token-efficient-tools', 'tool-examples', 'tool-search-tool'],
  ...['mid-conversation-output-config', 'mid-conversation-system-clear-at', 'output-300k', 'thinking-binding-controls'],
  ...['thinking-resumption', 'user-profiles', 'web-fetch', 'web-search'],
])

const DATE = /[-_]\d{4}-?\d{2}-?\d{2}$/

/** Returns the features of a Messages request that may cost more than tokens and known price fields. */
export function extraFeatures(
  request: MessagesRequest,
  header: (name: string) => string | undefined,
): readonly ExtraFeature[] {
  const extras: ExtraFeature[] = []
  const pathOf = toolPaths(request)
  for (const [place, { type }] of requestTools(request).entries()) {
    if (type === undefined || type === null) continue
    const name = String(type)
    if (!KNOWN_TOOLS.has(name.replace(DATE, '')))
      extras.push({ field: 'server_tool', value: name, param: `${pathOf(place)}.type` })
  }
  for (const value of (header('anthropic-beta') ?? '').split(',')) addBeta(extras, value, 'anthropic-beta')
  const { betas, fallbacks } = request
  if (Array.isArray(betas)) for (const [index, value] of betas.entries()) addBeta(extras, value, `betas[${index}]`)
  // Another model then answers at its own price: one of this list, or the vendor's choice for `default`.
  if (Array.isArray(fallbacks) ? fallbacks.length > 0 : fallbacks !== undefined && fallbacks !== null)
    extras.push({ field: 'fallbacks', value: 'true', param: 'fallbacks' })
  return extras
}

function addBeta(extras: ExtraFeature[], beta: unknown, param: string): void {
  const value = String(beta).trim()
  if (value !== '' && !KNOWN_BETAS.has(value.replace(DATE, ''))) extras.push({ field: 'beta', value, param })
}

/** Calls of one id that wait for their results, and how many results they have. */
interface SameId {
  readonly ids: string[]
  answered: number
}

/**
 * Replaces ids of tool calls that the API rejects: those of other vendors with other characters than letters, digits, `_` and `-`, and
 * repeated ones. A call and its result get the same id, and the same conversation the same ids. Returns the request itself if all ids
 * are accepted.
 */
function withPlainCallIds(request: MessagesRequest): MessagesRequest {
  const used: UsedIds = new Map()
  const open = new Map<string, SameId>()
  const plain = (block: ContentBlock): ContentBlock => {
    const { type, id, tool_use_id: answered } = block
    if (type === 'tool_use' && typeof id === 'string') {
      const fresh = freshId(id, used)
      const same = open.get(id)
      if (same === undefined || same.answered >= same.ids.length) open.set(id, { ids: [fresh], answered: 0 })
      else same.ids.push(fresh)
      return fresh === id ? block : { ...block, id: fresh }
    }
    const same = type === 'tool_result' && typeof answered === 'string' ? open.get(answered) : undefined
    if (same === undefined) return block
    const fresh = same.ids[Math.min(same.answered, same.ids.length - 1)]!
    same.answered += 1
    return fresh === answered ? block : { ...block, tool_use_id: fresh }
  }
  const messages = request.messages.map((message): MessageParam => {
    const { content } = message
    if (!Array.isArray(content)) return message
    const blocks = content.map(plain)
    return blocks.some((block, index) => block !== content[index]) ? { ...message, content: blocks } : message
  })
  return messages.some((message, index) => message !== request.messages[index]) ? { ...request, messages } : request
}

/** Valid values of caller headers. Other headers, such as the choice of a workspace, are set by the operator. */
const PRINTABLE = /^[\t\x20-\x7e]*$/

/** Messages passed through in the vendor's own dialect (Anthropic, Messages reference and "Token counting"). */
export function messagesOperation(address: MessagesAddress, apiKeys: readonly string[]): MessagesOperation {
  const countAddress = { ...address, path: `${address.path}/count_tokens` }
  return {
    toWire: (call) => messagesToWire(call, address),
    fromWire: passMessage,
    answerHeaders: ['anthropic-version', 'anthropic-beta'],
    extraFeatures,
    hasHiddenReasoning: ({ model, request }) =>
      hasUnreportedInput(request) ||
      hasHiddenThinking(
        modelAbilities(model.upstream),
        request.thinking?.type === 'disabled' ? 'none' : request.thinking?.type,
      ),
    stream: (call) => new MessagesPassThrough(call, (event) => messagesStreamError(event, apiKeys)),
    tokenCount: {
      toWire: (call) => messagesToWire(call, countAddress),
      fromWire: passTokenCount,
    },
  }
}

/** Tools of the vendor whose results the model reads within the call. */
const READING_TOOLS = ['web_search_', 'web_fetch_', 'code_execution_', 'advisor_'] as const

/** Whether tools of the vendor add texts to the prompt that only its report counts. */
function hasUnreportedInput(request: MessagesRequest): boolean {
  const { mcp_servers: servers } = request
  if (Array.isArray(servers) && servers.length > 0) return true
  return requestTools(request).some((tool) => READING_TOOLS.some((prefix) => isServerTool(tool, prefix)))
}

/**
 * Sends a Messages request: the caller's own bytes with only `model` replaced, and the headers for version and features (Anthropic,
 * "API versioning" and "Beta headers"). Thinking blocks with another vendor's state are removed, because this vendor cannot verify
 * their signatures.
 * @throws GatewayError `invalid_request` for a header that cannot be passed on.
 */
function messagesToWire(call: VendorCall<MessagesRequest>, address: MessagesAddress): WireRequest {
  const version = callerHeader(call, 'anthropic-version') ?? address.version
  const beta = callerHeader(call, 'anthropic-beta')
  const marks = AutomaticMarks.for(call)
  const { own, dropped } = acceptedMessages(call)
  return {
    path: address.path,
    headers: [
      ...keyHeadersFor(address, call.apiKey),
      'anthropic-version',
      version,
      ...(beta === undefined ? [] : ['anthropic-beta', beta]),
      'content-type',
      'application/json',
      'accept',
      call.stream ? 'text/event-stream' : 'application/json',
      'accept-encoding',
      'identity',
    ],
    body:
      own === undefined
        ? editedBody(call, marks)
        : exactJsonText({ ...(marks?.inRequest(own) ?? own), model: call.model.upstream }),
    dropped,
  }
}

/** Returns the request with the messages that the API accepts, and the removed parts. */
export function acceptedMessages(call: VendorCall<MessagesRequest>): {
  /** `undefined` if the caller's own request can be sent. */
  readonly own: MessagesRequest | undefined
  readonly dropped: readonly string[]
} {
  const uncarried = withoutCarriedBlocks(call)
  const own = withPlainCallIds(uncarried ?? call.request)
  return {
    own: own === call.request ? undefined : own,
    dropped: uncarried === undefined ? [] : ['messages.thinking'],
  }
}

function editedBody(
  { bytes, request, model }: VendorCall<MessagesRequest>,
  marks: AutomaticMarks | undefined,
): Uint8Array | string {
  const named = bytes && replaceString(asBuffer(bytes), 'model', request.model, model.upstream)
  const edited = named === undefined || marks === undefined ? named : marks.inBytes(named)
  return edited ?? exactJsonText({ ...(marks?.inRequest(request) ?? request), model: model.upstream })
}

/** Returns a trimmed header of the caller, if any. @throws GatewayError `invalid_request` for characters that are not printable. */
export function callerHeader(call: VendorCall<MessagesRequest>, name: string): string | undefined {
  const value = call.header?.(name)?.trim()
  if (value === undefined || value === '') return undefined
  if (!PRINTABLE.test(value)) {
    throw new GatewayError('invalid_request', { message: `${name}: holds characters that no header may have` })
  }
  return value
}

/** Removes thinking with another vendor's state. Returns `undefined` if there is none. */
function withoutCarriedBlocks({ bytes, request }: VendorCall<MessagesRequest>): MessagesRequest | undefined {
  if (bytes !== undefined && !asBuffer(bytes).includes(CARRIED_MARK)) return undefined
  if (!request.messages.some((message) => blocksOf(message).some(isCarried))) return undefined
  const messages = request.messages.flatMap((message): MessageParam[] => {
    const blocks = blocksOf(message)
    if (!blocks.some(isCarried)) return [message]
    const content = blocks.filter((block) => !isCarried(block)) as ContentBlock[]
    return content.length === 0 ? [] : [{ ...message, content }]
  })
  return { ...request, messages }
}

function blocksOf({ content }: MessageParam): readonly unknown[] {
  return Array.isArray(content) ? content : []
}

function isCarried(block: unknown): boolean {
  return isJsonObject(block) && block['type'] === 'thinking' && isCarriedSignature(block['signature'])
}

/** Passes a whole message on with only the value of `model` replaced. Returns `undefined` if it is not a message. */
function passMessage(chunks: readonly Uint8Array[], call: VendorCall<MessagesRequest>): AnswerBody | undefined {
  const bytes = joinChunks(chunks)
  const message = parseAnswerJson(bytes.toString('utf8'))
  if (!isJsonObject(message) || message['type'] !== 'message' || !Array.isArray(message['content'])) return undefined
  const usage = usageFrom(message['usage'])
  const { publicModel, conversation } = call
  const renamed = replaceString(bytes, 'model', message['model'], publicModel)
  const outputBytes = message['content'].reduce<number>((sum, block) => sum + blockTextBytes(block), 0)
  return {
    chunks: [renamed ?? Buffer.from(JSON.stringify({ ...message, model: publicModel }))],
    usage,
    outputBytes,
    answerIds: conversation && threadIds(message),
  }
}
