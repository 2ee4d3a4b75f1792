import { DetailedError } from '../../core/detailed-error.ts'
import { GatewayError } from '../../core/errors.ts'
import { isJsonObject, isSet, objectOf } from '../../core/json.ts'
import { sseEvent } from '../../wire/sse.ts'
import { type CachedAnswers, hasHostedTool, hasOtherTier, namesFile } from '../answer-json.ts'
import type { InlineBatches, InlineBatchState } from '../batches.ts'
import type { ChatMessage } from '../chat/chat-request.ts'
import { type CallerUrl, type Continuation, defineEndpoint, type Endpoint } from '../endpoint.ts'
import type { MediaInput, MediaKind } from '../media-input.ts'
import { withoutFields } from '../price-members.ts'
import { checkRequest, fieldPath, jsonSchemaOf } from '../schema.ts'
import {
  type AnswerObject,
  type EndpointTexts,
  type KindOf,
  kindsByName,
  NO_TEXT,
  type RequestPlaces,
  requestTexts,
  type SaidFacts,
  type TextKind,
  type TextPart,
  type TextRole,
  type TextStep,
  type TextStreamReader,
  textsIn,
} from '../texts.ts'
import { eachPart, type ImagePlaces, isWebUrl, remoteImages } from '../web-urls.ts'
import { chatMessages } from './chat-request-from-messages.ts'
import { messageFiles } from './message-files.ts'
import { anthropicErrors } from './messages-errors.ts'
import {
  advisorsOf,
  isServerTool,
  MESSAGES_SURCHARGES,
  messagesEstimate,
  messagesFieldParam,
  messagesSamplings,
  messagesSurcharges,
} from './messages-estimate.ts'
import { createMessagesOperation, createTokenCountOperation, type MessagesOffer } from './messages-operation.ts'
import { countTokensSchema, type MessagesRequest, messagesSchema, requestTools } from './messages-request.ts'
import { MessagesStreamWriter } from './messages-stream-writer.ts'

const CUSTOM_ID = /^[A-Za-z0-9_-]{1,64}$/

/** Anthropic's batches of messages (Anthropic API, "Message Batches"). */
const messageBatches: InlineBatches = {
  path: '/v1/messages/batches',
  idPrefix: 'msgbatch',
  listMember: 'requests',
  bodyMember: 'params',
  cursors: { after: 'after_id', before: 'before_id' },
  maxPage: 1_000,
  resultsType: 'application/x-jsonl',
  readRequest(value) {
    if (!isJsonObject(value)) return { param: null, reason: 'expected an object' }
    const { custom_id: customId, params, ...others } = value
    const [unknown] = Object.keys(others)
    if (unknown !== undefined) return { param: unknown.slice(0, 64), reason: 'is not known here' }
    if (typeof customId !== 'string' || !CUSTOM_ID.test(customId))
      return { param: 'custom_id', reason: 'expected 1 to 64 letters, digits, hyphens and underscores' }
    if (!isJsonObject(params)) return { param: 'params', reason: 'expected an object' }
    return { customId, body: params }
  },
  record: messageBatch,
  list: ({ batches, hasMore }) => ({
    data: batches.map(messageBatch),
    has_more: hasMore,
    first_id: batches[0]?.id ?? null,
    last_id: batches.at(-1)?.id ?? null,
  }),
  deleted: (id) => ({ id, type: 'message_batch_deleted' }),
  resultLine(customId, result) {
    const head = `{"custom_id":${JSON.stringify(customId)},"result":`
    switch (result.kind) {
      case 'answered':
        return `${head}{"type":"succeeded","message":${result.body}}}`
      case 'failed':
        return `${head}{"type":"errored","error":${result.body}}}`
      case 'cancelled':
        return `${head}{"type":"canceled"}}`
      case 'expired':
        return `${head}{"type":"expired"}}`
    }
  },
  errorText: (error, requestId) => anthropicErrors.body(error, requestId),
}

/** Returns the object of a batch, with `cost` in dollars if it was charged. */
function messageBatch(batch: InlineBatchState): object {
  const { answered, failed, cancelled, expired } = batch.ended
  const hasEnded = batch.endedAtMs !== null
  return {
    id: batch.id,
    type: 'message_batch',
    processing_status: hasEnded ? 'ended' : batch.cancellingAtMs === null ? 'in_progress' : 'canceling',
    request_counts: {
      processing: hasEnded ? 0 : batch.total,
      succeeded: answered,
      errored: failed,
      canceled: cancelled,
      expired,
    },
    created_at: timeText(batch.createdAtMs),
    ended_at: timeText(batch.endedAtMs),
    expires_at: timeText(batch.expiresAtMs),
    cancel_initiated_at: timeText(batch.cancellingAtMs),
    archived_at: timeText(batch.archivedAtMs),
    results_url: batch.resultsUrl,
    ...(batch.cost === undefined ? {} : { cost: batch.cost }),
  }
}

function timeText(timeMs: number | null): string | null {
  return timeMs === null ? null : new Date(timeMs).toISOString()
}

/** Time for which a thread can be continued, in milliseconds: 30 days. */
const THREAD_RETENTION_MS = 30 * 24 * 60 * 60 * 1_000

const PARAM = 'thread.previous_message_id'

/**
 * Threads stored by the vendor (Anthropic SDK, "Message threads"). One key of the operator has the threads of many accounts, so an
 * account can continue only its own answers, with the key that generated them.
 */
const threads: Continuation<MessagesRequest> = {
  of({ thread }) {
    if (thread === undefined || thread === null) return undefined
    const { previous_message_id: id } = thread
    return { previousId: typeof id === 'string' ? id : undefined, isStored: true }
  },
  param: PARAM,
  // Clients then send the whole conversation in a new thread.
  notFound: () =>
    new DetailedError(
      'interaction_not_found',
      { message: `${PARAM}: there is no such message, or its thread has expired. Send all messages.`, param: PARAM },
      { error_code: 'thread_not_found' },
    ),
  idPrefix: 'msg',
  retentionMs: { paid: THREAD_RETENTION_MS, free: THREAD_RETENTION_MS },
  store: ({ interactions }) => interactions,
}

/** Blocks occur in turns, in tool results, and in documents made of blocks. */
const BLOCKS = ['content', 'source.content']

const IMAGES: ImagePlaces = {
  ...{ list: 'messages', nested: BLOCKS, type: 'image' },
  ...{ url: 'source.url', replaced: 'source', inline: base64Source },
}

/** Returns the addresses that a vendor of the dialect fetches: images, documents and MCP servers. */
function messagesUrls(request: MessagesRequest): readonly CallerUrl[] {
  const urls: CallerUrl[] = []
  const addUrl = (url: unknown, param: string): void => {
    if (isWebUrl(url)) urls.push({ url, param })
  }
  eachPart(request.messages, 'messages', BLOCKS, ({ source }, path) =>
    addUrl(objectOf(source)['url'], `${path}.source.url`),
  )
  eachPart(request['mcp_servers'], 'mcp_servers', [], ({ url }, path) => addUrl(url, `${path}.url`))
  return urls
}

/** Converts `data:image/png;base64,…` to a source of the dialect. */
function base64Source(dataUrl: string): object {
  const comma = dataUrl.indexOf(',')
  const mediaType = dataUrl.slice('data:'.length, dataUrl.indexOf(';'))
  return { type: 'base64', media_type: mediaType, data: dataUrl.slice(comma + 1) }
}

/** Returns the inputs of a message other than text: images, documents, fetched pages, answers of MCP servers, and stored turns. */
function messagesMedia(request: MessagesRequest): readonly MediaInput[] {
  const { messages, system, thread, mcp_servers: servers } = request
  const media: MediaInput[] = []
  addBlocks(media, system)
  for (const { content } of messages) addBlocks(media, content)
  for (const tool of requestTools(request)) if (isServerTool(tool, 'web_fetch_')) media.push(fetchedPages(tool))
  // The model reads the results of their tools, and callers may name their own servers.
  if (Array.isArray(servers) && servers.length > 0) media.push({ kind: 'document' })
  if (thread !== undefined && thread !== null) media.push({ kind: 'conversation' })
  return media
}

function addBlocks(media: MediaInput[], blocks: unknown): void {
  if (!Array.isArray(blocks)) return
  for (const block of blocks) {
    if (!isJsonObject(block)) continue
    const { type, source, content } = block
    if (type === 'image' || type === 'document') addSource(media, type, source)
    // Tool results contain blocks, including results of the vendor's own tools.
    else if (Array.isArray(content)) addBlocks(media, content)
    else if (isJsonObject(content)) addBlocks(media, [content])
  }
}

function addSource(media: MediaInput[], kind: MediaKind, source: unknown): void {
  if (!isJsonObject(source)) return
  const { type, data, media_type: mediaType } = source
  if (type === 'base64' && typeof data === 'string')
    media.push({ kind, data, ...(typeof mediaType === 'string' ? { mediaType: mediaType.toLowerCase() } : {}) })
  else if (type === 'content') addBlocks(media, source['content'])
  else if (type !== 'text') media.push({ kind })
}

/** Pages that the vendor fetches into the prompt (Anthropic, "Web fetch tool"). */
function fetchedPages({ max_uses: uses, max_content_tokens: tokens }: Readonly<Record<string, unknown>>): MediaInput {
  const isBounded = isCount(uses) && isCount(tokens)
  return isBounded ? { kind: 'document', maxTokens: uses * tokens } : { kind: 'document' }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}

/** Tools that callers run; those of the vendor have a dated type. */
const TOOLS_OF_CALLERS: ReadonlySet<unknown> = new Set([undefined, null, 'custom'])

const NO_HEADERS: readonly string[] = []

/** How Messages are answered from the cache. */
const cachedMessages: CachedAnswers<MessagesRequest, MessagesOffer> = {
  leftOut: new Set(['stream', 'metadata']),
  form: ({ stream }) => (stream === true ? 'stream' : ''),
  headers: ({ messages }) => messages?.answerHeaders ?? NO_HEADERS,
  isDeterministic: ({ temperature }) => temperature === 0,
  isExcluded: (request) =>
    hasOtherTier(request) ||
    isSet(request.thread) ||
    isSet(request['container']) ||
    isSet(request['mcp_servers']) ||
    hasHostedTool(requestTools(request), TOOLS_OF_CALLERS) ||
    namesFile([request.messages, request.system]),
  refusals: ['"refusal"'],
  idPaths: [['id'], ['message', 'id']],
}

const kindByName = kindsByName({
  text: ['content', 'text', 'title', 'context', 'description', 'cited_text', 'stdout', 'stderr'],
  reasoning: ['thinking'],
  tool_arguments: ['input', 'partial_json'],
})

/** Only `data` of a plain-text document is text. Other `data` is a file. */
const kindOf: KindOf = (name, owner) =>
  name === 'data' ? (owner['type'] === 'text' ? 'text' : undefined) : kindByName(name, owner)

const PLACES: RequestPlaces = {
  kinds: { system: 'text' },
  kindOf,
  last: ['tools', 'system', 'messages'],
  roleOf(member, entry) {
    if (member === 'tools' || member === 'system') return 'system'
    return member === 'messages' && isJsonObject(entry) ? (entry['role'] as TextRole) : undefined
  },
}

/** Where texts of the Messages dialect are. */
export const messagesTexts: EndpointTexts<MessagesRequest> = {
  request: (request) => requestTexts(request, PLACES),
  jsonSchema({ output_config: output }) {
    const format = output?.['format']
    return isJsonObject(format) && format['type'] === 'json_schema' ? format['schema'] : undefined
  },
  answer: {
    whole: ({ content }) =>
      Array.isArray(content) ? content.flatMap((block, at) => blockTexts(block, ['content', at], at)) : [],
    refusal: (answer, message) => ({
      ...answer,
      content: [{ type: 'text', text: message }],
      stop_reason: 'refusal',
      stop_sequence: null,
    }),
    said: saidInMessage,
    stream: () => new MessagesTextReader(),
  },
}

function saidInMessage(text: string, { model, nowMs, seed, isStream }: SaidFacts): AnswerObject | string {
  const writer = new MessagesStreamWriter({ model, nowMs, showsThinking: false, isWhole: !isStream })
  writer.start(seed)
  writer.text(text)
  return writer.done({})?.response ?? writer.take({})
}

function blockTexts(block: unknown, path: readonly (string | number)[], index: number): TextPart[] {
  return textsIn(block, path, { kindOf, index })
}

/** Member that continues a block, its place and its kind, by the type of the delta. */
const DELTAS: Readonly<Record<string, readonly [member: string, place: string, kind: TextKind]>> = {
  text_delta: ['text', 'text', 'text'],
  thinking_delta: ['thinking', 'thinking', 'reasoning'],
  input_json_delta: ['partial_json', 'input', 'tool_arguments'],
}

const PLAIN = { padding: [] } as const

class MessagesTextReader implements TextStreamReader {
  readonly plain = PLAIN
  #start: AnswerObject | undefined
  #hasBegun = false
  #open: number | undefined
  #next = 0
  #outputTokens = 0
  #citations = 0

  read(event: AnswerObject): TextStep {
    const index = typeof event['index'] === 'number' ? event['index'] : 0
    switch (event['type']) {
      case 'message_start':
        this.#start = event
        return NO_TEXT
      case 'content_block_start':
        return started(event['content_block'], index)
      case 'content_block_delta':
        return this.#delta(event['delta'], index)
      case 'content_block_stop':
        return { ...NO_TEXT, ended: [`content[${index}].`] }
      case 'message_delta': {
        const { usage } = event
        if (isJsonObject(usage) && typeof usage['output_tokens'] === 'number')
          this.#outputTokens = usage['output_tokens']
        return { ...NO_TEXT, ended: [''] }
      }
      case 'message_stop':
        return { ...NO_TEXT, ended: [''] }
      default:
        return NO_TEXT
    }
  }

  #delta(delta: unknown, index: number): TextStep {
    if (!isJsonObject(delta)) return NO_TEXT
    const known = DELTAS[String(delta['type'])]
    if (known !== undefined) {
      const [member, place, kind] = known
      const text = delta[member]
      if (typeof text !== 'string' || text === '') return NO_TEXT
      const part = { id: `content[${index}].${place}`, kind, index, text, path: ['delta', member] }
      return { added: [part], repeated: [], ended: [], isBare: true }
    }
    // A signature ends the reasoning before it. All other members arrive whole, such as a citation.
    const isSignature = delta['type'] === 'signature_delta'
    const number = this.#citations++
    const added = textsIn(delta, ['delta'], { kindOf, index }).map((part) => ({
      ...part,
      id: `content[${index}].deltas[${number}]${fieldPath(['', ...part.path.slice(1)])}`,
    }))
    return {
      added,
      repeated: [],
      ended: isSignature ? [`content[${index}].`] : added.map(({ id }) => id),
      isBare: false,
    }
  }

  more(event: AnswerObject, part: TextPart, text: string): AnswerObject {
    if (event['type'] === 'content_block_delta' && isJsonObject(event['delta']))
      return { ...event, delta: { ...event['delta'], [part.path[1]!]: text } }
    const delta = part.kind === 'reasoning' ? { type: 'thinking_delta', thinking: text } : { type: 'text_delta', text }
    return { type: 'content_block_delta', index: part.index, delta }
  }

  sent({ type, index }: AnswerObject): void {
    if (type === 'message_start') this.#hasBegun = true
    if (type === 'content_block_stop') this.#open = undefined
    if (type !== 'content_block_start' || typeof index !== 'number') return
    this.#open = index
    this.#next = index + 1
  }

  refusal(message: string): string {
    let text = ''
    if (!this.#hasBegun && this.#start !== undefined) text += event('message_start', this.#start)
    else if (!this.#hasBegun) {
      const start = { id: 'msg_refused', type: 'message', role: 'assistant', model: '', content: [], stop_reason: null }
      const usage = { input_tokens: 0, output_tokens: 0 }
      text += event('message_start', { message: { ...start, stop_sequence: null, usage } })
    }
    if (this.#open !== undefined) text += event('content_block_stop', { index: this.#open })
    const index = this.#next
    text += event('content_block_start', { index, content_block: { type: 'text', text: '' } })
    text += event('content_block_delta', { index, delta: { type: 'text_delta', text: message } })
    text += event('content_block_stop', { index })
    const delta = { stop_reason: 'refusal', stop_sequence: null }
    return (
      text + event('message_delta', { delta, usage: { output_tokens: this.#outputTokens } }) + event('message_stop', {})
    )
  }
}

/** Only text and reasoning continue after the start of their block. All other members arrive with it. */
function started(block: unknown, index: number): TextStep {
  const added = blockTexts(block, ['content_block'], index).map((part) => ({
    ...part,
    id: fieldPath(['content', index, ...part.path.slice(1)]),
  }))
  const whole = added.filter(({ path }) => path.length > 2 || (path[1] !== 'text' && path[1] !== 'thinking'))
  return { added, repeated: [], ended: whole.map(({ id }) => id), isBare: false }
}

function event(type: string, members: AnswerObject): string {
  return sseEvent(type, JSON.stringify({ type, ...members }))
}

/** The turns of a Messages request in both dialects, for vendors that look for their own reasoning. */
export class MessagesConversation {
  readonly model: string
  /** The caller's original body. */
  readonly request: MessagesRequest
  #messages: readonly ChatMessage[] | undefined

  constructor(request: MessagesRequest) {
    this.model = request.model
    this.request = request
  }

  /**
   * Turns in the chat dialect, translated on demand. Empty if the translation fails, because translating the whole
   * request reports the reason.
   */
  get messages(): readonly ChatMessage[] {
    this.#messages ??= this.#translated()
    return this.#messages
  }

  #translated(): readonly ChatMessage[] {
    try {
      return chatMessages(this.request, () => undefined)
    } catch (error) {
      if (GatewayError.isInstance(error)) return []
      throw error
    }
  }
}

/** Members that both endpoints of the dialect share. */
const common = {
  id: 'messages',
  kind: 'chat',
  errors: anthropicErrors,
  exactMembers: new Map([
    ['input', 'text'],
    ['input_schema', 'value'],
    ['schema', 'value'],
  ]),
  isSticky: true,
  takesXApiKey: true,
  passesHeaders: true,
  callerUrls: messagesUrls,
  // A vendor of this dialect receives the request unchanged, and fetches images itself if it can.
  remoteMedia(request, { messages, chat }, model) {
    const takesUrls = messages === undefined ? chat?.takesImageUrls?.(model) : messages.takesImageUrls
    return takesUrls === false ? remoteImages(request, IMAGES) : undefined
  },
  conversation: (request) => new MessagesConversation(request),
  continuation: threads,
  texts: messagesTexts,
} as const satisfies Partial<Endpoint<MessagesRequest, MessagesOffer>>

/** `POST /v1/messages` (API specification, "Endpoints"; Anthropic, Messages reference). */
export const messagesEndpoint = defineEndpoint<MessagesRequest, MessagesOffer>({
  ...common,
  path: '/v1/messages',
  isBatchable: true,
  inlineBatches: messageBatches,
  files: messageFiles,
  parse: (body) => checkRequest<MessagesRequest>(messagesSchema(), body),
  requestSchema: () => jsonSchemaOf(messagesSchema(), 'input'),
  isStream: (request) => request.stream === true,
  media: messagesMedia,
  estimate: messagesEstimate,
  samplings: messagesSamplings,
  outputBound: { of: (request) => request.max_tokens, member: 'max_tokens' },
  mostOutputTokens: ({ messages, chat }, model) =>
    messages === undefined ? (model.limits.maxOutputTokens ?? chat?.mostOutputTokens?.(model)) : undefined,
  priceFields: messagesSurcharges,
  surcharges: MESSAGES_SURCHARGES,
  priceFieldParam: messagesFieldParam,
  // A translation into chat uses no extra features.
  extraFeatures: (request, { messages }, sent) => messages?.extraFeatures?.(request, (name) => sent.header(name)) ?? [],
  extraFields: ['server_tool', 'beta', 'fallbacks'],
  innerModels: (request, { messages }) => (messages === undefined ? [] : advisorsOf(request)),
  // A translation into chat drops all price fields.
  priceFieldsAt: (fields, { messages }) => (messages === undefined ? {} : withoutFields(fields, messages.leavesOut)),
  createOperation: createMessagesOperation,
  cached: cachedMessages,
})

/**
 * `POST /v1/messages/count_tokens` (Anthropic, "Token counting"). It is free and does not count towards token limits;
 * request limits apply. Keys for Messages may use it.
 */
export const countTokensEndpoint = defineEndpoint<MessagesRequest, MessagesOffer>({
  ...common,
  path: '/v1/messages/count_tokens',
  isFree: true,
  parse: (body) => checkRequest<MessagesRequest>(countTokensSchema(), body),
  requestSchema: () => jsonSchemaOf(countTokensSchema(), 'input'),
  isStream: () => false,
  estimate: () => ({ inputTokens: 0, outputTokens: 0 }),
  createOperation: createTokenCountOperation,
})
