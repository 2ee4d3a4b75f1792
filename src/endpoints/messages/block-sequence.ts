import { JsonTextEnd } from '../chat/json-text-end.ts'
import { carriedSignature } from './carried-state.ts'

interface TextBlock {
  readonly kind: 'text'
  text: string
}

interface ThinkingBlock {
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

type Block = TextBlock | ThinkingBlock | RedactedBlock | ToolBlock

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
export class BlockSequence {
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
