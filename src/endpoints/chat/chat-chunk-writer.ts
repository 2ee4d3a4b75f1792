import { Buffer } from 'node:buffer'
import type { Usage } from '../../core/usage.ts'
import { SSE_DONE } from '../../wire/sse.ts'
import type { VendorCall } from '../operation.ts'
import { type ChatAnnotation, chatUsage, type FinishReason } from './chat-completion.ts'
import type { ExtraContent, ThinkingBlock } from './chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from './chat-stream-writer.ts'
import { TranslatedStream } from './translated-stream.ts'

/**
 * Writes neutral chat events as OpenAI chunks (OpenAI API, "The chat completion chunk object"). The text is concatenated around the
 * few values that change, because building and stringifying an object per event costs three times as much.
 */
export class ChatChunkWriter implements ChatStreamWriter {
  /** Whether the written output contains something that a caller keeps. */
  hasContent = false
  /** Bytes of text, reasoning and arguments of tool calls so far. */
  outputBytesSeen = 0
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
    this.#createdSeconds = options.createdSeconds
    this.#tail = options.includeUsage === true ? '}],"usage":null}\n\n' : '}]}\n\n'
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
  done(usage: Usage | undefined, cost?: string): void {
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

/** Joins a vendor's decoder and OpenAI's chunk writer into a stream of bytes for a chat caller. */
export class TranslatedChatStream extends TranslatedStream {
  readonly #chunks: ChatChunkWriter
  readonly #includeUsage: boolean
  readonly #costOf: ((usage: Usage) => string | undefined) | undefined
  readonly #billedUsage: VendorCall<object>['billedUsage']

  constructor(options: {
    readonly decoder: ChatStreamDecoder
    readonly writer: ChatChunkWriter
    readonly includeUsage: boolean
    /** Returns the cost of a usage in decimal dollars. */
    readonly costOf?: ((usage: Usage) => string | undefined) | undefined
    readonly billedUsage?: VendorCall<object>['billedUsage']
  }) {
    super(options.decoder, options.writer)
    this.#chunks = options.writer
    this.#includeUsage = options.includeUsage
    this.#costOf = options.costOf
    this.#billedUsage = options.billedUsage
  }

  protected override take(): string {
    return this.#chunks.take()
  }

  protected override finish(): void {
    const usage = this.#includeUsage ? this.#usage() : undefined
    this.#chunks.done(usage, usage === undefined ? undefined : this.#costOf?.(usage))
  }

  #usage(): Usage | undefined {
    const reported = this.decoder.usage
    return this.#billedUsage === undefined ? reported : this.#billedUsage(reported, this.outputBytesSeen)
  }
}
