import { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject, objectsIn } from '../../core/json.ts'
import { type Usage, usedOf } from '../../core/usage.ts'
import type { ArgumentsMember } from '../../endpoints/answer-json.ts'
import type { CacheTime } from '../../endpoints/cache-marks.ts'
import type { FinishReason } from '../../endpoints/chat/chat-completion.ts'
import type { ChatContentPart, ChatMessage, ChatRequest, ExtraContent } from '../../endpoints/chat/chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from '../../endpoints/chat/chat-stream-writer.ts'
import { EventDecoder, type EventLines } from '../../endpoints/event-reader.ts'
import { asBuffer } from '../../wire/chunks.ts'
import { firstHeader, mediaType } from '../../wire/headers.ts'
import { OPEN_BRACE } from '../../wire/json-cursor.ts'
import { ByteEdits, findKnownString, spliceText } from '../../wire/json-edits.ts'
import type { BrokenChat, ChatOperation, VendorCall, WireAnswer, WireRequest } from '../vendor.ts'
import { CompletionCollector } from './completion-collector.ts'
import { invalidResponse } from './invalid-response.ts'
import {
  annotationsIn,
  brokenCompletion,
  chunkOfCompletion,
  chunkUsage,
  endReason,
  openaiFinishReason,
  openaiUsage,
  passChatBody,
  reasoningText,
  usageAsMarked,
} from './openai-chat-answer.ts'
import {
  applyFieldRules,
  failedChoice,
  isErrorEnvelope,
  markedCacheTime,
  mendContentParts,
  type OpenAIChatDialect,
  pathFor,
} from './openai-chat-dialect.ts'
import { OpenAIChatPassThrough } from './openai-chat-pass-through.ts'
import { callState, heldState, joinedState, messageState, restoredState, withServerState } from './server-state.ts'
import { answerMark, StreamedToolCalls } from './streamed-tool-calls.ts'
import { withoutModeration } from './translated-chat-fields.ts'
import { usageAtTier, usedTier } from './vendor-cost.ts'
import { bearerHeaders } from './vendor-options.ts'

const ASK_FOR_USAGE = Buffer.from('"stream_options":{"include_usage":true},')

/** Creates chat for a server with OpenAI's chat completions. Answers pass through to callers of the same dialect. */
export function openaiChat(dialect: OpenAIChatDialect): ChatOperation {
  const hasHiddenReasoning = ({ model, request }: VendorCall<ChatRequest>): boolean =>
    dialect.hasHiddenReasoning?.(model.upstream, request) === true
  return {
    hasHiddenReasoning,
    toWire: (call) => chatToWire(call, dialect),
    fromWire: (answer, call) =>
      isEventStream(answer) ? collectedChat([answer.body], call, dialect).read : wholeChat(answer, call, dialect),
    brokenAnswer: (answer, call) =>
      isEventStream(answer)
        ? collectedChat([answer.body], call, dialect).broken
        : brokenCompletion(answer.body, call, dialect),
    decoder: (call, writer) => new OpenAIChatDecoder(call, writer, dialect),
    ...(dialect.streamsOnly === undefined
      ? {}
      : {
          cutBytes: (chunks, call) =>
            isCollected(call, dialect) ? collectedChat(chunks, call, dialect).broken.outputBytes : undefined,
        }),
    ...(dialect.abilities === undefined ? {} : { abilities: dialect.abilities }),
    ...(dialect.takesImageUrls === false ? { takesImageUrls: () => false } : {}),
    ...(dialect.replaysReasoning === undefined
      ? {}
      : { replaysReasoning: ({ upstream }) => dialect.replaysReasoning?.(upstream) === true }),
    ...(dialect.takesCacheControl === undefined
      ? {}
      : { takesCacheControl: ({ upstream }) => dialect.takesCacheControl?.(upstream) === true }),
    passThrough: {
      applies: (call) => !isCollected(call, dialect),
      hasHiddenReasoning,
      fromWire: (chunks, call) => passChatBody(chunks, call, dialect),
      stream: (call) => new OpenAIChatPassThrough(call, dialect),
    },
  }
}

/**
 * Writes a chat request. The caller's own bytes are sent if possible: unchanged, or with the model id replaced and `include_usage`
 * added. Otherwise, the parsed request is serialized.
 */
function chatToWire(asked: VendorCall<ChatRequest>, dialect: OpenAIChatDialect): WireRequest {
  // Callers of this dialect know the server. A translated conversation was written by a client of another one.
  const isTranslated = asked.bytes === undefined
  const given = isCollected(asked, dialect) ? collectedCall(asked) : asked
  const call = isTranslated && dialect.systemFirst === true ? withSystemFirst(given) : given
  if (call.request['moderation'] === undefined || dialect.moderates === true) return writtenChat(call, dialect)
  const { request, dropped } = withoutModeration(call.request)
  const wire = writtenChat({ ...call, request, bytes: undefined }, dialect)
  return { ...wire, dropped: [...dropped, ...wire.dropped] }
}

function withSystemFirst(call: VendorCall<ChatRequest>): VendorCall<ChatRequest> {
  const messages = systemFirst(call.request.messages) as ChatRequest['messages']
  return messages === call.request.messages ? call : { ...call, request: { ...call.request, messages } }
}

function writtenChat(call: VendorCall<ChatRequest>, dialect: OpenAIChatDialect): WireRequest {
  const held = call.bytes === undefined ? heldState(call.request.messages, call.model.vendor) : undefined
  const request = held === undefined ? call.request : { ...call.request, messages: held }
  const { body: ruled, dropped } = applyFieldRules(request, dialect.rulesFor(call.model.upstream))
  const { headers = bearerHeaders, asksForUsage = true } = dialect
  const edited =
    ruled === undefined && call.bytes !== undefined ? editedBytes(call, asBuffer(call.bytes), asksForUsage) : undefined
  return {
    path: pathFor(dialect.path, call.model.upstream),
    headers: headers(call.apiKey, call.stream ? 'text/event-stream' : 'application/json'),
    body:
      edited ?? exactJsonText(completed(writtenBody(ruled ?? { ...request }, held !== undefined), call, asksForUsage)),
    dropped,
  }
}

function writtenBody(body: Record<string, unknown>, holdsState: boolean): Record<string, unknown> {
  if (holdsState) body['messages'] = restoredState(body['messages'] as ChatRequest['messages'])
  return body
}

/** Members of a request that decide how its bytes change. */
interface StreamableRequest {
  readonly model: string
  readonly stream?: boolean | null
  readonly stream_options?: { readonly include_usage?: boolean | null } | null
}

/** Returns the caller's bytes with what must change, or `undefined` if it is not certain that they can be edited. */
export function editedBytes(
  call: VendorCall<StreamableRequest>,
  bytes: Buffer,
  asksForUsage: boolean,
): Buffer | undefined {
  const { request } = call
  if (call.stream !== (request.stream === true)) return undefined
  if (!asksForUsage && request.stream_options !== undefined) return undefined
  const asks = asksForUsage && call.stream && request.stream_options?.include_usage !== true
  if (asks && request.stream_options !== undefined) return undefined
  const span = findKnownString(bytes, ['model'], request.model)
  if (span === undefined) return undefined
  const isRenamed = request.model !== call.model.upstream
  const model = JSON.stringify(call.model.upstream)
  if (!asks) return isRenamed ? spliceText(bytes, span, model) : bytes
  const edits = new ByteEdits()
  const behindBrace = bytes.indexOf(OPEN_BRACE) + 1
  edits.replace(behindBrace, behindBrace, ASK_FOR_USAGE)
  if (isRenamed) edits.replace(span.start, span.end, Buffer.from(model))
  return edits.apply(bytes)
}

/** Sets what the gateway decides: the vendor's model id, and usage at the end of every stream. */
export function completed(
  body: Record<string, unknown>,
  call: VendorCall<StreamableRequest>,
  asksForUsage: boolean,
): Record<string, unknown> {
  body['model'] = call.model.upstream
  if (!asksForUsage) delete body['stream_options']
  if (call.stream) {
    body['stream'] = true
    if (asksForUsage) body['stream_options'] = { ...call.request.stream_options, include_usage: true }
  } else if (body['stream'] === true) {
    body['stream'] = false
  }
  return body
}

/**
 * Returns the conversation with one system message, at its start. Templates of open models reject a second one ("System message
 * must be at the beginning", https://github.com/vllm-project/vllm/issues/41114), and coding clients send several: those at the
 * start are joined, and later ones move into user turns, marked as clients mark them for models without such messages.
 */
function systemFirst(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const instructions = messages.filter(isInstruction).length
  if (instructions === 0 || (instructions === 1 && isInstruction(messages[0]!))) return messages
  const ordered: ChatMessage[] = []
  for (const message of messages) {
    const last = ordered.at(-1)
    if (!isInstruction(message)) ordered.push(message)
    else if (last === undefined) ordered.push({ ...message, role: 'system' })
    else if (ordered.length === 1 && isInstruction(last)) ordered[0] = joined(last, message.content)
    else if (last.role === 'user') ordered[ordered.length - 1] = joined(last, reminder(message))
    else ordered.push({ role: 'user', content: reminder(message) })
  }
  return ordered
}

function isInstruction({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer'
}

function reminder({ content }: ChatMessage): string | ChatContentPart[] {
  const parts = partsOf(content)
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  const text = `<system-reminder>\n${texts.join('\n')}\n</system-reminder>`
  const pictures = parts.filter((part) => part.type !== 'text')
  return pictures.length === 0 ? text : [{ type: 'text', text }, ...pictures]
}

function joined(message: ChatMessage, added: ChatMessage['content']): ChatMessage {
  const { content } = message
  if (typeof content === 'string' && typeof added === 'string') return { ...message, content: `${content}\n\n${added}` }
  return { ...message, content: [...partsOf(content), ...partsOf(added)] }
}

function partsOf(content: ChatMessage['content']): readonly ChatContentPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return content ?? []
}

/** Whether the caller requests a whole answer but the model only streams. The stream is then collected. */
function isCollected({ stream, model, request }: VendorCall<ChatRequest>, dialect: OpenAIChatDialect): boolean {
  return !stream && dialect.streamsOnly?.(model.upstream, request) === true
}

/**
 * Returns the call for the stream.
 * @throws GatewayError `unsupported_parameter` for audio, which is not collected.
 */
function collectedCall(call: VendorCall<ChatRequest>): VendorCall<ChatRequest> {
  const { modalities } = call.request
  if (Array.isArray(modalities) && modalities.includes('audio')) {
    const message = 'modalities: this model speaks in streams only'
    throw new GatewayError('unsupported_parameter', { message, param: 'modalities' })
  }
  return { ...call, request: { ...call.request, stream: true }, bytes: undefined, stream: true }
}

/** Whether the vendor answered with a stream. In a batch it does not. */
function isEventStream({ headers }: Pick<WireAnswer, 'headers'>): boolean {
  return mediaType(firstHeader(headers, 'content-type')) === 'text/event-stream'
}

/** Reads a whole answer. Returns `undefined` if it is not a chat completion. */
function wholeChat(
  { body }: WireAnswer,
  call: VendorCall<ChatRequest>,
  dialect: OpenAIChatDialect,
): ReturnType<ChatOperation['fromWire']> {
  const chunk = chunkOfCompletion(body, dialect)
  if (chunk === undefined) return undefined
  const collector = new CompletionCollector()
  const decoder = new OpenAIChatDecoder(call, collector, { ...dialect, answerRepair: undefined })
  decoder.readWhole(chunk)
  const { usage } = decoder
  const completion = collector.completion(call, usage)
  if (completion === undefined) return undefined
  const { created } = chunk
  return { completion: typeof created === 'number' ? { ...completion, created } : completion, usage }
}

/** Reads a finished stream: the answer, or the reason why there is none. A stream without its end is not an answer. */
function collectedChat(
  chunks: readonly Uint8Array[],
  call: VendorCall<ChatRequest>,
  dialect: OpenAIChatDialect,
): { readonly read: ReturnType<ChatOperation['fromWire']>; readonly broken: BrokenChat } {
  const collector = new CompletionCollector()
  const decoder = new OpenAIChatDecoder(call, collector, dialect)
  for (const chunk of chunks) decoder.push(chunk)
  decoder.end()
  const { usage, isComplete, failure = invalidResponse('The stream ended before its answer did.') } = decoder
  const completion = isComplete && decoder.failure === undefined ? collector.completion(call, usage) : undefined
  const used = usedOf(usage)
  const outputBytes = collector.textBytes
  // Output before the failure is billed like any other text.
  const isBilled = used === undefined && outputBytes > 0
  const told = { ...failure, status: 200, ...(isBilled ? { billedBytes: outputBytes } : {}) }
  return { read: completion && { completion, usage }, broken: { failure: told, usage: used, outputBytes } }
}

interface ChoiceState {
  readonly toolCalls: StreamedToolCalls
  /** Latest known finish reason. Some servers send one with every chunk. */
  finish: FinishReason | undefined
  /** Whether content followed that reason. */
  hasMore: boolean
  /** State of the server in the message so far. */
  server: Record<string, unknown> | undefined
  isServerWritten: boolean
}

/** Reads a streamed chat of the dialect and passes its content to a writer. */
class OpenAIChatDecoder extends EventDecoder implements ChatStreamDecoder {
  protected override readonly argumentsMember: ArgumentsMember = 'arguments'
  usage: Usage | undefined
  serviceTier: string | undefined
  readonly #dialect: OpenAIChatDialect
  readonly #repair: ((chunk: Record<string, unknown>) => boolean) | undefined
  readonly #writer: ChatStreamWriter
  readonly #expectedChoices: number
  readonly #cacheTime: CacheTime
  readonly #askedTier: unknown
  readonly #choices = new Map<number, ChoiceState>()
  readonly #vendor: string
  #answerMark: string
  #hasStarted = false
  #isDone = false

  constructor(call: VendorCall<ChatRequest>, writer: ChatStreamWriter, dialect: OpenAIChatDialect) {
    super()
    this.#dialect = dialect
    this.#repair = dialect.answerRepair?.chunks()
    this.#writer = writer
    this.#expectedChoices = call.request.n ?? 1
    this.#cacheTime = markedCacheTime(call, dialect)
    this.#askedTier = call.request['service_tier']
    this.#vendor = call.model.vendor
    this.#answerMark = answerMark(undefined, call.nowMs)
  }

  get isComplete(): boolean {
    // An end mark without choices is not an answer, like a whole answer without choices.
    if (this.#isDone) return this.#choices.size > 0
    const states = [...this.#choices.values()]
    return states.length >= this.#expectedChoices && states.every((state) => state.finish !== undefined)
  }

  /** Reads a whole answer in one chunk. */
  readWhole(chunk: Record<string, unknown>): void {
    this.#readChunk(chunk)
    this.readEndMark()
  }

  protected override readValue(chunk: Record<string, unknown>, { name }: EventLines): void {
    if (name === 'error' || isErrorEnvelope(chunk) || failedChoice(chunk['choices']) !== undefined) {
      // An empty report is ignored, and the usage is estimated.
      this.usage = usedOf(this.#usageIn(chunk)) ?? this.usage
      this.fail(this.#dialect.streamFailure(chunk))
    } else this.#readChunk(chunk)
  }

  #readChunk(chunk: Record<string, unknown>): void {
    this.#repair?.(chunk)
    this.usage = this.#usageIn(chunk) ?? this.usage
    this.serviceTier ??= usedTier(chunk['service_tier'], this.#askedTier)
    // A chunk without choices may arrive before the answer has its id.
    if (!Array.isArray(chunk['choices']) || chunk['choices'].length === 0) return
    if (!this.#hasStarted) {
      this.#hasStarted = true
      const id = typeof chunk['id'] === 'string' ? chunk['id'] : ''
      this.#answerMark = id || this.#answerMark
      this.#writer.start(id)
    }
    for (const choice of chunk['choices']) if (isJsonObject(choice)) this.#choice(choice)
  }

  #usageIn(chunk: Record<string, unknown>): Usage | undefined {
    const usage = usageAsMarked(openaiUsage(chunkUsage(chunk)), this.#cacheTime)
    return usageAtTier(usage, chunk['service_tier'], this.#askedTier)
  }

  #choice(choice: Record<string, unknown>): void {
    const index = typeof choice['index'] === 'number' ? choice['index'] : 0
    const state = this.#choices.get(index) ?? begunChoice()
    this.#choices.set(index, state)
    const { delta, finish_reason: reason } = choice
    const isMore = isJsonObject(delta) && this.#delta(delta, index, state, tokensOf(choice['logprobs']))
    if (isMore) state.hasMore = true
    const given = reason === null || reason === undefined || reason === '' ? undefined : openaiFinishReason(reason)
    // A verdict on text that was already sent does not end it again.
    if (given === undefined ? !isMore || state.finish === undefined : state.finish !== undefined && !state.hasMore)
      return
    const hasCallsSince = given === undefined && state.toolCalls.count > 0
    const finish = hasCallsSince && state.finish === 'stop' ? 'tool_calls' : (given ?? state.finish)
    state.hasMore = false
    if (finish !== undefined) this.#finish(index, state, finish)
  }

  /** Returns whether the delta contained content. */
  #delta(delta: Record<string, unknown>, index: number, state: ChoiceState, logprobs?: readonly unknown[]): boolean {
    mendContentParts(delta)
    const reasoning = reasoningText(delta)
    if (reasoning !== '') this.#writer.reasoning(reasoning, index)
    if (isText(delta['content'])) this.#writer.text(delta['content'], index, logprobs)
    const annotations = annotationsIn(delta)
    if (annotations.length > 0) this.#writer.annotations?.(annotations, index)
    if (isText(delta['refusal'])) this.#writer.refusal(delta['refusal'], index)
    if (isJsonObject(delta['extra_content'])) this.#writer.extraContent(delta['extra_content'] as ExtraContent, index)
    const message = messageState(delta)
    if (message !== undefined) {
      state.server = joinedState(state.server, message)
      state.isServerWritten = false
    }
    const pieces = objectsIn(delta['tool_calls'])
    for (const piece of pieces) this.#toolCall(piece, index, state)
    const hasText = reasoning !== '' || isText(delta['content']) || isText(delta['refusal'])
    return hasText || pieces.length > 0 || message !== undefined
  }

  #toolCall(piece: Record<string, unknown>, choice: number, state: ChoiceState): void {
    const located = state.toolCalls.locate(piece, this.#answerMark)
    if (located === undefined) return
    const { index, opens, id, name, json } = located
    const { extra_content: given } = located.piece
    const own = isJsonObject(given) ? (given as ExtraContent) : undefined
    const message = state.isServerWritten ? undefined : state.server
    const extra = withServerState(own, this.#vendor, { message, call: callState(located.piece) })
    if (opens) state.isServerWritten = true
    if (opens) this.#writer.toolCall({ index, id, name, ...(extra === undefined ? {} : { extra }) }, choice)
    if (json !== '') this.#writer.toolCallArguments(index, json, choice)
  }

  /** Choices without a reason get one from their content. */
  protected override readEndMark(): void {
    this.#isDone = true
    this.finish()
    for (const [index, state] of this.#choices) {
      if (state.finish === undefined) this.#finish(index, state, endReason(undefined, state.toolCalls.count > 0))
    }
  }

  #finish(index: number, state: ChoiceState, reason: FinishReason): void {
    state.finish = reason
    const extra = withServerState(undefined, this.#vendor, {
      message: state.isServerWritten ? undefined : state.server,
    })
    state.isServerWritten = true
    if (extra !== undefined) this.#writer.extraContent(extra, index)
    this.#writer.finish(reason, index)
  }
}

function begunChoice(): ChoiceState {
  const toolCalls = new StreamedToolCalls()
  return { toolCalls, finish: undefined, hasMore: false, server: undefined, isServerWritten: false }
}

function tokensOf(logprobs: unknown): readonly unknown[] | undefined {
  return isJsonObject(logprobs) && Array.isArray(logprobs['content']) ? logprobs['content'] : undefined
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
