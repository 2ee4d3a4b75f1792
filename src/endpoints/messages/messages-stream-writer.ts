import { Buffer } from 'node:buffer'
import type { Usage } from '../../core/usage.ts'
import { sseEvent } from '../../wire/sse.ts'
import type { FinishReason } from '../chat/chat-completion.ts'
import { TranslatedStream } from '../chat/chat-operation.ts'
import type { ExtraContent, ThinkingBlock } from '../chat/chat-request.ts'
import { type ChatStreamDecoder, type ChatStreamWriter, JsonTextEnd } from '../chat/chat-stream-writer.ts'
import type { VendorCall } from '../operation.ts'
import { type MessageFacts, messageId, messageUsage, stopReason } from './message-from-completion.ts'
import { carriedSignature } from './messages-request.ts'

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

interface TextBlock {
  readonly kind: 'text'
  text: string
}

interface OpenThinkingBlock {
  readonly kind: 'thinking'
  text: string
  /** Undefined until the block is signed, after which no text may follow. */
  signature: string | undefined
}

interface RedactedBlock {
  readonly kind: 'redacted'
  readonly data: string
}

interface ToolBlock {
  readonly kind: 'tool'
  readonly id: string
  readonly name: string
  /** JSON text that waits to be sent. */
  json: string
  readonly end: JsonTextEnd
}

type Block = TextBlock | OpenThinkingBlock | RedactedBlock | ToolBlock

/** Receives the events in order: their type, and the other members of their data. */
export type EmitEvent = (type: string, members: Record<string, unknown>) => void

/**
 * Writes the content of an answer as the blocks of a Messages stream (Anthropic, "Streaming messages", event flow). It
 * guarantees: indexes count from 0 without a gap, one block is open at a time, each start has its stop, and a delta fits
 * the open block. A block is opened only when it has content.
 *
 * Other vendors interleave content that belongs to separate blocks: chunks of several tool calls, or text before a call's
 * arguments are complete. The open call is written as it arrives; everything else waits until its arguments are complete.
 */
class BlockSequence {
  readonly #emit: EmitEvent
  #open: Block | undefined
  #openIndex = -1
  readonly #waiting: Block[] = []
  readonly #tools = new Map<number, ToolBlock>()

  constructor(emit: EmitEvent) {
    this.#emit = emit
  }

  get hasTools(): boolean {
    return this.#tools.size > 0
  }

  text(text: string): void {
    const last = this.#last
    if (last?.kind !== 'text') this.#add({ kind: 'text', text })
    else if (last === this.#open) this.#delta({ type: 'text_delta', text })
    else last.text += text
  }

  thinking(text: string): void {
    const last = this.#last
    if (last?.kind !== 'thinking' || last.signature !== undefined)
      this.#add({ kind: 'thinking', text, signature: undefined })
    else if (last === this.#open) this.#delta({ type: 'thinking_delta', thinking: text })
    else last.text += text
  }

  /** Signs the last thinking block; without one, writes a separate block with `text`. */
  sign(signature: string, text = ''): void {
    const last = this.#last
    if (last?.kind === 'thinking' && last.signature === undefined) last.signature = signature
    else this.#add({ kind: 'thinking', text, signature })
  }

  redacted(data: string): void {
    this.#add({ kind: 'redacted', data })
  }

  /** Opens a tool call; a number that was opened before is ignored. */
  tool(call: { readonly number: number; readonly id: string; readonly name: string }): void {
    if (this.#tools.has(call.number)) return
    const block: ToolBlock = { kind: 'tool', id: call.id, name: call.name, json: '', end: new JsonTextEnd() }
    this.#tools.set(call.number, block)
    this.#add(block)
  }

  /** A chunk of a call's arguments. Text after complete arguments is ignored. */
  toolJson(number: number, json: string): void {
    const block = this.#tools.get(number)
    if (block === undefined || block.end.isWhole) return
    block.end.push(json)
    if (block !== this.#open) {
      block.json += json
      return
    }
    this.#delta({ type: 'input_json_delta', partial_json: json })
    this.#advance()
  }

  /** Writes waiting output and closes the last block. */
  finish(): void {
    for (const block of this.#waiting.splice(0)) this.#start(block)
    this.#close()
  }

  get #last(): Block | undefined {
    return this.#waiting.at(-1) ?? this.#open
  }

  get #mayFollow(): boolean {
    return this.#open?.kind !== 'tool' || this.#open.end.isWhole
  }

  #add(block: Block): void {
    this.#waiting.push(block)
    this.#advance()
  }

  #advance(): void {
    while (this.#waiting.length > 0 && this.#mayFollow) this.#start(this.#waiting.shift()!)
  }

  #start(block: Block): void {
    this.#close()
    this.#open = block
    this.#openIndex += 1
    this.#emit('content_block_start', { index: this.#openIndex, content_block: emptyBlock(block) })
    if (block.kind === 'text') this.#delta({ type: 'text_delta', text: block.text })
    else if (block.kind === 'thinking' && block.text !== '')
      this.#delta({ type: 'thinking_delta', thinking: block.text })
    else if (block.kind === 'tool' && block.json !== '')
      this.#delta({ type: 'input_json_delta', partial_json: block.json })
  }

  #close(): void {
    const block = this.#open
    if (block === undefined) return
    if (block.kind === 'thinking')
      this.#delta({ type: 'signature_delta', signature: block.signature ?? carriedSignature() })
    this.#emit('content_block_stop', { index: this.#openIndex })
    this.#open = undefined
  }

  #delta(delta: Record<string, unknown>): void {
    this.#emit('content_block_delta', { index: this.#openIndex, delta })
  }
}

function emptyBlock(block: Block): Record<string, unknown> {
  switch (block.kind) {
    case 'text':
      return { type: 'text', text: '' }
    case 'thinking':
      return { type: 'thinking', thinking: '', signature: '' }
    case 'redacted':
      return { type: 'redacted_thinking', data: block.data }
    case 'tool':
      return { type: 'tool_use', id: block.id, name: block.name, input: {} }
  }
}
