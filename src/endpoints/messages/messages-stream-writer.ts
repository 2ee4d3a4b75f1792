import { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import { parseExactJson } from '../../core/exact-json.ts'
import { assertPlainJson, isJsonObject, MAX_JSON_DEPTH } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { sseEvent } from '../../wire/sse.ts'
import type { FinishReason } from '../chat/chat-completion.ts'
import type { ExtraContent, ThinkingBlock } from '../chat/chat-request.ts'
import { type AnswerEnd, type AnswerWriter, JsonTextEnd } from '../chat/chat-stream-writer.ts'
import type { VendorCall } from '../operation.ts'
import { type ContentBlock, carriedSignature } from './messages-request.ts'

/** Nesting levels above the input of a tool use: the body, its messages, a message, its content, the block. */
const LEVELS_ABOVE_INPUT = 5

/** A whole answer of a Messages route. */
export interface Message {
  id: string
  type: 'message'
  role: 'assistant'
  model: string
  content: ContentBlock[]
  stop_reason: StopReason | null
  stop_sequence: null
  usage: MessageUsage
}

/** The parts of a message other than its content. */
export interface MessageFacts {
  /** Model id that the caller reads. */
  readonly model: string
  /** Whether to show reasoning. Callers that did not request it would read the first block as the answer. */
  readonly showsThinking: boolean
  /** Unix milliseconds at which the call began. */
  readonly nowMs: number
  /** Whether to write a whole message instead of events. Default false. */
  readonly isWhole?: boolean
  readonly billedUsage?: VendorCall<object>['billedUsage']
}

/**
 * Writes neutral chat events as the events of a Messages stream (Anthropic, "Streaming messages"). The dialect has one
 * answer per request. A finish takes effect at the end, because some vendors send one before their content.
 */
export class MessagesStreamWriter implements AnswerWriter {
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
  readonly #whole: WholeMessage | undefined

  constructor(facts: MessageFacts) {
    this.#facts = facts
    this.#whole = facts.isWhole === true ? new WholeMessage() : undefined
    this.#blocks = new BlockSequence((type, members) => this.#event(type, members))
  }

  /** Whether the answer has its finish reason. */
  get hasTextEnded(): boolean {
    return this.#finish !== undefined
  }

  /** Returns the text written since the last call, or an empty string. The first event contains the prompt usage known by then. */
  take(usage: Usage | undefined): string {
    const text = this.#text
    this.#text = ''
    if (this.#hasBegun || this.#vendorId === undefined) return text
    this.#hasBegun = true
    const { billedUsage } = this.#facts
    const known = usage === undefined || billedUsage === undefined ? usage : billedUsage(usage, 0)
    const message = this.#begun(this.#vendorId, known)
    return sseEvent('message_start', JSON.stringify({ type: 'message_start', message })) + text
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
  done(usage: Usage | undefined): AnswerEnd | undefined {
    if (this.#finish === undefined) this.finish('stop')
    this.#blocks.finish()
    const reason = stopReason(this.#finish ?? 'stop', this.#blocks.hasTools)
    const delta = { stop_reason: reason, stop_sequence: null }
    this.#event('message_delta', { delta, usage: messageUsage(usage) })
    this.#event('message_stop', {})
    return this.#whole && { response: { ...this.#begun(this.#vendorId ?? ''), ...this.#whole.members } }
  }

  #takes(choice: number, text = ''): boolean {
    if (choice !== 0) return false
    this.#vendorId ??= ''
    this.hasContent = true
    this.outputBytesSeen += Buffer.byteLength(text)
    return true
  }

  /** Returns the message before its content, with the usage of the prompt. */
  #begun(vendorId: string, usage: Usage = {}): Message {
    // Some clients add the output reported here to the output reported at the end.
    const { outputTokens: _output, reasoningTokens: _reasoning, ...prompt } = usage
    return {
      id: messageId(vendorId, this.#facts.nowMs),
      type: 'message',
      role: 'assistant',
      model: this.#facts.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: messageUsage(prompt),
    }
  }

  #event(type: string, members: Record<string, unknown>): void {
    if (this.#whole === undefined) this.#text += sseEvent(type, JSON.stringify({ type, ...members }))
    else this.#whole.add(type, members)
  }
}

/** Puts a message together from its events, as clients do. */
class WholeMessage {
  /** The members that the events have set so far. */
  readonly members: { content: ContentBlock[]; [member: string]: unknown } = { content: [] }
  #json = ''

  add(type: string, members: Record<string, unknown>): void {
    const { content_block: block, delta } = members as { content_block?: ContentBlock; delta?: Record<string, unknown> }
    if (type === 'content_block_start') this.members.content.push({ ...block! })
    else if (type === 'content_block_delta') this.#addDelta(delta!)
    else if (type === 'content_block_stop') this.#closeBlock()
    else if (type === 'message_delta') Object.assign(this.members, delta, { usage: members['usage'] })
  }

  #addDelta({ type: _type, partial_json: json = '', ...texts }: Record<string, unknown>): void {
    const block = this.members.content.at(-1)!
    this.#json += String(json)
    for (const name of Object.keys(texts)) block[name] = `${String(block[name])}${String(texts[name])}`
  }

  #closeBlock(): void {
    const block = this.members.content.at(-1)!
    if (block.type === 'tool_use') block['input'] = toolInput(this.#json)
    this.#json = ''
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

/**
 * Returns the input of a tool use, which must be an object. Other arguments are kept as `{ arguments: text }`, as are
 * arguments that the gateway would reject in the next request: nested too deep, or with a member `__proto__`.
 */
function toolInput(json: string): Record<string, unknown> {
  if (json.trim() === '') return {}
  const input = parseExactJson(json)
  return isJsonObject(input) && isPlain(input) ? input : { arguments: json }
}

function isPlain(value: unknown): boolean {
  try {
    assertPlainJson(value, MAX_JSON_DEPTH - LEVELS_ABOVE_INPUT)
    return true
  } catch (error) {
    if (GatewayError.isInstance(error)) return false
    throw error
  }
}

/** Usage in the Messages dialect: `input_tokens` excludes tokens read from or written to a cache. */
export interface MessageUsage {
  input_tokens: number
  cache_creation_input_tokens: number
  cache_read_input_tokens: number
  output_tokens: number
  output_tokens_details?: { thinking_tokens: number }
}

/**
 * Writes usage as Messages callers read it (Anthropic, "Prompt caching", usage). All counts are present, because
 * clients read them unchecked. Counts that the vendor did not report are 0.
 */
export function messageUsage(usage: Usage | undefined): MessageUsage {
  const cached = usage?.cachedInputTokens ?? 0
  const written = usage?.cacheWriteTokens ?? 0
  return {
    input_tokens: Math.max(0, (usage?.inputTokens ?? 0) - cached - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: cached,
    output_tokens: usage?.outputTokens ?? 0,
    ...(usage?.reasoningTokens === undefined
      ? {}
      : { output_tokens_details: { thinking_tokens: usage.reasoningTokens } }),
  }
}

/** Why a message ended, limited to reasons that other vendors report (Anthropic, "Handling stop reasons"). */
export type StopReason = 'end_turn' | 'max_tokens' | 'tool_use' | 'refusal'

/** Maps a finish reason. A JSON response with tool calls always ends with `tool_use`, because agents only react to that. */
export function stopReason(reason: FinishReason, hasToolCalls: boolean): StopReason {
  if (reason === 'length') return 'max_tokens'
  if (reason === 'content_filter') return 'refusal'
  return hasToolCalls ? 'tool_use' : 'end_turn'
}

const FOREIGN_CHARACTERS = /[^\w-]/g

/** Returns the id of a message, based on the vendor's id, or on the time if there is none. */
export function messageId(vendorId: string, nowMs: number): string {
  const id = vendorId.replace(FOREIGN_CHARACTERS, '').slice(0, 100) || nowMs.toString(36)
  return id.startsWith('msg_') ? id : `msg_${id}`
}
