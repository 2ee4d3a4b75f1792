import { isJsonObject } from '../../core/json.ts'
import type { ChatStreamWriter } from '../../endpoints/chat/chat-stream-writer.ts'
import { type MessagesUsage, readMessagesUsage } from './messages-usage.ts'

/** A content block whose end has not been read. */
export type OpenBlock =
  | { readonly kind: 'text' }
  /** `answer` blocks are tool uses whose input is the JSON answer. `startInput` is the input given at the start. */
  | { readonly kind: 'answer'; readonly startInput: unknown; hasJson: boolean }
  | { readonly kind: 'tool'; readonly toolIndex: number; readonly startInput: unknown; hasJson: boolean }
  | { readonly kind: 'thinking'; thinking: string; signature: string }
  /** Blocks that a chat answer has no place for. */
  | { readonly kind: 'other' }

/** What is known of a stream so far; the reducers of the events read and write it. */
export interface StreamState {
  readonly writer: ChatStreamWriter
  /** The tool whose input is the answer, when the request wants JSON. */
  readonly answerTool: string | undefined
  readonly blocks: Map<unknown, OpenBlock>
  /** Tool calls opened so far; also the index of the next one, because callers count tool calls and not blocks. */
  toolCount: number
  usage: MessagesUsage
  stopReason: unknown
  refusal: string | undefined
  hasStarted: boolean
  isComplete: boolean
}

/** The state before the first event. */
export function newStreamState(writer: ChatStreamWriter, answerTool: string | undefined): StreamState {
  return {
    writer,
    answerTool,
    blocks: new Map(),
    toolCount: 0,
    usage: readMessagesUsage(undefined),
    stopReason: undefined,
    refusal: undefined,
    hasStarted: false,
    isComplete: false,
  }
}

/** Opens the answer unless it is open. */
export function openAnswer(state: StreamState, id: string): void {
  if (state.hasStarted) return
  state.hasStarted = true
  state.writer.start(id)
}

/** Ends a block: gives out what could not be given before all of it was known. */
export function closeBlock(state: StreamState, index: unknown): void {
  const block = state.blocks.get(index)
  if (block === undefined) return
  state.blocks.delete(index)
  if (block.kind === 'tool' && !block.hasJson) {
    state.writer.toolCallArguments(block.toolIndex, inputJson(block.startInput))
  }
  if (block.kind === 'answer' && !block.hasJson) state.writer.text(inputJson(block.startInput))
  if (block.kind === 'thinking' && block.signature !== '') {
    state.writer.thinkingBlock({ type: 'thinking', thinking: block.thinking, signature: block.signature })
  }
}

/** Ends all blocks that are open. */
export function closeAllBlocks(state: StreamState): void {
  for (const index of [...state.blocks.keys()]) closeBlock(state, index)
}

// The start carries an empty object, and a tool without arguments sends nothing more.
function inputJson(startInput: unknown): string {
  return isJsonObject(startInput) ? JSON.stringify(startInput) : '{}'
}
