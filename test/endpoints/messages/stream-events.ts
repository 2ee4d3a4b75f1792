import { sseReader } from '../../../src/wire/sse.ts'

/** The data of one event of a Messages stream. */
export type StreamEvent = Readonly<Record<string, unknown>> & { readonly type: string }

/** A content block put together from its events; `json` holds the joined input of a tool use. */
export type StreamedBlock = Record<string, unknown> & { type: string }

/** The events of a text, each checked to be named as its data says: clients pass over events without a name. */
export function eventsOf(text: string | Uint8Array): StreamEvent[] {
  const events: StreamEvent[] = []
  const reader = sseReader(({ event, data }) => {
    const value = JSON.parse(data) as StreamEvent
    if (event !== value.type) throw new Error(`the event ${event} holds ${data}`)
    events.push(value)
  })
  reader.push(typeof text === 'string' ? new TextEncoder().encode(text) : text)
  reader.end()
  return events
}

const DELTA_FIELDS: Readonly<Record<string, readonly [block: string, delta: string, member: string]>> = {
  text_delta: ['text', 'text', 'text'],
  thinking_delta: ['thinking', 'thinking', 'thinking'],
  signature_delta: ['thinking', 'signature', 'signature'],
  input_json_delta: ['tool_use', 'partial_json', 'json'],
}

/**
 * Puts a stream together as strict clients do.
 * @throws Error when the order of events is not the documented one.
 */
export function blocksOfStream(events: readonly StreamEvent[]): { blocks: StreamedBlock[]; stopReason: unknown } {
  const [first, ...rest] = events.filter(({ type }) => type !== 'ping')
  const stop = rest.pop()
  const delta = rest.pop()
  if (first?.type !== 'message_start') throw new Error('the first event is not message_start')
  if (delta?.type !== 'message_delta' || stop?.type !== 'message_stop') throw new Error('the end is missing')
  const blocks: StreamedBlock[] = []
  let open: StreamedBlock | undefined
  for (const event of rest) {
    if (event.type === 'content_block_start') {
      if (open !== undefined) throw new Error('two blocks are open')
      if (event['index'] !== blocks.length) throw new Error(`index ${event['index']} instead of ${blocks.length}`)
      const { input: _input, ...start } = event['content_block'] as StreamedBlock
      open = start.type === 'tool_use' ? { ...start, json: '' } : { ...start }
      blocks.push(open)
    } else if (open === undefined || event['index'] !== blocks.length - 1) {
      throw new Error(`no open block for ${JSON.stringify(event)}`)
    } else if (event.type === 'content_block_delta') addDelta(open, event['delta'] as Record<string, unknown>)
    else if (event.type === 'content_block_stop') open = undefined
    else throw new Error(`unexpected event ${event.type}`)
  }
  if (open !== undefined) throw new Error('a block was not closed')
  return { blocks, stopReason: (delta['delta'] as Record<string, unknown>)['stop_reason'] }
}

function addDelta(block: StreamedBlock, delta: Record<string, unknown>): void {
  const [kind, from, to] = DELTA_FIELDS[String(delta['type'])] ?? []
  if (kind !== block.type || from === undefined || to === undefined)
    throw new Error(`a ${String(delta['type'])} in a ${block.type} block`)
  block[to] = String(block[to]) + String(delta[from])
}
