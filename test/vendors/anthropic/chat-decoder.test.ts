import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cutBytes } from '../../support/feed-stream.ts'
import { recordingWriter, type WriterCall } from '../../support/recording-writer.ts'
import { chatCall, chatOperation, type LooseRequest } from './chat-call.ts'

type Event = Readonly<Record<string, unknown>>

const start: Event = { type: 'message_start', message: { id: 'msg_1', usage: { input_tokens: 3, output_tokens: 1 } } }
const stop: Event = { type: 'message_stop' }
const blockStart = (index: number, block: unknown): Event => ({
  type: 'content_block_start',
  index,
  content_block: block,
})
const delta = (index: number, value: unknown): Event => ({ type: 'content_block_delta', index, delta: value })
const blockStop = (index: number): Event => ({ type: 'content_block_stop', index })
const finish = (reason: string): Event => ({
  type: 'message_delta',
  delta: { stop_reason: reason },
  usage: { output_tokens: 9 },
})
const tool = (id: string, input: unknown = {}) => ({ type: 'tool_use', id, name: 'find_tag', input })
const json = (text: string) => ({ type: 'input_json_delta', partial_json: text })

const encode = (text: string) => new TextEncoder().encode(text)
const written = (events: readonly Event[]) =>
  encode(events.map((event) => `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`).join(''))

function decode(bytes: Uint8Array, request: LooseRequest = {}) {
  const writer = recordingWriter()
  const decoder = chatOperation().decoder(chatCall(request, { stream: true }), writer)
  for (const chunk of cutBytes(bytes, 'in blocks of 7 bytes')) decoder.push(chunk)
  decoder.end()
  return { calls: writer.calls, decoder }
}

/** Writes a JSON string with escapes only. */
const escaped = (text: string) =>
  `"${Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`

const callsOf = (events: readonly Event[], request: LooseRequest = {}) => decode(written(events), request).calls

describe('the stream decoder', () => {
  it('emits the first chunk of a block from its start event', () => {
    const calls = callsOf([
      start,
      blockStart(0, { type: 'thinking', thinking: 'Hm', signature: 'Eq' }),
      delta(0, { type: 'signature_delta', signature: 'QB' }),
      blockStop(0),
      blockStart(1, { type: 'text', text: 'Hi' }),
    ])

    expect(calls.slice(1)).toEqual([
      ['reasoning', 'Hm'],
      ['thinkingBlock', { type: 'thinking', thinking: 'Hm', signature: 'EqQB' }],
      ['text', 'Hi'],
    ])
  })

  it('opens nothing for an empty text block', () => {
    expect(callsOf([start, blockStart(0, { type: 'text', text: '' }), blockStop(0)])).toEqual([['start', 'msg_1']])
  })

  it('carries a signature without text', () => {
    const calls = callsOf([
      start,
      blockStart(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, { type: 'signature_delta', signature: 'EqQB' }),
      blockStop(0),
    ])

    expect(calls[1]).toEqual(['thinkingBlock', { type: 'thinking', thinking: '', signature: 'EqQB' }])
  })

  it('never glues the empty object of a tool’s start in front of its arguments', () => {
    const calls = callsOf([
      start,
      blockStart(0, tool('a')),
      delta(0, json('{"q":1}')),
      blockStop(0),
      finish('tool_use'),
      stop,
    ])

    expect(calls.filter(([method]) => method === 'toolCallArguments')).toEqual([['toolCallArguments', 0, '{"q":1}']])
  })

  it('emits arguments that are only in the start event', () => {
    const calls = callsOf([start, blockStart(0, tool('a', { q: 1 })), blockStop(0)])

    expect(calls.at(-1)).toEqual(['toolCallArguments', 0, '{"q":1}'])
  })

  it('completes a tool call whose end is missing', () => {
    const calls = callsOf([start, blockStart(0, tool('a')), finish('tool_use'), stop])

    expect(calls.slice(-2)).toEqual([
      ['toolCallArguments', 0, '{}'],
      ['finish', 'tool_calls'],
    ])
  })

  it('gives text that arrives on a tool block, or without a block, as text', () => {
    const calls = callsOf([
      start,
      delta(5, { type: 'text_delta', text: 'One' }),
      blockStart(0, tool('a')),
      delta(0, { type: 'text_delta', text: 'Two' }),
    ])

    expect(calls.filter(([method]) => method === 'text')).toEqual([
      ['text', 'One'],
      ['text', 'Two'],
    ])
  })

  it('finishes with tool_calls when a tool was called, though the vendor says end_turn', () => {
    const calls = callsOf([start, blockStart(0, tool('a')), blockStop(0), finish('end_turn'), stop])

    expect(calls.at(-1)).toEqual(['finish', 'tool_calls'])
  })

  it('finishes with tool_calls when a tool of the caller was called in place of a JSON answer', () => {
    const calls = callsOf([start, blockStart(0, tool('a')), blockStop(0), finish('tool_use'), stop], {
      response_format: { type: 'json_object' },
    })

    expect(calls.at(-1)).toEqual(['finish', 'tool_calls'])
  })

  it('gives an empty object for a JSON answer that is one', () => {
    const answer = { type: 'tool_use', id: 'a', name: 'json', input: {} }

    const calls = callsOf([start, blockStart(0, answer), blockStop(0), finish('tool_use'), stop], {
      response_format: { type: 'json_object' },
    })

    expect(calls.slice(1)).toEqual([
      ['text', '{}'],
      ['finish', 'stop'],
    ])
  })

  it('opens the answer even when the first event is missing', () => {
    expect(callsOf([delta(0, { type: 'text_delta', text: 'Hi' })])[0]).toEqual(['start', ''])
  })

  it('reads events without an event name', () => {
    const { calls, decoder } = decode(encode(`data: ${JSON.stringify(start)}\n\ndata: ${JSON.stringify(stop)}\n\n`))

    expect(calls).toEqual([
      ['start', 'msg_1'],
      ['finish', 'stop'],
    ])
    expect(decoder.isComplete).toBe(true)
  })

  it.each(['data: {"type":"message_st\n\n', 'data: 17\n\n'])('fails on %j', (garbage) => {
    const { decoder } = decode(encode(garbage))

    expect(decoder.failure?.kind).toBe('invalid_response')
    expect(decoder.isComplete).toBe(false)
  })

  it.each([
    ['rate_limit_error', 'rate_limited'],
    ['invalid_request_error', 'caller'],
    ['authentication_error', 'operator'],
    ['timeout_error', 'timeout'],
    ['of_the_future', 'unavailable'],
  ])('reports an error event of type %s as a matter of: %s', (type, kind) => {
    const { decoder } = decode(written([start, { type: 'error', error: { type, message: 'sk-ant-api03-secret bad' } }]))

    expect(decoder.failure).toMatchObject({ kind, status: 0, type })
    expect(decoder.failure?.message).not.toContain('secret')
  })

  it('is not complete when the body ends before message_stop', () => {
    expect(decode(written([start, finish('end_turn')])).decoder.isComplete).toBe(false)
  })

  it('has no usage before the vendor gave one', () => {
    expect(decode(written([blockStart(0, { type: 'text', text: 'Hi' })])).decoder.usage).toBeUndefined()
  })
})

describe('any legal sequence of events', () => {
  const pieces = fc.array(fc.constantFrom('', '{"q":', '"å⛅"', '}'), { maxLength: 3 })
  const block = fc.oneof(
    fc.record({ kind: fc.constant('text' as const), pieces }),
    fc.record({ kind: fc.constant('thinking' as const), pieces }),
    fc.record({ kind: fc.constant('tool_use' as const), pieces }),
    fc.record({ kind: fc.constant('server_tool_use' as const), pieces }),
  )
  const deltaKinds = {
    text: 'text_delta',
    thinking: 'thinking_delta',
    tool_use: 'input_json_delta',
    server_tool_use: 'input_json_delta',
  }
  const members = { text: 'text', thinking: 'thinking', tool_use: 'partial_json', server_tool_use: 'partial_json' }

  it('gives tool indexes 0 to k in order, each opened once before its arguments, and one finish at the end', () => {
    fc.assert(
      fc.property(fc.array(block, { maxLength: 8 }), fc.nat(3), (blocks, firstIndex) => {
        const events = blocks.flatMap((entry, position) => {
          // Indexes may have gaps, because they also count blocks that a reader does not see.
          const index = firstIndex + position * 2
          const content = {
            type: entry.kind,
            text: '',
            thinking: '',
            signature: '',
            id: `id_${position}`,
            name: 'f',
            input: {},
          }
          return [
            blockStart(index, content),
            { type: 'ping' },
            ...entry.pieces.map((piece) =>
              delta(index, { type: deltaKinds[entry.kind], [members[entry.kind]]: piece }),
            ),
            blockStop(index),
          ]
        })

        const { calls, decoder } = decode(written([start, ...events, finish('end_turn'), stop]))

        const tools = blocks.filter((entry) => entry.kind === 'tool_use')
        const of = (method: string) => calls.filter((call: WriterCall) => call[0] === method)
        expect(of('toolCall').map(([, opened]) => (opened as { index: number }).index)).toEqual(
          tools.map((_, index) => index),
        )
        tools.forEach((entry, index) => {
          const given = of('toolCallArguments').filter(([, of]) => of === index)
          expect(given.map(([, , text]) => text).join('')).toBe(entry.pieces.join('') || '{}')
          const opening = calls.findIndex(
            ([method, opened]) => method === 'toolCall' && (opened as { index: number }).index === index,
          )
          expect(calls.indexOf(given[0] as WriterCall)).toBeGreaterThan(opening)
        })
        expect(
          of('text')
            .map(([, text]) => text)
            .join(''),
        ).toBe(blocks.flatMap((entry) => (entry.kind === 'text' ? entry.pieces : [])).join(''))
        expect(calls.at(-1)).toEqual(['finish', tools.length > 0 ? 'tool_calls' : 'stop'])
        expect(of('finish')).toHaveLength(1)
        expect(decoder.isComplete).toBe(true)
      }),
    )
  })

  it('reads a delta of text the same, however it is written', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('"', '\\', '\\u0041', 'a\u0000b', '\u007f', '\u2028', '"}}', '}} ', '\ud800', '😀'),
    )
    const form = fc.record({ text: texts, index: fc.nat(300), isEscaped: fc.boolean(), spaces: fc.nat(3) })
    fc.assert(
      fc.property(form, ({ text, index, isEscaped, spaces }) => {
        const whole = JSON.stringify(delta(index, { type: 'text_delta', text }))
        // The same text with escapes only, which only the parser reads.
        const written = isEscaped ? whole.replace(JSON.stringify(text), () => escaped(text)) : whole
        const data = `${written.slice(0, -1)}${' '.repeat(spaces)}}`
        const { calls } = decode(encode(`data: ${JSON.stringify(start)}\n\ndata: ${data}\n\n`))
        const { delta: value } = JSON.parse(new TextDecoder().decode(encode(data))) as { delta: { text: string } }

        expect(calls.slice(1)).toEqual([['text', value.text]])
      }),
    )
  })

  it('fails by an event that only looks like a delta of text', () => {
    const head = '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":'
    for (const broken of [
      `${head}"a\tb"}}`,
      `${head}"a"}`,
      `${head}"a"}}}`,
      `${head}"\\"}}`,
      `${head.replace('0', '00')}"a"}}`,
    ])
      expect(decode(encode(`data: ${JSON.stringify(start)}\n\ndata: ${broken}\n\n`)).decoder.failure).toBeDefined()
  })
})
