import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  OversizeEventError,
  type ServerSentEvent,
  SSE_COMMENT,
  SSE_DONE,
  sseData,
  sseEvent,
  sseReader,
} from '../../src/wire/sse.ts'
import { CUTS, cutBytes } from '../support/feed-stream.ts'

function read(chunks: readonly Uint8Array[], maxEventBytes?: number): ServerSentEvent[] {
  const events: ServerSentEvent[] = []
  const reader = sseReader((event) => events.push(event), maxEventBytes)
  for (const chunk of chunks) reader.push(chunk)
  reader.end()
  return events
}

const STREAM = [
  '\uFEFFevent: greeting',
  'id: 7',
  'retry: 100',
  'data: Grüße aus 東京 🚀',
  '',
  ': a comment',
  '',
  'data: {"line":',
  'data: 2}',
  '',
  'data:without a space',
  '',
  'data: [DONE]',
  '',
  '',
].join('\n')

const EVENTS: ServerSentEvent[] = [
  { event: 'greeting', data: 'Grüße aus 東京 🚀' },
  { event: undefined, data: '{"line":\n2}' },
  { event: undefined, data: 'without a space' },
  { event: undefined, data: '[DONE]' },
]

describe.each(['\n', '\r\n', '\r'])('events with the line end %j', (lineEnd) => {
  test.each(CUTS)('are read whole however the bytes are cut: %s', (cut) => {
    const bytes = Buffer.from(STREAM.replaceAll('\n', lineEnd))

    expect(read(cutBytes(bytes, cut))).toEqual(EVENTS)
  })
})

test('a last event without its blank line is reported at the end', () => {
  expect(read([Buffer.from('data: one\n\ndata: two')])).toEqual([
    { event: undefined, data: 'one' },
    { event: undefined, data: 'two' },
  ])
})

describe('the cap of one event', () => {
  test('is an error that names the cap', () => {
    const endless = Array.from({ length: 20 }, () => Buffer.alloc(100, 'x'))

    expect(() => read([Buffer.from('data: '), ...endless], 1000)).toThrow(OversizeEventError)
    expect(() => read([Buffer.from('data: '), ...endless], 1000)).toThrow('exceeds 1000 bytes')
  })

  test('counts each event by itself', () => {
    const event = Buffer.from(`data: ${'x'.repeat(900)}\n\n`)

    expect(read([event, event, event], 1000)).toHaveLength(3)
  })
})

describe('what is written', () => {
  test('is read back', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = JSON.stringify(value)
        const text = `${sseData(json)}${SSE_COMMENT}${sseEvent('delta', json)}${SSE_DONE}`

        expect(read([Buffer.from(text)])).toEqual([
          { event: undefined, data: json },
          { event: 'delta', data: json },
          { event: undefined, data: '[DONE]' },
        ])
      }),
    )
  })
})
