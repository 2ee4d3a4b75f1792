import { Buffer } from 'node:buffer'
import type { Usage } from '../../core/usage.ts'
import { sseEvent } from '../../wire/sse.ts'
import type { FinishReason } from '../chat/chat-completion.ts'
import type { ExtraContent, ThinkingBlock } from '../chat/chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from '../chat/chat-stream-writer.ts'
import { TranslatedStream } from '../chat/translated-stream.ts'
import type { VendorCall } from '../operation.ts'
import { BlockSequence } from './block-sequence.ts'
import { carriedSignature } from './carried-state.ts'
import { type MessageFacts, messageId, messageUsage, stopReason } from './message-from-completion.ts'

/**
 * Writes neutral chat events as the events of a Messages stream (Anthropic, "Streaming messages"). The dialect has one
 * answer per request. A finish takes effect at the end, because some vendors send one before their content.
 */
export class MessagesStreamWriter implements ChatStreamWriter {
  /** Whether the written output contains something that a caller keeps. */
  hasContent = false
  /** Bytes of text, reasoning and arguments of tool calls so far, including those that are not shown. */
  outputBytesSeen = 0
  readonly #facts: MessageFacts
  readonly #blocks: BlockSequence
  #vendorId: string | undefined
  #hasBegun = false
  #finish: FinishReason | undefined
  #text = ''

  constructor(facts: MessageFacts) {
    this.#facts = facts
    this.#blocks = new BlockSequence((type, members) => this.#event(type, members))
  }

  /** Whether the answer has its finish reason. */
  get hasTextEnded(): boolean {
    return this.#finish !== undefined
  }

  /** Returns the text written since the last call, or an empty string. The first event contains the prompt usage known by then. */
  take(usage: Usage | undefined, billedUsage?: VendorCall<object>['billedUsage']): string {
    const text = this.#text
    this.#text = ''
    if (this.#hasBegun || this.#vendorId === undefined) return text
    this.#hasBegun = true
    const known = usage === undefined || billedUsage === undefined ? usage : billedUsage(usage, 0)
    return this.#messageStart(this.#vendorId, known) + text
  }

  start(id: string): void {
    this.#vendorId ??= id
  }

  text(text: string, choice = 0): void {
    if (text !== '' && this.#takes(choice, text)) this.#blocks.text(text)
  }

  refusal(text: string, choice = 0): void {
    this.text(text, choice)
  }

  reasoning(text: string, choice = 0): void {
    if (text === '' || choice !== 0) return
    if (!this.#facts.showsThinking) this.outputBytesSeen += Buffer.byteLength(text)
    else if (this.#takes(choice, text)) this.#blocks.thinking(text)
  }

  thinkingBlock(block: ThinkingBlock, choice = 0): void {
    if (!this.#takes(choice)) return
    if (block.type === 'redacted_thinking') this.#blocks.redacted(block.data)
    else this.#blocks.sign(block.signature, block.thinking)
  }

  /**
   * Signs a block with the state of a server. Other state is ignored: it follows the text, where another block would
   * look like the answer, and its vendors require only the state of calls.
   */
  extraContent(extra: ExtraContent, choice = 0): void {
    const isDue = extra.server !== undefined && (this.#facts.showsThinking || this.#blocks.hasTools)
    if (isDue && this.#takes(choice)) this.#blocks.sign(carriedSignature(extra))
  }

  toolCall(call: { index: number; id: string; name: string; extra?: ExtraContent }, choice = 0): void {
    if (!this.#takes(choice, call.name)) return
    if (call.extra !== undefined) this.#blocks.sign(carriedSignature(call.extra))
    this.#blocks.tool({ number: call.index, id: call.id, name: call.name })
  }

  toolCallArguments(index: number, json: string, choice = 0): void {
    if (json !== '' && this.#takes(choice, json)) this.#blocks.toolJson(index, json)
  }

  finish(reason: FinishReason, choice = 0): void {
    if (this.#takes(choice)) this.#finish = reason
  }

  /** Ends the stream. Usage follows the last block, because vendors report it last. */
  done(usage: Usage | undefined): void {
    if (this.#finish === undefined) this.finish('stop')
    this.#blocks.finish()
    const reason = stopReason(this.#finish ?? 'stop', this.#blocks.hasTools)
    const delta = { stop_reason: reason, stop_sequence: null }
    this.#event('message_delta', { delta, usage: messageUsage(usage) })
    this.#event('message_stop', {})
  }

  #takes(choice: number, text = ''): boolean {
    if (choice !== 0) return false
    this.#vendorId ??= ''
    this.hasContent = true
    this.outputBytesSeen += Buffer.byteLength(text)
    return true
  }

  #messageStart(vendorId: string, usage: Usage = {}): string {
    // Some clients add the output reported here to the output reported at the end.
    const { outputTokens: _output, reasoningTokens: _reasoning, ...prompt } = usage
    const message = {
      id: messageId(vendorId, this.#facts.nowMs),
      type: 'message',
      role: 'assistant',
      model: this.#facts.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: messageUsage(prompt),
    }
    return sseEvent('message_start', JSON.stringify({ type: 'message_start', message }))
  }

  #event(type: string, members: Record<string, unknown>): void {
    this.#text += sseEvent(type, JSON.stringify({ type, ...members }))
  }
}

/** Joins a vendor's chat decoder and the writer of Messages events into a stream of bytes for the caller. */
export class TranslatedMessagesStream extends TranslatedStream {
  readonly #events: MessagesStreamWriter
  readonly #billedUsage: VendorCall<object>['billedUsage']

  constructor(
    decoder: ChatStreamDecoder,
    writer: MessagesStreamWriter,
    billedUsage?: VendorCall<object>['billedUsage'],
  ) {
    super(decoder, writer)
    this.#events = writer
    this.#billedUsage = billedUsage
  }

  protected override take(): string {
    const { usage } = this.decoder
    return this.#events.take(usage, this.#billedUsage)
  }

  protected override finish(): void {
    const { usage } = this.decoder
    this.#events.done(this.#billedUsage === undefined ? usage : this.#billedUsage(usage, this.outputBytesSeen))
  }
}
