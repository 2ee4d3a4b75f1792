import { Buffer } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import { EventLines, EventSplitter, eventPieces } from '../../src/endpoints/event-reader.ts'

describe('EventSplitter', () => {
  for (const lineEnd of ['\n', '\r\n']) {
    const event = `: note${lineEnd}data: ü${lineEnd}${lineEnd}`
    const wire = Buffer.from(event + event + event)
    const eventLength = wire.length / 3

    it(`gives an event as soon as its last byte is there, whatever the cuts (${JSON.stringify(lineEnd)})`, () => {
      for (let first = 1; first < wire.length; first++) {
        for (let second = first; second < wire.length; second++) {
          const splitter = new EventSplitter()
          let given = 0
          for (const [start, end] of [
            [0, first],
            [first, second],
            [second, wire.length],
          ] as const) {
            given += splitter.take(wire.subarray(start, end))?.length ?? 0

            expect(given).toBe(Math.floor(end / eventLength) * eventLength)
            expect(splitter.heldBytes).toBe(end - given)
          }
        }
      }
    })
  }

  it('gives the very same bytes when a read ends with an event', () => {
    const bytes = Buffer.from('data: a\n\n')

    expect(new EventSplitter().take(bytes)).toBe(bytes)
  })

  it.each(['\n', '\r\n', '\r'])(
    'leaves out a byte order mark before the first event, whatever the cuts (%j)',
    (lineEnd) => {
      // A byte order mark after the beginning is text.
      const body = (end: string): string => `data: \uFEFFa${end}${end}data: b`
      const wire = Buffer.from(`\uFEFF${body(lineEnd)}`)
      const expected = `${body(lineEnd === '\r' ? '\n' : lineEnd)}\n\n`
      for (let first = 0; first <= wire.length; first++) {
        for (let second = first; second <= wire.length; second++) {
          const splitter = new EventSplitter()
          const cut = [wire.subarray(0, first), wire.subarray(first, second), wire.subarray(second)]
          const given = [...cut.map((bytes) => splitter.take(bytes)), splitter.rest()]

          expect(Buffer.concat(given.filter((bytes) => bytes !== undefined)).toString()).toBe(expected)
        }
      }
    },
  )

  it('leaves it out where the first event is also the last, and in front of a further body', () => {
    const splitter = new EventSplitter()
    for (let body = 0; body < 2; body++) {
      splitter.take(Buffer.from('\uFEFFdata: a'))

      expect(splitter.rest()?.toString()).toBe('data: a\n\n')
      expect(splitter.take(Buffer.from('\uFEFFdata: a\n\n'))?.toString()).toBe('data: a\n\n')
      expect(splitter.rest()).toBeUndefined()
    }
  })

  it('closes what is left at the end', () => {
    const splitter = new EventSplitter()
    splitter.take(Buffer.from('data: a'))

    expect(splitter.rest()?.toString()).toBe('data: a\n\n')
    expect(splitter.rest()).toBeUndefined()
  })

  it('keeps no more than the cap', () => {
    const splitter = new EventSplitter(10)

    splitter.take(Buffer.from('data: 1234567'))

    expect(splitter.isOversize).toBe(true)
    expect(splitter.take(Buffer.from('890'))).toBeUndefined()
    expect(splitter.rest()).toBeUndefined()
  })

  it('reads lines that end in CR alone, and gives them with LF, whatever the cuts', () => {
    const wire = Buffer.from('event: a\rdata: ü\r\rdata: b\r\rdata: c\r')
    for (let first = 0; first <= wire.length; first++) {
      for (let second = first; second <= wire.length; second++) {
        const splitter = new EventSplitter()
        const pieces = [wire.subarray(0, first), wire.subarray(first, second), wire.subarray(second)]
        const given = pieces.map((piece) => splitter.take(piece)?.toString() ?? '').join('')

        expect(given).toBe('event: a\ndata: ü\n\ndata: b\n\n')
        expect(splitter.rest()?.toString()).toMatch(/^data: c\n\n/)
      }
    }
  })
})

describe('eventPieces', () => {
  it.each([
    [1, ['data: a\n\n', 'data: b\n\n', 'data: c\n\n']],
    [9, ['data: a\n\ndata: b\n\n', 'data: c\n\n']],
    [99, ['data: a\n\ndata: b\n\ndata: c\n\n']],
  ])('splits events into pieces of at least %i bytes', (leastBytes, expected) => {
    const pieces = eventPieces(Buffer.from('data: a\n\ndata: b\n\ndata: c\n\n'), leastBytes)

    expect(pieces.map(String)).toEqual(expected)
  })
})

describe('EventLines', () => {
  function linesOf(text: string): { name: string | undefined; text: string; end: number }[] {
    const bytes = Buffer.from(text)
    const event = new EventLines()
    const events = []
    while (event.end < bytes.length) {
      event.read(bytes, event.end)
      events.push({ name: event.name, text: event.text, end: event.end })
    }
    return events
  }

  it.each([
    ['one line', 'data: ü\n\n', { name: undefined, text: 'ü' }],
    ['no space behind the colon', 'data:a\n\n', { name: undefined, text: 'a' }],
    ['one space only taken away', 'data:  a \n\n', { name: undefined, text: ' a ' }],
    ['a name, CRLF and several lines', 'event: x\r\ndata: a\r\ndata: b\r\n\r\n', { name: 'x', text: 'a\nb' }],
    ['the last of two names', 'event: x\nevent: y\ndata: a\n\n', { name: 'y', text: 'a' }],
    ['other lines passed over', ': note\nid: 7\nretry: 1\ndata: a\n\n', { name: undefined, text: 'a' }],
    ['a comment', ': note\n\n', { name: undefined, text: '' }],
  ])('finds an event: %s', (_, text, expected) => {
    expect(linesOf(text)).toEqual([{ ...expected, end: Buffer.byteLength(text) }])
  })

  it('finds consecutive events, empty ones included', () => {
    expect(linesOf('data: a\n\n\nevent: x\ndata: b\n\n').map(({ text }) => text)).toEqual(['a', '', 'b'])
  })

  it.each([
    ['data lines', 'data:\n'],
    ['comments', ':\n'],
    ['names', 'event: x\r\n'],
  ])('reads an event of 4,095 %s, and nothing of one with more', (_, line) => {
    const event = new EventLines()
    event.read(Buffer.from(`${line.repeat(4_094)}data: a\n\n`), 0)
    expect(event.text.trim()).toBe('a')

    const bytes = Buffer.from(`${line.repeat(4_096)}data: a\n\ndata: b\n\n`)
    event.read(bytes, 0)
    expect([event.hasData, event.hasOneLine, event.isEndMark, event.text]).toEqual([true, false, false, ''])
    expect(event.end).toBe(bytes.length)
  })

  it.each([
    ['data: [DONE]\n\n', true],
    ['data:  [DONE] \r\n\r\n', true],
    ['data: "[DONE]"\n\n', false],
    ['data: [DONE]\ndata:\n\n', false],
  ])('knows the end mark: %j', (text, isEndMark) => {
    const event = new EventLines()
    event.read(Buffer.from(text), 0)

    expect(event.isEndMark).toBe(isEndMark)
  })
})
