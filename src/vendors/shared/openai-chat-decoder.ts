import { isJsonObject } from '../../core/json.ts'
import { type Usage, usedOf } from '../../core/usage.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import type { CacheTime } from '../../endpoints/cache-marks.ts'
import type { FinishReason } from '../../endpoints/chat/chat-completion.ts'
import type { ChatRequest, ExtraContent } from '../../endpoints/chat/chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from '../../endpoints/chat/chat-stream-writer.ts'
import { OversizeEventError, type ServerSentEvent, sseReader } from '../../wire/sse.ts'
import type { VendorCall, VendorFailure } from '../vendor.ts'
import { mendContentParts } from './content-parts.ts'
import { invalidResponse } from './invalid-response.ts'
import { annotationsIn, endReason, openaiFinishReason, reasoningText } from './openai-chat-answer.ts'
import { failedChoice, isErrorEnvelope, markedCacheTime, type OpenAIChatDialect } from './openai-chat-dialect.ts'
import { chunkUsage, openaiUsage, usageAsMarked } from './openai-usage.ts'
import { callState, joinedState, messageState, withServerState } from './server-state.ts'
import { usageAtTier, usedTier } from './service-tier.ts'
import { answerMark, StreamedToolCalls } from './streamed-tool-calls.ts'

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
export class OpenAIChatDecoder implements ChatStreamDecoder {
  failure: VendorFailure | undefined
  /** Bytes become text immediately. */
  readonly holdsNoBytes = true
  usage: Usage | undefined
  serviceTier: string | undefined
  readonly #dialect: OpenAIChatDialect
  readonly #repair: ((chunk: Record<string, unknown>) => boolean) | undefined
  readonly #writer: ChatStreamWriter
  readonly #expectedChoices: number
  readonly #cacheTime: CacheTime
  readonly #askedTier: unknown
  readonly #choices = new Map<number, ChoiceState>()
  readonly #reader = sseReader((event) => this.#event(event))
  readonly #vendor: string
  #answerMark: string
  #hasStarted = false
  #isDone = false
  #isEnding = false

  constructor(call: VendorCall<ChatRequest>, writer: ChatStreamWriter, dialect: OpenAIChatDialect) {
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

  push(chunk: Uint8Array): void {
    this.#read(() => this.#reader.push(chunk))
  }

  end(): void {
    this.#isEnding = true
    this.#read(() => this.#reader.end())
  }

  #read(read: () => void): void {
    if (this.failure !== undefined || this.#isDone) return
    try {
      read()
    } catch (error) {
      if (!(error instanceof OversizeEventError)) throw error
      this.failure = invalidResponse('The vendor sent an event that is too large.')
    }
  }

  #event({ event, data }: ServerSentEvent): void {
    if (this.failure !== undefined || this.#isDone) return
    if (data.trim() === '[DONE]') {
      this.#done()
      return
    }
    const chunk = parseAnswerJson(data, 'arguments')
    if (!isJsonObject(chunk)) {
      // A torn last event is not a separate error: the body was cut, and `isComplete` is false.
      if (this.#isEnding) return
      this.failure = invalidResponse('The vendor sent an event that is not JSON.')
      return
    }
    if (event === 'error' || isErrorEnvelope(chunk) || failedChoice(chunk['choices']) !== undefined) {
      // An empty report is ignored, and the usage is estimated.
      this.usage = usedOf(this.#usageIn(chunk)) ?? this.usage
      this.failure = this.#dialect.streamFailure(chunk)
      return
    }
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
    const pieces = Array.isArray(delta['tool_calls']) ? delta['tool_calls'].filter(isJsonObject) : []
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

  /** Handles the vendor's end mark. Choices without a reason get one from their content. */
  #done(): void {
    this.#isDone = true
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
