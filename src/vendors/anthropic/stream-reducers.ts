import { isJsonObject } from '../../core/json.ts'
import { latestUsage, readMessagesUsage } from './messages-usage.ts'
import { finishReason, refusalText } from './stop-reason.ts'
import { closeAllBlocks, closeBlock, type OpenBlock, openAnswer, type StreamState } from './stream-state.ts'

/** An event of the vendor's, parsed. */
export type MessagesEvent = Readonly<Record<string, unknown>>

type Reducer = (state: StreamState, event: MessagesEvent) => void

function onMessageStart(state: StreamState, event: MessagesEvent): void {
  const message = asObject(event['message'])
  state.usage = latestUsage(state.usage, readMessagesUsage(message['usage']))
  openAnswer(state, typeof message['id'] === 'string' ? message['id'] : '')
}

function onBlockStart(state: StreamState, event: MessagesEvent): void {
  const index = event['index']
  const start = asObject(event['content_block'])
  // An index that comes again begins another block.
  closeBlock(state, index)
  openAnswer(state, '')
  state.blocks.set(index, openedBlock(state, start))
}

function openedBlock(state: StreamState, start: MessagesEvent): OpenBlock {
  const { type, text, thinking, signature, data, id, name, input } = start
  if (type === 'text') {
    if (typeof text === 'string' && text !== '') state.writer.text(text)
    return { kind: 'text' }
  }
  if (type === 'thinking') {
    if (typeof thinking === 'string' && thinking !== '') state.writer.reasoning(thinking)
    return { kind: 'thinking', thinking: asText(thinking), signature: asText(signature) }
  }
  if (type === 'redacted_thinking' && typeof data === 'string') {
    state.writer.thinkingBlock({ type: 'redacted_thinking', data })
    return { kind: 'other' }
  }
  if (type !== 'tool_use' || typeof name !== 'string') return { kind: 'other' }
  if (name === state.answerTool) return { kind: 'answer', startInput: input, hasJson: false }
  const toolIndex = state.toolCount++
  state.writer.toolCall({ index: toolIndex, id: asText(id), name })
  return { kind: 'tool', toolIndex, startInput: input, hasJson: false }
}

function onBlockDelta(state: StreamState, event: MessagesEvent): void {
  const delta = asObject(event['delta'])
  const block = state.blocks.get(event['index'])
  openAnswer(state, '')
  if (delta['type'] === 'text_delta') state.writer.text(asText(delta['text']))
  if (delta['type'] === 'input_json_delta') addInputJson(state, block, asText(delta['partial_json']))
  if (delta['type'] === 'thinking_delta') {
    const thinking = asText(delta['thinking'])
    if (thinking !== '') state.writer.reasoning(thinking)
    if (block?.kind === 'thinking') block.thinking += thinking
  }
  if (delta['type'] === 'signature_delta' && block?.kind === 'thinking') block.signature += asText(delta['signature'])
}

function addInputJson(state: StreamState, block: OpenBlock | undefined, json: string): void {
  if (json === '' || (block?.kind !== 'tool' && block?.kind !== 'answer')) return
  block.hasJson = true
  if (block.kind === 'tool') state.writer.toolCallArguments(block.toolIndex, json)
  else state.writer.text(json)
}

function onBlockStop(state: StreamState, event: MessagesEvent): void {
  closeBlock(state, event['index'])
}

function onMessageDelta(state: StreamState, event: MessagesEvent): void {
  const delta = asObject(event['delta'])
  state.usage = latestUsage(state.usage, readMessagesUsage(event['usage']))
  state.stopReason = delta['stop_reason'] ?? state.stopReason
  state.refusal = refusalText(delta['stop_details']) ?? state.refusal
}

// The reason is given at the very end: several message_delta events may come, and the last one counts.
function onMessageStop(state: StreamState): void {
  openAnswer(state, '')
  closeAllBlocks(state)
  if (state.refusal !== undefined) state.writer.refusal(state.refusal)
  state.writer.finish(finishReason(state.stopReason, state.toolCount > 0))
  state.isComplete = true
}

/** What each event does. Others, `ping` among them, are passed over, as the vendor asks of its readers. */
const REDUCERS: ReadonlyMap<unknown, Reducer> = new Map([
  ['message_start', onMessageStart],
  ['content_block_start', onBlockStart],
  ['content_block_delta', onBlockDelta],
  ['content_block_stop', onBlockStop],
  ['message_delta', onMessageDelta],
  ['message_stop', onMessageStop],
])

/** Takes one event into the state and tells the writer what came with it. */
export function reduceEvent(state: StreamState, event: MessagesEvent): void {
  REDUCERS.get(event['type'])?.(state, event)
}

function asObject(value: unknown): MessagesEvent {
  return isJsonObject(value) ? value : {}
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
