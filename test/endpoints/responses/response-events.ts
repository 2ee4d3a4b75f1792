import { expect } from 'vitest'

/** One event of a Responses stream. */
export interface ResponseEvent {
  readonly type: string
  readonly sequence_number: number
  readonly [member: string]: unknown
}

interface Item {
  readonly id: string
  readonly type: string
  readonly [member: string]: unknown
}

/** Returns the events of a stream. The name of each must be its type. */
export function responseEvents(text: string): ResponseEvent[] {
  return text
    .split('\n\n')
    .filter((event) => event !== '' && !event.startsWith(':'))
    .map((event) => {
      const [name, data] = event.split('\n')
      const read = JSON.parse(data!.replace(/^data: /, '')) as ResponseEvent
      expect(name).toBe(`event: ${read.type}`)
      return read
    })
    .filter(({ type }) => type !== 'keepalive')
}

const ENDS = ['response.completed', 'response.incomplete', 'response.failed']

/**
 * Checks the grammar of a stream: numbers without a gap, one response id, one item open at a time, each with its id and index,
 * deltas that add up, one terminal event, and a final output with the items that were done. Returns the final response.
 */
export function checkGrammar(events: readonly ResponseEvent[]): Record<string, unknown> {
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
  expect(events.slice(0, 2).map(({ type }) => type)).toEqual(['response.created', 'response.in_progress'])
  const last = events.at(-1)!
  expect(events.filter(({ type }) => ENDS.includes(type))).toEqual([last])
  const responses = events.flatMap((event) => ('response' in event ? [event['response'] as Item] : []))
  expect(new Set(responses.map(({ id }) => id)).size).toBe(1)
  const done: Item[] = []
  let open: { item: Item; texts: Map<string, string> } | undefined
  for (const event of events) {
    const { type, item, item_id: itemId, output_index: outputIndex } = event
    if (type === 'response.output_item.added') {
      expect(open).toBe(undefined)
      expect(outputIndex).toBe(done.length)
      open = { item: item as Item, texts: new Map() }
    } else if (type === 'response.output_item.done') {
      expect((item as Item).id).toBe(open?.item.id)
      expect(outputIndex).toBe(done.length)
      done.push(item as Item)
      open = undefined
    } else if (itemId !== undefined) {
      expect([itemId, outputIndex]).toEqual([open?.item.id, done.length])
      checkText(event, open!.texts)
    }
  }
  const response = last['response'] as Item
  expect(response['output']).toEqual(done)
  expect(new Set(done.map(({ id }) => id)).size).toBe(done.length)
  if (last.type !== 'response.failed') expect(open).toBe(undefined)
  return response
}

/** Adds a delta to its text, and compares the text with the one that is done. */
function checkText(event: ResponseEvent, texts: Map<string, string>): void {
  const stem = event.type.replace(/\.(delta|done)$/, '')
  const key = [stem, event['content_index'], event['summary_index']].join(' ')
  const { delta } = event
  if (event.type.endsWith('.delta')) texts.set(key, (texts.get(key) ?? '') + String(delta))
  else if (event.type.endsWith('.done') && !stem.endsWith('part')) {
    const whole = event['text'] ?? event['refusal'] ?? event['arguments'] ?? event['input']
    expect(texts.get(key)).toBe(whole)
  }
}
