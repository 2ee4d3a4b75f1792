import { Buffer } from 'node:buffer'
import type { CatalogModel } from '../../catalog/model.ts'
import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { joinChunks } from '../../wire/chunks.ts'
import { SSE_DONE } from '../../wire/sse.ts'
import {
  type AnswerBody,
  type ChunkedAnswer,
  jsonBody,
  type Operation,
  type PassThrough,
  passThrough,
  type VendorCall,
  type WireAnswer,
  type WireRequest,
} from '../operation.ts'
import type { StreamTransform, VendorFailure } from '../stream-transform.ts'
import { GENERATED_BYTES_PER_TOKEN } from '../token-estimate.ts'
import { type ChatAnnotation, type ChatCompletion, chatUsage, type FinishReason } from './chat-completion.ts'
import type { ChatMessage, ChatRequest, ExtraContent, ThinkingBlock } from './chat-request.ts'
import type { ChatAbilities } from './chat-schema.ts'
import type { AnswerWriter, ChatStreamDecoder, ChatStreamWriter } from './chat-stream-writer.ts'

/** A token is 50 ms of audio (OpenAI, "Managing costs"), which is streamed only as 16-bit PCM at 24 kHz. */
const SOUND_BYTES_PER_TOKEN = 2_400

/**
 * Returns the bytes of generated text in a message or delta: content, refusal, reasoning, and names and arguments of
 * tool calls. Audio counts as text of as many tokens. Answers without reported usage are charged by this.
 */
export function messageTextBytes(message: object): number {
  const { content, refusal, reasoning_content, reasoning, tool_calls, function_call, audio } = message as Record<
    string,
    unknown
  >
  let byteLength = textBytes(content) + textBytes(refusal) + textBytes(reasoning_content || reasoning)
  if (audio !== undefined) byteLength += spokenBytes(audio)
  if (function_call !== undefined) byteLength += calledBytes(function_call, 'arguments')
  if (!Array.isArray(tool_calls)) return byteLength
  for (const call of tool_calls)
    if (isJsonObject(call))
      byteLength += calledBytes(call['function'], 'arguments') + calledBytes(call['custom'], 'input')
  return byteLength
}

function spokenBytes(audio: unknown): number {
  if (!isJsonObject(audio)) return 0
  const { data, transcript } = audio
  const soundBytes = typeof data === 'string' ? (data.length * 3) / 4 : 0
  return textBytes(transcript) + Math.ceil((soundBytes / SOUND_BYTES_PER_TOKEN) * GENERATED_BYTES_PER_TOKEN)
}

function calledBytes(called: unknown, member: 'arguments' | 'input'): number {
  return isJsonObject(called) ? textBytes(called['name']) + textBytes(called[member]) : 0
}

/** Returns the bytes of generated text in all choices of a whole answer. */
export function completionTextBytes({
  choices,
}: {
  readonly choices: readonly { readonly message: object }[]
}): number {
  return choices.reduce((sum, { message }) => sum + messageTextBytes(message), 0)
}

function textBytes(value: unknown): number {
  return typeof value === 'string' ? Buffer.byteLength(value) : 0
}

/** Joins a vendor's chat decoder and a writer of events in a dialect into a stream of bytes for the caller. */
export class TranslatedStream implements StreamTransform {
  closing: string | undefined
  keptAnswer: Record<string, unknown> | undefined
  readonly #decoder: ChatStreamDecoder
  readonly #writer: AnswerWriter
  readonly #costOf: VendorCall<object>['costOf']
  readonly #billedUsage: VendorCall<object>['billedUsage']
  #failure: VendorFailure | undefined
  #isDone = false
  #hasBegun = false

  constructor(
    decoder: ChatStreamDecoder,
    writer: AnswerWriter,
    { costOf, billedUsage }: Pick<VendorCall<object>, 'costOf' | 'billedUsage'>,
  ) {
    this.#decoder = decoder
    this.#writer = writer
    this.#costOf = costOf
    this.#billedUsage = billedUsage
  }

  push(chunk: Uint8Array): string | undefined {
    return this.failure === undefined ? this.#decode(chunk) : undefined
  }

  end(): string | undefined {
    if (this.failure !== undefined) return undefined
    const text = this.#decode(undefined)
    if (this.failure !== undefined || !this.#decoder.isComplete || this.#isDone) return text
    this.#isDone = true
    const usage = this.#writer.showsUsage === false ? undefined : this.#billed()
    const end = this.#writer.done(usage, usage && this.#costOf?.(usage))
    this.closing = end?.lastEvent
    this.keptAnswer = this.closing === undefined ? undefined : end?.response
    return (text ?? '') + this.#take()
  }

  get keepAlive(): StreamTransform['keepAlive'] {
    return this.#writer.keepAlive?.bind(this.#writer)
  }

  get failed(): StreamTransform['failed'] {
    return this.#writer.fail?.bind(this.#writer)
  }

  get takes(): ((mediaType: string) => boolean) | undefined {
    return this.#decoder.takes
  }

  get hasContent(): boolean {
    return this.#writer.hasContent
  }

  /** Complete only after `end`, because usage may follow the vendor's last content. */
  get isComplete(): boolean {
    return this.#isDone
  }

  /** The writer returns complete events only. */
  get atBoundary(): boolean {
    return true
  }

  get failure(): VendorFailure | undefined {
    return this.#failure ?? this.#decoder.failure
  }

  get usage(): Usage | undefined {
    return this.#decoder.usage
  }

  get serviceTier(): string | undefined {
    return this.#decoder.serviceTier
  }

  get outputBytesSeen(): number {
    return this.#writer.outputBytesSeen
  }

  get hasTextEnded(): boolean {
    return this.#writer.hasTextEnded
  }

  get hasRunningUsage(): boolean {
    return this.#decoder.hasRunningUsage === true
  }

  get holdsNoBytes(): boolean {
    return this.#decoder.holdsNoBytes === true
  }

  #billed(): Usage | undefined {
    return this.#billedUsage === undefined ? this.usage : this.#billedUsage(this.usage, this.outputBytesSeen)
  }

  /** Only the first events contain usage, which some decoders compute again. */
  #take(): string {
    const text = this.#writer.take(this.#hasBegun ? undefined : this.usage)
    if (text !== '') this.#hasBegun = true
    return text
  }

  /** Decodes a chunk, or the end of the body if the chunk is `undefined`. */
  #decode(chunk: Uint8Array | undefined): string | undefined {
    try {
      if (chunk === undefined) this.#decoder.end()
      else this.#decoder.push(chunk)
    } catch {
      this.#failure = UNREADABLE
    }
    const text = this.#take()
    return text === '' ? undefined : text
  }
}

const UNREADABLE: VendorFailure = {
  kind: 'invalid_response',
  status: 0,
  message: 'the vendor sent an event that cannot be read',
}

/**
 * Writes neutral chat events as OpenAI chunks (OpenAI API, "The chat completion chunk object"). The text is concatenated around the
 * few values that change, because building and stringifying an object per event costs three times as much.
 */
export class ChatChunkWriter implements AnswerWriter {
  /** Whether the written output contains something that a caller keeps. */
  hasContent = false
  /** Bytes of text, reasoning and arguments of tool calls so far. */
  outputBytesSeen = 0
  readonly showsUsage: boolean
  readonly #createdSeconds: number
  readonly #modelJson: string
  /** End of every chunk of a choice. If the usage is requested, all chunks before the usage chunk carry null. */
  readonly #tail: string
  #head = ''
  #text = ''
  /** Indexes of calls of custom tools. */
  #customCalls: Set<number> | undefined
  readonly #openChoices = new Set<number>()
  /** Finish reasons by choice, written when the answer ends because content may follow. Created lazily. */
  #finishes: Map<number, FinishReason> | undefined

  constructor(options: { readonly model: string; readonly createdSeconds: number; readonly includeUsage?: boolean }) {
    this.showsUsage = options.includeUsage === true
    this.#createdSeconds = options.createdSeconds
    this.#tail = this.showsUsage ? '}],"usage":null}\n\n' : '}]}\n\n'
    this.#modelJson = JSON.stringify(options.model)
  }

  /** Whether every choice that has begun is finished. */
  get hasTextEnded(): boolean {
    const finished = this.#finishes?.size ?? 0
    return finished > 0 && finished >= this.#openChoices.size
  }

  /** Returns the text written since the last call, or an empty string. */
  take(): string {
    const text = this.#text
    this.#text = ''
    return text
  }

  start(id: string): void {
    this.#head = `data: {"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${this.#createdSeconds},"model":${this.#modelJson},"choices":[{"index":`
    this.#open(0)
  }

  text(text: string, choice = 0, logprobs?: readonly unknown[]): void {
    if (text !== '') this.#content(choice, text, `{"content":${JSON.stringify(text)}}`, logprobs)
  }

  annotations(annotations: readonly ChatAnnotation[], choice = 0): void {
    this.#delta(choice, JSON.stringify({ annotations }))
  }

  refusal(text: string, choice = 0): void {
    if (text !== '') this.#content(choice, text, `{"refusal":${JSON.stringify(text)}}`)
  }

  reasoning(text: string, choice = 0): void {
    if (text !== '') this.#content(choice, text, `{"reasoning_content":${JSON.stringify(text)}}`)
  }

  thinkingBlock(block: ThinkingBlock, choice = 0): void {
    this.#delta(choice, JSON.stringify({ thinking_blocks: [block] }))
  }

  extraContent(extra: ExtraContent, choice = 0): void {
    this.#delta(choice, JSON.stringify({ extra_content: extra }))
  }

  toolCall(
    call: { index: number; id: string; name: string; extra?: ExtraContent; isCustom?: boolean },
    choice = 0,
  ): void {
    const [type, input] = call.isCustom === true ? ['custom', 'input'] : ['function', 'arguments']
    if (call.isCustom === true) this.#customCalls = new Set(this.#customCalls).add(call.index)
    const extra = call.extra === undefined ? '' : `,"extra_content":${JSON.stringify(call.extra)}`
    this.#content(
      choice,
      call.name,
      `{"tool_calls":[{"index":${call.index},"id":${JSON.stringify(call.id)},"type":"${type}","${type}":{"name":${JSON.stringify(call.name)},"${input}":""}${extra}}]}`,
    )
  }

  toolCallArguments(index: number, json: string, choice = 0): void {
    if (json === '') return
    const member = this.#customCalls?.has(index) === true ? '"custom":{"input"' : '"function":{"arguments"'
    this.#content(choice, json, `{"tool_calls":[{"index":${index},${member}:${JSON.stringify(json)}}}]}`)
  }

  finish(reason: FinishReason, choice = 0): void {
    this.#open(choice)
    this.hasContent = true
    this.#finishes ??= new Map()
    this.#finishes.set(choice, reason)
  }

  /** Ends the stream: the finish reasons, the usage chunk if the caller requested it, then the end mark. */
  done(usage: Usage | undefined, cost?: string): undefined {
    for (const [choice, reason] of this.#finishes ?? [])
      this.#text += `${this.#head}${choice},"delta":{},"logprobs":null,"finish_reason":"${reason}"${this.#tail}`
    if (usage !== undefined) {
      const head = this.#head.slice(0, this.#head.lastIndexOf('[{"index":'))
      this.#text += `${head}[],"usage":${JSON.stringify(cost === undefined ? chatUsage(usage) : { ...chatUsage(usage), cost })}}\n\n`
    }
    this.#text += SSE_DONE
  }

  #content(choice: number, text: string, deltaJson: string, logprobs?: readonly unknown[]): void {
    this.hasContent = true
    this.outputBytesSeen += Buffer.byteLength(text)
    this.#delta(choice, deltaJson, logprobs)
  }

  #delta(choice: number, deltaJson: string, logprobs?: readonly unknown[]): void {
    if (!this.#openChoices.has(choice)) this.#open(choice)
    const logprobsJson = logprobs === undefined ? 'null' : JSON.stringify({ content: logprobs, refusal: null })
    this.#text += `${this.#head}${choice},"delta":${deltaJson},"logprobs":${logprobsJson},"finish_reason":null${this.#tail}`
  }

  /** The first chunk of every choice carries the role; SDKs reject a stream without it. */
  #open(choice: number): void {
    if (this.#openChoices.has(choice)) return
    this.#openChoices.add(choice)
    this.#text += `${this.#head}${choice},"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null${this.#tail}`
  }
}

/** Chat at one vendor. All functions are pure: no I/O, clock, environment or logger. */
export interface ChatOperation {
  /**
   * @throws GatewayError `unsupported_parameter` naming the field if the vendor does not support it and it must not be
   *   dropped.
   */
  toWire(call: VendorCall<ChatRequest>): WireRequest
  /** Reads a complete 2xx answer. Returns `undefined` if it is malformed. */
  fromWire(
    answer: WireAnswer,
    call: VendorCall<ChatRequest>,
  ): { completion: ChatCompletion; usage: Usage | undefined } | undefined
  /**
   * Reads a complete 2xx answer that {@link fromWire} cannot use. Returns the reason and the usage that the vendor
   * reports, or `undefined` if the vendor's `errorFrom` gives the reason. If omitted, it always does.
   */
  brokenAnswer?(answer: WireAnswer, call: VendorCall<ChatRequest>): BrokenChat | undefined
  /** Returns the bytes of generated text in an answer that was cut. By default or if `undefined`, all count. */
  cutBytes?(chunks: readonly Uint8Array[], call: VendorCall<ChatRequest>): number | undefined
  /** Reads a streamed 2xx answer. */
  decoder(call: VendorCall<ChatRequest>, writer: ChatStreamWriter): ChatStreamDecoder
  /** Present if the vendor accepts the dialect itself. */
  readonly passThrough?: PassThrough<ChatRequest>
  /** `protocol` of all models, if the vendor has only one. If omitted, the rows of the models name it. */
  readonly protocol?: string
  /** Values of `protocol` that rows of its models may have. If omitted, they have none. */
  readonly protocols?: readonly string[]
  /** Whether the model reasons in this call without showing it. Default false. */
  hasHiddenReasoning?(call: VendorCall<ChatRequest>): boolean
  /** Billing fields of surcharges that never reach the vendor, because the translation drops their request fields. */
  readonly leavesOut?: ReadonlySet<string>
  /** Whether the vendor fetches images given as https URLs. Default true. If false, the gateway sends bytes. */
  takesImageUrls?(model: CatalogModel): boolean
  /** Whether the vendor fetches files of Responses given as https URLs. Default false: such a request is rejected. */
  takesFileUrls?(model: CatalogModel): boolean
  /** Whether the model reads the text of its reasoning in later turns. Default false. */
  replaysReasoning?(model: CatalogModel): boolean
  /** Maximum output tokens to request; higher bounds are lowered. No maximum by default or if `undefined`. */
  mostOutputTokens?(model: CatalogModel): number | undefined
  /** Returns which fields written by translations the model accepts. If omitted, all are sent. */
  abilities?(model: CatalogModel): ChatAbilities
  /** Whether `cache_control` of message parts and tools is supported and sent. Default false. */
  takesCacheControl?(model: CatalogModel): boolean
  /**
   * Whether `response_format` also works at models without structured output, through a tool or an instruction. If
   * omitted, the catalog entry of the model decides.
   */
  makesAnswerFormats?(model: CatalogModel): boolean
}

/**
 * Creates chat that another operation handles, chosen for each call.
 * @param common Parts that do not depend on the call.
 */
export function chatByCall(
  of: (call: VendorCall<ChatRequest>) => ChatOperation,
  common: Partial<ChatOperation>,
): ChatOperation {
  const hasHiddenReasoning = (call: VendorCall<ChatRequest>): boolean => of(call).hasHiddenReasoning?.(call) ?? false
  return {
    ...common,
    toWire: (call) => of(call).toWire(call),
    fromWire: (answer, call) => of(call).fromWire(answer, call),
    brokenAnswer: (answer, call) => of(call).brokenAnswer?.(answer, call),
    decoder: (call, writer) => of(call).decoder(call, writer),
    hasHiddenReasoning,
    passThrough: {
      applies: (call) => of(call).passThrough?.applies(call) === true,
      fromWire: (chunks, call) => of(call).passThrough?.fromWire(chunks, call),
      stream: (call) => of(call).passThrough!.stream!(call),
      hasHiddenReasoning,
    },
  }
}

/** A billed answer of a vendor that the gateway cannot pass on. */
export interface BrokenChat {
  readonly failure: VendorFailure
  /** Usage that the vendor reports, if any. */
  readonly usage: Usage | undefined
  /** Bytes of text that the model generated. Defaults to the bytes of the answer. */
  readonly outputBytes?: number
}

/** Part of a vendor that handles chat. */
export interface ChatOffer {
  readonly chat?: ChatOperation
}

/** Creates the chat operation of a vendor: pass-through if it accepts the caller's dialect, else translation. */
export function createChatOperation(chat: ChatOperation, call: VendorCall<ChatRequest>): Operation {
  const wire = chat.toWire(call)
  if (chat.passThrough?.applies(call) === true) return passThrough(wire, chat.passThrough, call)
  return new TranslatedChat([wire], chat, call)
}

/** Whether the model reasons invisibly. The row of the model takes precedence over the vendor. */
export function hasHiddenReasoning(chat: ChatOperation, call: VendorCall<ChatRequest>): boolean {
  return call.model.hasHiddenReasoning ?? chat.hasHiddenReasoning?.(call) ?? false
}

/**
 * Returns the request of a translated call. Reports reasoning text of the history that is neither read by the model nor
 * carried as vendor state.
 */
export function wireOfTranslation(chat: ChatOperation, call: VendorCall<ChatRequest>): WireRequest {
  const wire = chat.toWire(call)
  const isLost = chat.replaysReasoning?.(call.model) !== true && call.request.messages.some(hasLooseReasoning)
  const isForeign = call.request.messages.some((message) => carriesStateOfOthers(message, call.model.vendor))
  return isLost || isForeign ? { ...wire, dropped: [...wire.dropped, 'messages.reasoning_content'] } : wire
}

function hasLooseReasoning(message: ChatMessage): boolean {
  const { reasoning_content: text, thinking_blocks: blocks, extra_content: extra, tool_calls: calls } = message
  if (!text || blocks !== undefined || extra !== undefined) return false
  return calls?.every(({ extra_content: own }) => own === undefined) ?? true
}

function carriesStateOfOthers({ extra_content: extra, tool_calls: calls }: ChatMessage, vendor: string): boolean {
  const states = [extra?.server, ...(calls?.map((call) => call.extra_content?.server) ?? [])]
  return states.some((state) => state !== undefined && state.vendor !== vendor)
}

/** Returns the body of an answer that a vendor's translator cannot use, or `undefined` if it is unknown. */
export function brokenBody(
  chat: ChatOperation,
  answer: WireAnswer,
  call: VendorCall<ChatRequest>,
): AnswerBody | undefined {
  const broken = chat.brokenAnswer?.(answer, call)
  return broken && { chunks: [], ...broken }
}

class TranslatedChat implements Operation {
  readonly requests: readonly WireRequest[]
  readonly hasHiddenReasoning: boolean
  readonly #chat: ChatOperation
  readonly #call: VendorCall<ChatRequest>

  constructor(requests: readonly WireRequest[], chat: ChatOperation, call: VendorCall<ChatRequest>) {
    this.requests = requests
    this.hasHiddenReasoning = hasHiddenReasoning(chat, call)
    this.#chat = chat
    this.#call = call
  }

  whole([answer]: readonly ChunkedAnswer[]): AnswerBody | undefined {
    if (answer === undefined) return undefined
    const whole = { ...answer, body: joinChunks(answer.chunks) }
    const read = this.#chat.fromWire(whole, this.#call)
    if (read === undefined) return brokenBody(this.#chat, whole, this.#call)
    const { completion, usage } = read
    const outputBytes = completionTextBytes(completion)
    if (this.#call.billedUsage !== undefined) completion.usage = chatUsage(this.#call.billedUsage(usage, outputBytes))
    return jsonBody(completion, usage, outputBytes)
  }

  cutBytes(chunks: readonly Uint8Array[]): number | undefined {
    return this.#chat.cutBytes?.(chunks, this.#call)
  }

  stream(): StreamTransform {
    const call = this.#call
    const includeUsage = call.request.stream_options?.include_usage === true
    const writer = new ChatChunkWriter({
      model: call.publicModel,
      createdSeconds: Math.floor(call.nowMs / 1000),
      includeUsage,
    })
    return new TranslatedStream(this.#chat.decoder(call, writer), writer, call)
  }
}
