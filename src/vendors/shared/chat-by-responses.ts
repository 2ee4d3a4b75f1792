import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject, objectOf, objectsIn, textOf } from '../../core/json.ts'
import { type Usage, usedOf } from '../../core/usage.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import type { ChatAnnotation, FinishReason } from '../../endpoints/chat/chat-completion.ts'
import { chatByCall } from '../../endpoints/chat/chat-operation.ts'
import type { ChatRequest, EncryptedReasoning } from '../../endpoints/chat/chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from '../../endpoints/chat/chat-stream-writer.ts'
import { EventDecoder } from '../../endpoints/event-reader.ts'
import { asBuffer } from '../../wire/chunks.ts'
import type { KnownEvents } from '../../wire/event-template.ts'
import type { ChatOperation, VendorCall, VendorFailure, WireAnswer } from '../vendor.ts'
import { CompletionCollector } from './completion-collector.ts'
import { invalidResponse } from './invalid-response.ts'
import { applyFieldRules } from './openai-chat-dialect.ts'
import type { OpenAIResponsesDialect } from './openai-responses.ts'
import { DELTA_PATHS } from './openai-responses-stream.ts'
import { responsesUsage } from './openai-responses-usage.ts'
import { carriedReasoning } from './reasoning.ts'
import { RESPONSES_PROTOCOL, responsesFromChat } from './responses-from-chat.ts'
import { withoutModeration } from './translated-chat-fields.ts'
import { bearerHeaders } from './vendor-options.ts'

/**
 * Creates chat for a vendor with both dialects. Responses are used for models whose row requires them, and for chats that
 * `isRefused` says chat completions reject; `chat` handles all others. Nothing is stored at the vendor: the caller carries the
 * conversation, including the vendor's encrypted reasoning.
 */
export function chatByResponses(
  chat: ChatOperation,
  dialect: OpenAIResponsesDialect,
  isRefused?: (upstream: string, request: ChatRequest) => boolean,
): ChatOperation {
  const translated = translatedChat(dialect)
  return chatByCall(
    ({ model, request }) =>
      model.protocol === RESPONSES_PROTOCOL || isRefused?.(model.upstream, request) === true ? translated : chat,
    { ...chat, protocols: [RESPONSES_PROTOCOL] },
  )
}

/** Creates chat for a server with Responses but without chat completions. */
export function translatedChat(dialect: OpenAIResponsesDialect): ChatOperation {
  const { path, query = '', headers = bearerHeaders } = dialect
  return {
    protocol: RESPONSES_PROTOCOL,
    protocols: [RESPONSES_PROTOCOL],
    abilities: ({ efforts }) => ({ efforts }),
    hasHiddenReasoning: ({ model, request }) =>
      dialect.hasHiddenReasoning?.(model.upstream, request.reasoning_effort) ?? false,
    toWire(call) {
      const { request: plain, dropped: unread } =
        dialect.moderates === true ? { request: call.request, dropped: [] } : withoutModeration(call.request)
      const ruled = applyFieldRules(plain, dialect.chatRulesFor?.(call.model.upstream) ?? {})
      const asked = { ...call, request: (ruled.body as ChatRequest | undefined) ?? plain }
      const { request, dropped: lost } = responsesFromChat({ call: asked })
      const dropped = [...new Set([...unread, ...ruled.dropped, ...lost])]
      const accepted = call.stream ? 'text/event-stream' : 'application/json'
      return {
        path: `${path}${query}`,
        headers: headers(call.apiKey, accepted),
        body: exactJsonText(request),
        dropped,
      }
    },
    fromWire(answer, call) {
      const response = responseIn(answer)
      if (response === undefined || !Array.isArray(response['output'])) return undefined
      const { status } = response
      if (status !== 'completed' && status !== 'incomplete') return undefined
      const collector = new CompletionCollector()
      const reader = new ResponsesAnswerReader(collector, call)
      reader.read({ type: `response.${status}`, response })
      const completion = collector.completion(call, reader.usage)
      return completion === undefined ? undefined : { completion, usage: reader.usage }
    },
    // A response that failed or was cut reports its usage.
    brokenAnswer(answer, call) {
      const response = responseIn(answer)
      const usage = response && usedOf(responsesUsage(response, call.request['service_tier']))
      if (response === undefined || usage === undefined) return undefined
      const { status, error } = response
      // A response that breaks off without an error is not retried.
      const hasFailed = status === 'failed' || isJsonObject(error)
      const failure = hasFailed ? dialect.streamFailure({ error }) : invalidResponse('the response is incomplete')
      return { failure: { ...failure, status: answer.status }, usage }
    },
    decoder: (call, writer) => new ResponsesChatDecoder(call, writer, dialect),
  }
}

function responseIn(answer: WireAnswer): Record<string, unknown> | undefined {
  const response = parseAnswerJson(asBuffer(answer.body).toString('utf8'))
  return isJsonObject(response) && response['object'] === 'response' ? response : undefined
}

/** Parts of the dialect for a stream. */
interface StreamDialect {
  streamFailure(envelope: Record<string, unknown>): VendorFailure
}

/** Kinds of the text deltas. */
type DeltaKind = 'text' | 'reasoning'
const DELTA_KINDS: ReadonlyMap<unknown, DeltaKind> = new Map([
  ['response.output_text.delta', 'text'],
  ['response.reasoning_summary_text.delta', 'reasoning'],
])

/**
 * Reads a streamed response as the answer to a chat (OpenAI API reference, "Streaming events"). Text deltas, the most frequent
 * events, are not parsed.
 */
class ResponsesChatDecoder extends EventDecoder<DeltaKind> implements ChatStreamDecoder {
  readonly #dialect: StreamDialect
  readonly #answer: ResponsesAnswerReader
  readonly #askedTier: unknown
  readonly #readsDeltas: boolean
  #usage: Usage | undefined
  #error: VendorFailure | undefined

  constructor(call: VendorCall<ChatRequest>, writer: ChatStreamWriter, dialect: StreamDialect) {
    super()
    this.#dialect = dialect
    this.#askedTier = call.request['service_tier']
    this.#answer = new ResponsesAnswerReader(writer, {
      apiKey: call.apiKey,
      model: call.model,
      request: { service_tier: this.#askedTier },
    })
    // The caller also wants their logprobs.
    this.#readsDeltas = call.request.logprobs === true
  }

  get isComplete(): boolean {
    return this.#answer.isComplete
  }

  get usage(): Usage | undefined {
    return this.#answer.usage ?? this.#usage
  }

  /** A failed response reports its whole usage. */
  get hasRunningUsage(): boolean {
    return this.#usage !== undefined
  }

  /** An error without the failed response that should follow it. */
  protected override bodyEnded(): undefined {
    if (this.#error !== undefined) this.fail(this.#error)
  }

  protected override readKnown(known: KnownEvents<DeltaKind>, kind: DeltaKind): boolean {
    const { text } = known
    if (text !== undefined) this.#answer[kind](text)
    return text !== undefined
  }

  protected override readValue(value: Record<string, unknown>): void {
    const { type, error, response } = value
    if (type === 'error' || (type === undefined && isJsonObject(error))) {
      this.#error = this.#dialect.streamFailure(isJsonObject(error) ? value : { error: value })
    } else if (type === 'response.failed') {
      const failed = objectOf(response)
      this.#usage = responsesUsage(failed, this.#askedTier)
      this.fail(this.#error ?? this.#dialect.streamFailure({ error: failed['error'] ?? error }))
    } else {
      this.#answer.read(value)
      if (this.isComplete) this.finish()
      const kind = this.#readsDeltas ? undefined : DELTA_KINDS.get(type)
      if (kind !== undefined) this.learn(value, DELTA_PATHS, kind)
    }
  }
}

type Json = Readonly<Record<string, unknown>>

/** Separator between two parts of a reasoning summary. */
const PARAGRAPH = '\n\n'

/** Types of items that are calls of the caller's tools. */
const CALLS: ReadonlySet<unknown> = new Set(['function_call', 'custom_tool_call'])

/** Call whose answer is read. */
interface AnswerCall extends Pick<VendorCall<object>, 'apiKey' | 'model'> {
  readonly request: object
}

/**
 * Reads a response as the answer to a chat and passes its content to a writer: from the events of a stream, or item by item. Data
 * missing in an event is taken from a later one with the whole item. Items that chat does not support are skipped.
 */
class ResponsesAnswerReader {
  isComplete = false
  usage: Usage | undefined
  readonly #writer: ChatStreamWriter
  readonly #call: AnswerCall
  /** Index of each call among the calls, by its index in the output. */
  readonly #calls = new Map<unknown, { readonly index: number; hasArguments: boolean }>()
  readonly #doneItems = new Set<unknown>()
  /** Reasoning that waits for the item after it. */
  #reasoning: EncryptedReasoning[] = []
  #hasStarted = false
  #hasReasoning = false
  #needsParagraph = false
  /** Characters of text so far, and before the open item. */
  #textLength = 0
  #textBefore = 0
  #hasItemContent = false
  #hasPartContent = false
  #hasItemReasoning = false

  constructor(writer: ChatStreamWriter, call: AnswerCall) {
    this.#writer = writer
    this.#call = call
  }

  /** Reads one event. Unknown ones are skipped. */
  read(event: Json): void {
    const { type, output_index: place, item, delta, response } = event
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
        this.#start(response)
        break
      case 'response.output_item.added':
        this.#beginItem()
        // A call that is already complete is read when it is done: Perplexity sends its own searches as calls.
        if (isJsonObject(item) && CALLS.has(item['type']) && item['status'] !== 'completed') this.#openCall(place, item)
        break
      case 'response.content_part.added':
        this.#hasPartContent = false
        break
      case 'response.output_text.delta':
        this.text(textOf(delta), logprobsIn(event))
        break
      case 'response.output_text.done':
        if (!this.#hasPartContent) this.text(textOf(event['text']), logprobsIn(event))
        break
      case 'response.refusal.delta':
        this.#refusal(textOf(delta))
        break
      case 'response.refusal.done':
        if (!this.#hasPartContent) this.#refusal(textOf(event['refusal']))
        break
      case 'response.reasoning_summary_part.added':
        this.#needsParagraph = true
        break
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        this.reasoning(textOf(delta))
        break
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        this.#arguments(place, textOf(delta))
        break
      case 'response.output_item.done':
        if (isJsonObject(item)) this.readItem(place, item)
        break
      case 'response.completed':
      case 'response.incomplete':
        this.#end(objectOf(response))
    }
  }

  /** Writes a chunk of text. */
  text(text: string, logprobs?: readonly unknown[]): void {
    if (text === '') return
    this.#start(undefined)
    this.#textLength += text.length
    this.#hasItemContent = true
    this.#hasPartContent = true
    this.#writer.text(text, 0, logprobs)
  }

  /** Writes a chunk of reasoning. */
  reasoning(text: string): void {
    if (text === '') return
    this.#start(undefined)
    this.#hasItemReasoning = true
    this.#writer.reasoning(this.#needsParagraph && this.#hasReasoning ? PARAGRAPH + text : text)
    this.#needsParagraph = false
    this.#hasReasoning = true
  }

  /** Reads a whole item without repeating what earlier events contained. */
  readItem(place: unknown, item: Json): void {
    if (this.#doneItems.has(place)) return
    this.#doneItems.add(place)
    if (item['type'] === 'message') this.#message(item)
    else if (CALLS.has(item['type'])) this.#functionCall(place, item)
    else if (item['type'] === 'reasoning') this.#reasoningItem(item)
    this.#beginItem()
  }

  #start(response: unknown): void {
    if (this.#hasStarted) return
    this.#hasStarted = true
    this.#writer.start(isJsonObject(response) ? textOf(response['id']) : '')
  }

  #beginItem(): void {
    this.#textBefore = this.#textLength
    this.#hasItemContent = false
    this.#hasPartContent = false
    this.#hasItemReasoning = false
    this.#needsParagraph = true
  }

  #refusal(text: string): void {
    if (text === '') return
    this.#start(undefined)
    this.#hasItemContent = true
    this.#hasPartContent = true
    this.#writer.refusal(text)
  }

  #message(item: Json): void {
    const parts = objectsIn(item['content'])
    if (!this.#hasItemContent) {
      for (const part of parts) {
        if (part['type'] === 'refusal') this.#refusal(textOf(part['refusal']))
        else this.text(textOf(part['text']), logprobsIn(part))
      }
    }
    const annotations: ChatAnnotation[] = []
    let offset = this.#textBefore
    for (const part of parts) {
      for (const one of objectsIn(part['annotations'])) {
        const citation = citationOf(one, offset)
        if (citation !== undefined) annotations.push(citation)
      }
      offset += textOf(part['text']).length
    }
    if (annotations.length > 0) this.#writer.annotations?.(annotations)
  }

  #openCall(place: unknown, { type, call_id: id, name }: Json): void {
    if (this.#calls.has(place)) return
    this.#start(undefined)
    const index = this.#calls.size
    this.#calls.set(place, { index, hasArguments: false })
    const extra = this.#reasoning.length === 0 ? {} : { extra: carriedReasoning(this.#reasoning, this.#call) }
    this.#reasoning = []
    const custom = type === 'custom_tool_call' ? { isCustom: true } : {}
    this.#writer.toolCall({ index, id: textOf(id), name: textOf(name), ...extra, ...custom })
  }

  #arguments(place: unknown, json: string): void {
    const call = this.#calls.get(place)
    if (call === undefined || json === '') return
    call.hasArguments = true
    this.#writer.toolCallArguments(call.index, json)
  }

  #functionCall(place: unknown, item: Json): void {
    this.#openCall(place, item)
    if (this.#calls.get(place)?.hasArguments !== false) return
    const { type, input, arguments: json } = item
    this.#arguments(place, type === 'custom_tool_call' ? textOf(input) : textOf(json) || '{}')
  }

  #reasoningItem({ id, encrypted_content: content, summary, content: texts }: Json): void {
    if (!this.#hasItemReasoning) {
      for (const part of [...objectsIn(summary), ...objectsIn(texts)]) {
        this.#needsParagraph = true
        this.reasoning(textOf(part['text']))
      }
    }
    if (typeof id === 'string' && typeof content === 'string' && content !== '')
      this.#reasoning.push({ id, encrypted_content: content })
  }

  #end(response: Json): void {
    this.#start(response)
    for (const [place, item] of objectsIn(response['output']).entries()) this.readItem(place, item)
    this.usage = responsesUsage(response, (this.#call.request as { readonly service_tier?: unknown }).service_tier)
    if (this.#reasoning.length > 0 && this.#textLength > 0)
      this.#writer.extraContent(carriedReasoning(this.#reasoning, this.#call))
    this.#writer.finish(finishReason(response, this.#calls.size > 0))
    this.isComplete = true
  }
}

/** If an answer is incomplete, the token limit is the reason unless another is given. */
function finishReason({ status, incomplete_details: details }: Json, hasCalls: boolean): FinishReason {
  if (status !== 'incomplete') return hasCalls ? 'tool_calls' : 'stop'
  return isJsonObject(details) && details['reason'] === 'content_filter' ? 'content_filter' : 'length'
}

/** Returns a web source with its position in the whole text, or `undefined` for other annotations. */
function citationOf(annotation: Json, offset: number): ChatAnnotation | undefined {
  const { type, start_index: start, end_index: end, url, title } = annotation
  if (type !== 'url_citation' || typeof url !== 'string') return undefined
  return {
    type,
    url_citation: {
      start_index: offset + (typeof start === 'number' ? start : 0),
      end_index: offset + (typeof end === 'number' ? end : 0),
      url,
      title: textOf(title),
    },
  }
}

function logprobsIn({ logprobs }: Json): readonly unknown[] | undefined {
  return Array.isArray(logprobs) && logprobs.length > 0 ? logprobs : undefined
}
